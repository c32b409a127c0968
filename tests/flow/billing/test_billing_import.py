"""billing_import over the world: file by file, on where it was cut off, and nothing twice."""

import csv
import os
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from stage import START, Stage

from pilotlight.adapters.bills.focus import FocusBills
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.decide.money.bills.bill_scope import Rules
from pilotlight.facts.messages import BillExported, Tick
from pilotlight.facts.money.bill_files import BillFile, BillListing
from pilotlight.flow.answer import Answer
from pilotlight.flow.billing import billed_days
from pilotlight.flow.billing.bill_reading import AT_ONCE_S
from pilotlight.flow.billing.billing_import import billing_import
from pilotlight.ports.state import Clock
from pilotlight.state_schema.billing_records import BILL_FILE, BILL_TRIED

pytest.importorskip("duckdb")

TICK = Tick(cluster="c", what="bills")
DAY = timedelta(days=1)
FIRST = START - 9 * DAY
FILES = 7


class Cut(Exception):
    """The function's time is over."""


class CutBills(FocusBills):
    """An export whose reads end their function after so many files, and say which they read."""

    left: float = 1.0
    lasts_s: float = 0.0
    on: Stage | None = None

    def __init__(self, uri: str) -> None:
        super().__init__(uri, Rules())
        self.reads: list[str] = []

    def read_file(self, listing: BillListing, group: Sequence[str], *more: Any, **named: Any) -> BillFile:
        """One file, or the end of the function."""
        if self.left <= 0:
            raise Cut
        self.left -= 1
        self.reads.append(Path(group[0]).name)
        if self.on is not None:
            self.on.wait(self.lasts_s)
        return super().read_file(listing, group, *more, **named)


class SetClock:
    """A clock that somebody sets."""

    off_s = 0.0

    def __init__(self, true: Clock) -> None:
        self._true = true

    def now(self) -> datetime:
        """What it shows."""
        return self._true.now() + timedelta(seconds=self.off_s)

    def stopwatch(self) -> Callable[[], float]:
        """Time that passes is the same."""
        return self._true.stopwatch()


def write(folder: Path, number: int, cents: Sequence[int], *, age: int = 0) -> None:
    """A part of an export: a line a day, each of its own machine."""
    path = folder / f"part-{number}.csv"
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["BilledCost", "ChargePeriodStart", "ChargePeriodEnd", "ResourceId", "ServiceName"])
        for day, amount in enumerate(cents):
            since = FIRST + day * DAY
            usd = f"{Decimal(amount) / 100}"
            out.writerow([usd, since.isoformat(), (since + DAY).isoformat(), f"i-0{number:08x}", "EC2"])
    when = 1_790_000_000 - age
    os.utime(path, (when, when))


def summed(folder: Path) -> Decimal:
    """What the files say, by the csv module alone."""
    total = Decimal(0)
    for path in folder.glob("*.csv"):
        with path.open(newline="") as file:
            total += sum((Decimal(row["BilledCost"]) for row in csv.DictReader(file)), Decimal(0))
    return total


def billed(on: Stage) -> Decimal:
    """What the state says is billed."""
    return sum((day.usd for day in billed_days.days(on.deps.state, "c", FIRST.date(), START.date())), Decimal(0))


@pytest.fixture
def bills(tmp_path: Path) -> CutBills:
    """An export of some files."""
    for number in range(FILES):
        write(tmp_path, number, [100 * number + day for day in range(9)])
    return CutBills(str(tmp_path / "*.csv"))


def stage(bills: CutBills) -> Stage:
    """A cluster whose bill it is."""
    on = Stage()
    on.deps = replace(on.deps, bills=bills)
    return on


def tick(on: Stage, wait_s: float = 600) -> Answer | None:
    """A tick, and its answer where its function came to one."""
    on.wait(wait_s)
    with suppress(Cut):
        return billing_import(on.deps, TICK)
    return None


def test_a_read_that_is_killed_after_each_file_goes_on_with_the_next(bills: CutBills, tmp_path: Path) -> None:
    """No file is read twice, nothing is billed before the last, and then the days are the files' sums."""
    on = stage(bills)
    for number in range(FILES):
        bills.left = 1
        assert billed(on) == 0
        answer = tick(on)
        assert bills.reads == [f"part-{n}.csv" for n in range(number + 1)]
    assert answer is not None
    assert answer.why == "read 9 whole days of focus"
    assert billed(on) == summed(tmp_path)
    assert list(BILL_FILE.scan(on.deps.state, "c/")) == []
    tick(on, 7200)
    assert len(bills.reads) == FILES


def test_six_hundred_killed_reads_lose_no_file(tmp_path: Path) -> None:
    """Of 600 reads 560 are killed before they come to the end of a file: what the others read stays."""
    names = 40
    for number in range(names):
        write(tmp_path, number, [number])
    bills = CutBills(str(tmp_path / "*.csv"))
    on, kills = stage(bills), 0
    for n in range(600):
        bills.left = 1 if n % 15 == 14 else 0
        kills += tick(on) is None
        if len(bills.reads) == names:
            break
    assert kills >= 560
    assert sorted(bills.reads) == sorted(f"part-{n}.csv" for n in range(names))
    assert billed(on) == summed(tmp_path)


