"""What flows leave in the state: it is read back whole, it always fits, and what is corrupt stops the flow."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec
import pytest

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.errors import Corrupt
from pilotlight.facts.decisions import Buy, CallStep, NodeVerdict, Plan, Record
from pilotlight.facts.messages import Outgoing
from pilotlight.facts.nodes.pool_state import InFlight
from pilotlight.facts.place.pod_verdicts import PodGroup
from pilotlight.facts.workload import Finding
from pilotlight.flow.records import flight_log, ledger
from pilotlight.flow.records.ledger import MOST_RELEASES, limit_releases
from pilotlight.ports.state import ABSENT, LARGEST, State
from pilotlight.world.world_clock import VirtualClock

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
UIDS = tuple(f"00000000-0000-4000-8000-{n:012d}" for n in range(10_000))
ASKED = InFlight(
    decision="00001-aa",
    offering="a100/p4d.24xlarge/on-demand",
    pool="a100",
    count=1250,
    requested_at=NOON,
    ready_by=NOON + timedelta(minutes=5),
    demands=UIDS,
)


@pytest.fixture
def state(clock: VirtualClock) -> State:
    """An empty store."""
    return MemoryState(clock)


def record(*, plan: Plan, steps: tuple[CallStep, ...] = (), messages: tuple[Outgoing, ...] = ()) -> Record:
    """An open record of a plan."""
    return Record(
        id="00001-aa",
        cluster="c",
        flow="provision",
        trigger="a tick",
        at=NOON,
        status="open",
        plan=plan,
        steps=steps,
        messages=messages,
    )


def huge() -> Record:
    """A record over 10,000 pending pods of 126 shapes, 1,000 nodes and as many findings and messages."""
    names = tuple(f"ml-research/a-job-with-a-rather-long-name-{n}" for n in range(10_000))
    groups = tuple(
        PodGroup(verdict="bought", pods=names[n::126], uids=UIDS[n::126], where="a100", why="room for it")
        for n in range(126)
    )
    buy = Buy(
        pool="a100",
        offering=ASKED.offering,
        zone="",
        count=1250,
        usd_per_hour=Decimal(32),
        boot_s=300,
        demands=UIDS,
        shapes=("s",) * 126,
        why="10,000 waiting pods without room",
    )
    nodes = tuple(
        NodeVerdict(
            node=f"node-{n}",
            pool="a100",
            instance=f"i-{n}",
            verdict="release" if n < 50 else "keep",
            why="x" * 200,
            usd_per_hour=Decimal(32),
        )
        for n in range(1000)
    )
    findings = tuple(Finding(code="pvc-missing", subject=name, message="mend it") for name in names)
    steps = (CallStep(n=0, call="grow", pool="a100", target=ASKED.offering, count=1250, to=1250),)
    message = Outgoing(id="m", topic="alerts", type="t", key="k", data=msgspec.Raw(b'"%s"' % (b"x" * 500)))
    plan = Plan(buys=(buy,), pods=groups, nodes=nodes, findings=findings)
    return record(plan=plan, steps=steps, messages=(message,) * 10_000)


def test_a_record_of_ten_thousand_pods_fits(state: State) -> None:
    """It is cut in names only: calls, outcomes and nodes to release stay whole, and the counts still add up."""
    whole = huge()
    ledger.write(state, whole, if_version=ABSENT)
    ((kept, _),) = ledger.open_records(state, "c")
    stored = state.get("open/c/00001-aa")
    assert stored is not None
    assert len(stored.value) <= LARGEST
    assert kept.steps == whole.steps
    assert kept.plan.releases == whole.plan.releases
    assert [b.count for b in kept.plan.buys] == [1250]
    assert len(kept.plan.nodes) + kept.left_out["nodes"] == 1000
    assert len(kept.plan.findings) + kept.left_out["findings"] == 10_000
    assert len(kept.messages) + kept.left_out["messages"] == 10_000
    assert len(kept.plan.pods) + kept.left_out.get("groups", 0) == 126
    for group, was in zip(kept.plan.pods, whole.plan.pods, strict=False):
        assert len(group.pods) + group.unnamed == len(was.pods)


def test_a_thousand_releases_become_several_decisions(state: State) -> None:
    """One decision gives back as many as its record holds; the others stay, cost on, and are looked at at once."""
    idle = tuple(
        NodeVerdict(
            node=f"n{n}", pool="a", instance=f"i-{n}", verdict="release", why="x" * 250, usd_per_hour=Decimal(2)
        )
        for n in range(1000)
    )
    plan = limit_releases(Plan(nodes=idle, usd_per_hour_before=Decimal(2000), usd_per_hour_after=Decimal(0)), NOON)
    assert plan.releases == idle[:MOST_RELEASES]
    assert [node.node for node in plan.nodes] == [node.node for node in idle]
    assert plan.usd_per_hour_after == 2 * (1000 - MOST_RELEASES)
    assert plan.look_again_at == NOON
    steps = tuple(CallStep(n=n, call="release", pool="a", target=r.node) for n, r in enumerate(plan.releases))
    ledger.write(state, record(plan=plan, steps=steps), if_version=ABSENT)
    ((kept, _),) = ledger.open_records(state, "c")
    assert kept.plan.releases == plan.releases


def test_a_record_that_fits_is_kept_whole(state: State) -> None:
    """Nothing is cut where nothing needs to be."""
    small = record(plan=Plan(pods=(PodGroup(verdict="fits", pods=("a/b",), uids=("u",), where="n", why="room"),)))
    version = ledger.write(state, small, if_version=ABSENT)
    assert ledger.open_records(state, "c") == [(small, version)]


def test_capacity_for_ten_thousand_pods_is_in_flight_for_each(state: State) -> None:
    """An entry larger than one value is read back whole, and is gone with its first part."""
    other = msgspec.structs.replace(ASKED, decision="00002-bb", demands=("u",))
    flight_log.write_flight(state, "c/00001-aa.0", ASKED)
    flight_log.write_flight(state, "c/00002-bb.0", other)
    assert flight_log.in_flight(state, "c") == [("c/00001-aa.0", ASKED), ("c/00002-bb.0", other)]
    flight_log.forget_flight(state, "c/00001-aa.0")
    assert flight_log.in_flight(state, "c") == [("c/00002-bb.0", other)]


CORRUPT = {"cut off": b'{"schema":1,"quaran', "of a newer schema": b'{"schema":9}', "foreign": b'{"hello":1}'}


@pytest.mark.parametrize("key", ["memory/c", "inflight/c/00001-aa.0", "open/c/00001-aa"])
@pytest.mark.parametrize("bad", CORRUPT.values(), ids=CORRUPT.keys())
def test_a_corrupt_record_is_named_and_left_alone(state: State, key: str, bad: bytes) -> None:
    """Whoever reads it gets its key, and the bytes stay."""
    state.put(key, bad)
    with pytest.raises(Corrupt, match=key):
        (ledger.recall(state, "c"), flight_log.in_flight(state, "c"), ledger.open_records(state, "c"))
    stored = state.get(key)
    assert stored is not None
    assert stored.value == bad
