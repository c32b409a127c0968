"""Every decision stands in its cluster's audit chain, written with it, whatever dies in between."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from failing_store import Failing
from stage import Stage

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.errors import Unavailable
from pilotlight.facts.decisions import Plan, Record
from pilotlight.flow.records import ledger
from pilotlight.ports.state import ABSENT, State
from pilotlight.state_schema.decision_records import DECISION, HEAD, LINKS, LINKS_AT_HEAD
from pilotlight.tools.lint.audit_proof import AuditLine, ChainProof, lines, links, strangers, verify
from pilotlight.world.world_clock import VirtualClock

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def verdict(state: State) -> ChainProof:
    """What verifying a cluster's chain says."""
    return verify(lines(state, "c"))


def file(state: State, n: int, trigger: str = "a tick") -> Record:
    """A decision is begun and filed."""
    record = Record(
        id=f"{n:05d}-aa",
        cluster="c",
        flow="provision",
        trigger=trigger,
        at=NOON + timedelta(seconds=n),
        status="open",
        plan=Plan(),
        steps=(),
    )
    ledger.write(state, record, if_version=ABSENT)
    ledger.close(state, record)
    return record


def test_a_purchase_stands_in_the_chain_with_what_it_rests_on() -> None:
    """Input, digests of the facts and the policy, prices with their dates, options, steps and answers are hashed."""
    stage = Stage()
    stage.event(stage.submit("a"))
    exported = list(lines(stage.deps.state, "c"))
    found = verify(exported)
    assert (found.tampered, found.last) == (None, 1)
    record = msgspec.json.decode(msgspec.json.decode(exported[0], type=AuditLine).record)
    basis = record["basis"]
    assert len(basis["facts"]) == len(basis["policy"]) == 64
    price = next(p for p in basis["prices"] if p["offering"] == record["plan"]["buys"][0]["offering"])
    assert (price["usd_per_hour"], price["priced_at"]) == ("1", "2026-11-01T00:00:00Z")
    assert record["trigger"]
    assert [step["state"] for step in record["steps"]] == ["done"]


def test_equal_facts_have_equal_digests() -> None:
    """Two clusters in the same state are looked at alike; one more pod makes another digest."""

    def digest(more: bool) -> str:
        stage = Stage()
        pod = stage.submit("a")
        if more:
            stage.submit("b")
        stage.event(pod)
        basis = ledger.filed_records(stage.deps.state, "c")[0].basis
        assert basis is not None
        return basis.facts

    assert digest(False) == digest(False) != digest(True)


def test_a_chain_goes_on_behind_its_head(clock: VirtualClock) -> None:
    """Links leave the head's record for records of their own, none is lost on the way, and any part can be read."""
    state = MemoryState(clock)
    for n in range(1, 3 * LINKS_AT_HEAD + 3):
        file(state, n)
    head = HEAD.get(state, "c")
    assert head is not None
    assert len(head.value.links) == 2
    assert len(list(LINKS.scan(state, "c/"))) == 3
    found = verdict(state)
    assert (found.tampered, found.first, found.last) == (None, 1, 3 * LINKS_AT_HEAD + 2)
    assert [link.seq for link in links(state, "c", 20)] == list(range(21, found.last + 1))


@pytest.mark.parametrize("at", range(1, 5))
@pytest.mark.parametrize("before", [0, LINKS_AT_HEAD])
def test_a_worker_that_dies_while_it_files_breaks_no_chain(clock: VirtualClock, at: int, before: int) -> None:
    """Whoever finds the decision open files it again; it has one link, or one whose record it is not."""
    state = Failing(clock)
    for n in range(1, before + 1):
        file(state, n)
    state.at = at
    try:
        file(state, before + 1)
    except Unavailable:
        for record, _ in ledger.open_records(state, "c"):
            ledger.close(state, record)
    state.at = 0
    file(state, before + 2)
    assert verdict(state).tampered is None


def test_two_who_file_the_same_decision_leave_one_record(clock: VirtualClock) -> None:
    """One that stood still writes its own after the other's: both have a link, and what is kept is proved."""
    state = MemoryState(clock)
    record = file(state, 1)
    ledger.close(state, msgspec.structs.replace(record, trigger="another worker"))
    first = verdict(state)
    ledger.close(state, record)  # The same again adds nothing.
    assert (first.last, first.tampered) == (2, None)
    assert (verdict(state).last, verdict(state).tampered) == (2, None)


def test_a_record_that_is_edited_or_deleted_in_the_store_is_named(clock: VirtualClock) -> None:
    """By its place and its id."""
    state = MemoryState(clock)
    for n in range(1, 40):
        file(state, n)
    key = DECISION.key("c/00017-aa")
    stored = state.get(key)
    assert stored is not None
    state.put(key, stored.value.replace(b"a tick", b"a tock"))
    wrong = verdict(state).tampered
    assert wrong is not None
    assert (wrong.seq, wrong.how, wrong.id) == (17, "edited", "00017-aa")
    state.delete(key)
    gone = verdict(state).tampered
    assert gone is not None
    assert (gone.seq, gone.how, gone.id) == (17, "cut", "00017-aa")


def test_a_decision_that_no_link_names_is_a_stranger(clock: VirtualClock) -> None:
    """What somebody puts into the store beside the chain is found; what was filed before the chain began is not."""
    state = MemoryState(clock)
    record = file(state, 5)
    DECISION.put(state, "c/00001-aa", msgspec.structs.replace(record, id="00001-aa"))
    assert strangers(state, "c") == []
    DECISION.put(state, "c/00009-aa", msgspec.structs.replace(record, id="00009-aa"))
    assert strangers(state, "c") == ["00009-aa"]


def test_one_write_more_is_all_that_it_costs(clock: VirtualClock) -> None:
    """Filing a decision puts its record and the head; every sixteenth time the links behind it, too."""

    class Counting(MemoryState):
        puts = 0

        def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: float | None = None) -> int:
            self.puts += 1
            return super().put(key, value, if_version=if_version, ttl_s=ttl_s)

    state = Counting(clock)
    for n in range(1, 2 * LINKS_AT_HEAD + 1):
        file(state, n)
    assert state.puts == 3 * 2 * LINKS_AT_HEAD + 1  # Each is written open, linked, filed.


@pytest.mark.parametrize("before", [1, 15, 16, 17, 20, 32, 33, 40])
def test_a_cost_that_is_filed_again_is_in_the_chain_once(before: int) -> None:
    """Two ticks file the same: it is looked for in the links at the head and in those that left it last."""
    state = MemoryState(VirtualClock(NOON))
    names = [f"cost{n}" for n in range(before)]
    for name in names:
        ledger.chain(state, "c", "cost", name, NOON, f"digest of {name}")
    for name in names[-LINKS_AT_HEAD:]:
        ledger.chain(state, "c", "cost", name, NOON, f"digest of {name}")
    head = HEAD.get(state, "c")
    assert head is not None
    assert head.value.links[-1].seq == before
    ledger.chain(state, "c", "cost", names[-1], NOON, "another digest")
    after = HEAD.get(state, "c")
    assert after is not None
    assert after.value.links[-1].seq == before + 1
