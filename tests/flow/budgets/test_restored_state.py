"""A state restored from a backup: the cap holds over what it forgets, by the world's own sum, and people are told."""

import shutil
import sqlite3
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from busy_stage import Busy
from stage import Stage

from pilotlight.adapters.state.counted import CountedState
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.facts.money.money_policy import Budget, Caps
from pilotlight.flow.records.lease import Lease
from pilotlight.state_schema.billing_records import CAP
from pilotlight.tools.cli.records.state_commands import Line, _put

SIX = Budget(name="all", usd=Decimal(6), period="day")
CENT = Decimal("0.01")


class Kept(Busy):
    """A hard $6 a day over nodes at $1 an hour, on a SQLite file; jobs of a few minutes come without end."""

    jobs = 2

    def __init__(self, path: Path, caps: Caps | None = None) -> None:
        super().__init__(budgets=(SIX,), caps=caps or Caps(nodes=8))
        self.path = path
        self.open()

    def open(self) -> None:
        """Another process opens the file."""
        self.store = SqliteState(self.path, self.world.clock)
        self.deps = replace(self.deps, state=CountedState(self.store))

    def back_up(self) -> Path:
        """A consistent copy of the file, as SQLite makes one."""
        copy = self.path.with_suffix(".backup")
        with sqlite3.connect(self.path) as live, sqlite3.connect(copy) as to:
            live.backup(to)
        return copy

    def restore(self, copy: Path) -> None:
        """The copy in the file's place, and a new process."""
        self._stop()
        shutil.copyfile(copy, self.path)
        self.open()

    def empty(self) -> None:
        """The file is moved away: a new process starts with an empty one."""
        self._stop()
        self.open()

    def _stop(self) -> None:
        """The process ends, and its file goes with all that begins with its name, as by ``mv state.db* elsewhere``."""
        self.store._connection().close()
        for found in self.path.parent.glob(f"{self.path.name}*"):
            found.unlink()

    @property
    def restored(self) -> list[str]:
        """What people were told of it."""
        return [alert.why for alert in self.alerts if alert.kind == "finding-state-restored"]


def _spent_today(on: Stage) -> Decimal:
    """Dollars of all nodes since the world began, which is noon of the one day that is played."""
    return on.world.cost()


def test_a_backup_of_an_hour_ago_passes_no_hard_cap(tmp_path: Path) -> None:
    """What was spent in the hour that the backup lacks counts as spent, at the most that it can have been; all day long
    nothing is spent above $6, and people read how old the state is and what that comes to."""
    on = Kept(tmp_path / "s.db")
    on.busy(30)
    on.quiet()
    copy, before = on.back_up(), _spent_today(on)
    on.busy(30, jobs=4)
    on.quiet()  # Of what the backup lacks neither the cluster nor the cloud shows anything.
    lost = _spent_today(on) - before
    assert lost > 1
    on.restore(copy)
    on.busy(480)
    assert _spent_today(on) <= 6 + CENT
    (told,) = on.restored
    assert " old; what is lit is held for anew" in told
    assert "of $6.00 a day (budget all)" in told
    counted = Decimal(told.split("at most $")[1].split()[0])
    assert counted >= lost


def test_an_empty_state_where_one_was_passes_no_hard_cap(tmp_path: Path) -> None:
    """A file that is moved away knows nothing of the day: the cap holds."""
    on = Kept(tmp_path / "s.db")
    on.busy(120, jobs=3)
    on.empty()
    on.busy(480)
    assert _spent_today(on) <= 6 + CENT
    assert "it is empty" in on.restored[0]


def test_a_process_that_goes_on_sees_that_its_store_was_restored(tmp_path: Path) -> None:
    """Also where nothing lies beside the records: the store of a warm function goes back an hour under it."""
    on = Kept(tmp_path / "s.db")
    store = MemoryState(on.world.clock)
    on.deps = replace(on.deps, state=CountedState(store))
    on.minutes(30)
    kept = dict(store._entries), list(store._keys)
    on.busy(30, jobs=4)
    on.minutes(30)
    store._entries, store._keys = kept
    on.busy(480)
    assert _spent_today(on) <= 6 + CENT
    assert len(on.restored) == 1


def test_the_next_day_has_all_its_money(tmp_path: Path) -> None:
    """What counted as spent unseen is of its own period alone."""
    on = Kept(tmp_path / "s.db")
    on.busy(60)
    copy = on.back_up()
    on.busy(60)
    on.restore(copy)
    on.minutes(12 * 60)
    before = on.world.launches
    on.busy(60)
    assert on.world.launches > before


def test_caps_bound_what_counts(tmp_path: Path) -> None:
    """With one node at most an hour unseen comes to a dollar at most: the rest of the day's money is there to spend."""
    on = Kept(tmp_path / "s.db", Caps(nodes=1))
    on.busy(60, jobs=1)
    copy = on.back_up()
    on.minutes(60)
    on.restore(copy)
    on.minutes(1)
    counted = Decimal(on.restored[0].split("at most $")[1].split()[0])
    assert Decimal("0.9") <= counted <= Decimal("1.02")


@pytest.mark.parametrize("minutes", [1, 240])
def test_an_outage_is_no_restore(tmp_path: Path, minutes: int) -> None:
    """However long nobody looks: the state knows its last look, nothing counts as spent for it, nobody is told."""
    on = Kept(tmp_path / "s.db")
    on.busy(30)
    on.wait(minutes * 60)
    on.open()
    on.busy(30)
    assert on.restored == []
    assert _settled(on) <= _spent_today(on) + CENT


def _settled(on: Stage) -> Decimal:
    return sum((CAP.format.read(key, one.value).settled for key, one in on.deps.state.scan("cap/").items), Decimal(0))


def test_a_worker_that_dies_before_it_notes_that_it_counted_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look after it counts nothing twice, and the cap holds."""
    on = Kept(tmp_path / "s.db", Caps(nodes=1))
    on.busy(60, jobs=1)
    copy = on.back_up()
    on.minutes(30)
    on.restore(copy)

    def die(_: Lease) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as dead:
        dead.setattr(Lease, "forget_loss", die)
        with pytest.raises(KeyboardInterrupt):
            on.tick()
    counted = _settled(on)
    on.minutes(2)
    assert _settled(on) == counted
    assert on.restored
    on.busy(240)
    assert _spent_today(on) <= 6 + CENT


def test_an_import_says_since_when_the_backup_knows_nothing(tmp_path: Path) -> None:
    """``state import`` of an hour-old export, into a store of any kind: what may have been spent since counts."""
    on = Kept(tmp_path / "s.db")
    on.minutes(30)
    lines = [(key, one.value) for key, one in on.deps.state.scan("").items]
    on.busy(30, jobs=4)
    on.minutes(30)
    fresh = MemoryState(on.world.clock)
    for key, record in lines:
        _put(fresh, Line(key=key, value=msgspec.Raw(record)), replace=True, dry_run=False)
    on.deps = replace(on.deps, state=fresh)
    on.busy(480)
    assert _spent_today(on) <= 6 + CENT
    assert len(on.restored) == 1