@pytest.mark.parametrize("what", ["a file is written again", "a file more", "a file less"])
def test_a_bill_that_changed_meanwhile_is_read_anew(bills: CutBills, tmp_path: Path, what: str) -> None:
    """What was read of the older one does not count."""
    on = stage(bills)
    bills.left = 3
    tick(on)
    if what == "a file less":
        (tmp_path / "part-0.csv").unlink()
    else:
        write(tmp_path, 0 if "again" in what else FILES, [7_000] * 9, age=-60)
    bills.left = FILES + 1
    tick(on)
    assert billed(on) == summed(tmp_path)
    assert len(bills.reads) == 3 + len(list(tmp_path.glob("*.csv")))


def test_a_long_read_stops_before_its_function_does_and_goes_on_a_minute_later(bills: CutBills, tmp_path: Path) -> None:
    """After four minutes no further file is begun, and the next tick has no mark to wait for."""
    on = stage(bills)
    bills.left, bills.lasts_s, bills.on = 100, AT_ONCE_S / 2 + 1, on
    answers = [tick(on, 60) for _ in range(4)]
    assert [answer.why for answer in answers if answer] == [
        "read 2 of 7 files of the bill; the next tick goes on",
        "read 4 of 7 files of the bill; the next tick goes on",
        "read 6 of 7 files of the bill; the next tick goes on",
        "read 9 whole days of focus",
    ]
    assert billed(on) == summed(tmp_path)


def test_two_ticks_at_once_read_once(bills: CutBills, tmp_path: Path) -> None:
    """The second finds the mark; where the mark is gone both come to the same days."""
    on = stage(bills)
    other = CutBills(str(tmp_path / "*.csv"))
    other.left = 100
    answers: list[str] = []

    class Meanwhile(CutBills):
        def read_file(self, *given: Any, **named: Any) -> BillFile:
            if len(self.reads) == 2:
                on.wait(self.lasts_s)
                answers.append(billing_import(replace(on.deps, bills=other), TICK).why)
            return super().read_file(*given, **named)

    for lasts_s in (0, 700):
        own = Meanwhile(str(tmp_path / "*.csv"))
        own.left, own.lasts_s = 100, lasts_s
        on.wait(4000)
        billing_import(replace(on.deps, bills=own), BillExported(cluster="c", uri="part-1.csv"))
        write(tmp_path, 3, [1, 2, 3, 4, 5, 6, 7, 8, 9], age=-90)
    assert answers == ["the bill is being read", "read 9 whole days of focus"]
    on.wait(4000)
    billing_import(replace(on.deps, bills=other), TICK)
    assert billed(on) == summed(tmp_path)


def test_a_file_that_no_function_comes_to_the_end_of_is_told_of(bills: CutBills) -> None:
    """After three tries people hear its name and what to do, once a day."""
    on = stage(bills)
    for _ in range(8):
        bills.left = 0
        tick(on)
    (alert,) = [one for one in on.alerts if one.kind == "bill-unread"]
    assert "part-0.csv: give billing_import more time and memory" in alert.why
    found = BILL_TRIED.get(on.deps.state, "c")
    assert found is not None
    assert found.value.times == 8


@pytest.mark.parametrize("seed", range(12))
def test_random_kills_and_changes_come_to_the_sums_of_the_files(tmp_path: Path, seed: int) -> None:
    """Files come and change between reads that are killed anywhere."""
    rng = random.Random(seed)
    for number in range(rng.randint(1, 9)):
        write(tmp_path, number, [rng.randint(0, 10_000) for _ in range(9)])
    bills = CutBills(str(tmp_path / "*.csv"))
    on = stage(bills)
    for turn in range(25):
        if rng.random() < 0.25:
            write(tmp_path, rng.randrange(10), [rng.randint(0, 10_000) for _ in range(9)], age=-turn - 1)
        bills.left = rng.randrange(6)
        tick(on, rng.choice([30, 60, 600, 4000]))
        done = billed(on)
        assert done >= 0
    for _ in range(3):
        bills.left = 100
        tick(on, 4000)
    assert billed(on) == summed(tmp_path)


@pytest.mark.parametrize("hours", [-2, -30, -24 * 20, -24 * 90, 24 * 20, 24 * 90])
@pytest.mark.parametrize("at", range(0, 2 * FILES, 3))
def test_a_clock_that_is_set_and_set_right_again_costs_no_line(
    bills: CutBills, tmp_path: Path, hours: int, at: int
) -> None:
    """A read by a clock that is wrong, or wrong for some of its files, is made good by the first by a right one."""
    on = stage(bills)
    clock = SetClock(on.deps.clock)
    on.deps = replace(on.deps, clock=clock, state=MemoryState(clock))
    for turn in range(2 * FILES):
        bills.left = 1
        clock.off_s = hours * 3600.0 if at <= turn < at + 3 else 0.0
        tick(on)
    clock.off_s, bills.left = 0.0, 100
    for _ in range(8):
        tick(on)
    assert billed(on) == summed(tmp_path)


def test_a_dry_run_reads_and_writes_nothing(bills: CutBills) -> None:
    """It says how much there is to read."""
    on = stage(bills)
    before = dict(on.deps.state.scan("").items)
    assert billing_import(on.deps, TICK, dry_run=True).why == "7 files of the bill would be read"
    assert (dict(on.deps.state.scan("").items), bills.reads) == (before, [])
