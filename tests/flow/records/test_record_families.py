"""Every record that flows write belongs to a family and says its schema; a corrupt one stops the flow, nothing else."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from stage import Stage

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.errors import Corrupt, Unavailable
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import PoolPolicy
from pilotlight.flow.records import brake_records, flight_log
from pilotlight.ports.state import LARGEST, Clock
from pilotlight.state_schema.table import plain
from pilotlight.tools.cli.records.state_families import read, table_of
from pilotlight.units import Seconds


class Recorder(MemoryState):
    """A store that remembers all that was ever put."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.puts: dict[str, bytes] = {}

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: Seconds | None = None) -> int:
        """Remember, and put."""
        version = super().put(key, value, if_version=if_version, ttl_s=ttl_s)
        self.puts[key] = value
        return version


def recorded(stage: Stage) -> Recorder:
    """The stage's store, from now on remembering."""
    state = Recorder(stage.world.clock)
    stage.deps = replace(stage.deps, state=state)
    return state


def test_every_record_of_a_day_is_of_a_family_and_says_its_schema() -> None:
    """Purchases, holds, refusals, a pause and a release leave records that their families read."""
    stage = Stage(budgets=(Budget(name="all", usd=Decimal(10_000)),))
    state = recorded(stage)
    pod = stage.submit("p", run_s=600)
    stage.event(pod, "uid-p/1")
    stage.submit("q", gpus=64)
    stage.minutes(10)
    brake_records.pause(state, "c", "one", "a price check", stage.world.clock.now())
    brake_records.approve(state, "c", "d", {"one": 4}, stage.world.clock.now())
    stage.minutes(10)
    families = {key.partition("/")[0] for key in state.puts}
    expected = {"memory", "inflight", "open", "decision", "told", "lease", "fence", "event", "cap", "hold"}
    assert families >= expected | {"pause", "approved"}
    for key, record in state.puts.items():
        assert read(key, record) is not None
        assert json.loads(plain(record))["schema"] == table_of(key).format.schema


def test_a_key_of_no_family_is_refused() -> None:
    """Whatever does not begin with a family is not Pilotlight's."""
    for key in ("lamp/c", "memory", ""):
        with pytest.raises(Corrupt, match="no key of Pilotlight's"):
            table_of(key)


@pytest.mark.parametrize("room", ["memory/c", "inflight/c/x.0", "open/c/x", "fence/c"])
def test_a_corrupt_record_stops_the_flow_before_any_effect(room: str) -> None:
    """With a waiting pod and a broken record nothing is bought and nothing is written over it."""
    stage = Stage()
    stage.submit("p")
    stage.deps.state.put(room, b'{"schema":1,')
    with pytest.raises(Corrupt, match=room):
        stage.tick()
    stored = stage.deps.state.get(room)
    assert stored is not None
    assert stored.value == b'{"schema":1,'
    assert not stage.world.nodes


def _read_only(state: SqliteState) -> None:
    state._connection().execute("PRAGMA query_only = ON")


def _full(state: SqliteState) -> None:
    state._connection().execute("PRAGMA max_page_count = 1")
    for size in (4000, 400, 40, 4):
        with suppress(Unavailable):
            for n in count():
                state.put(f"filler/{size}/{n}", b"x" * size)


@pytest.mark.parametrize("broken", [_read_only, _full], ids=["a read-only file", "a full disk"])
def test_a_store_that_cannot_be_written_buys_and_releases_nothing(
    broken: Callable[[SqliteState], None], tmp_path: Path
) -> None:
    """A pod waits and a node is idle for hours: with the store gone both stay so, and the error is one line."""
    stage = Stage()
    state = SqliteState(tmp_path / "state.db", stage.world.clock)
    stage.deps = replace(stage.deps, state=state)
    stage.event(stage.submit("done", run_s=60))
    stage.minutes(4)
    assert stage.nodes("one") == 1
    broken(state)
    pod = stage.submit("waits", gpus=8)
    stage.wait(7200)
    for look in (stage.tick, partial(stage.event, pod)):
        with pytest.raises(Unavailable, match=r"state\.db: [^\n]*disk"):
            look()
    assert (stage.nodes("one"), stage.nodes("eight")) == (1, 0)


def test_ten_thousand_pending_pods_are_bought_for_in_one_decision() -> None:
    """The decision's record fits the store, and every pod is known to be on its way."""
    stage = Stage(pools={"eight": PoolPolicy(instance_type="eight", max=2000)})
    state = recorded(stage)
    pods = [stage.submit(f"a-pod-with-a-name-of-usual-length-{n}") for n in range(10_000)]
    stage.event(pods[0])
    assert stage.nodes("eight") == 1250
    assert max(map(len, state.puts.values())) <= LARGEST
    (_, entry), *others = flight_log.in_flight(state, "c")
    assert not others
    assert set(entry.demands) == {pod.uid for pod in pods}
    stage.tick()
    assert stage.nodes("eight") == 1250
