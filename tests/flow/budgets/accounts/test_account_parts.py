"""An account in parts: room moves between them, and whoever dies or stands still on the way never makes any."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import count, islice
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from late_worker import Worker
from sized_store import Sized
from stage import START, Stage

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.adapters.state.sqlite import SqliteState
from pilotlight.decide.money import budget_balance as moves
from pilotlight.decide.money.budget_limits import meters, terms
from pilotlight.decide.money.economics import stop_s
from pilotlight.facts.money.budgets import Account, Meter, Terms
from pilotlight.facts.money.money_policy import Budget
from pilotlight.flow.budgets import budget_accounts, budget_holds
from pilotlight.flow.deps import Deps
from pilotlight.ports.state import LARGEST, State
from pilotlight.state_schema.billing_records import CAP, HOLD


def stage(usd: int) -> Stage:
    """A cluster with one hard budget of so many dollars a month."""
    return Stage(budgets=(Budget(name="all", usd=Decimal(usd)),))


def dollar(on: Stage) -> Terms:
    """A node for which a dollar is held: an hour at a dollar, with no boot, its stop included."""
    own = terms(on.deps.offerings[0], on.deps.policy, workload_class="batch", team="")
    return msgspec.structs.replace(own, usd_per_hour=Decimal(1), boot_s=0, idle_s=0, run_s=3600 - stop_s(), minimum_s=0)


def meter_of(deps: Deps) -> Meter:
    """The budget's one limit, in the window of the stage's noon."""
    [meter] = meters(deps.policy.budgets, START)
    return meter


def parts_of(state: State) -> dict[int, Account]:
    """Every part by its number."""
    return {budget_accounts.number(e.name.removeprefix("c/")): e.value for e in CAP.scan(state, "c/")}


def judge(state: State, limit: int) -> None:
    """Shares never add up to more than the limit, nor does what is settled and held."""
    found = parts_of(state)
    assert sum((moves.share(part, n, Decimal(limit)) for n, part in found.items()), Decimal(0)) <= limit, found
    assert sum((part.total for part in found.values()), Decimal(0)) <= limit, found


def all_room_is_there(deps: Deps, limit: int) -> None:
    """The next who needs it has every dollar that is left, from whatever part, and not one more."""
    meter = meter_of(deps)
    left = limit - budget_accounts.read(deps, meter).total
    last = f"{meter.key}/{max(parts_of(deps.state))}" if max(parts_of(deps.state)) else meter.key
    assert not budget_accounts.reserve(deps, meter, last, {"more": left + Decimal("0.01")}, lambda: True)
    assert budget_accounts.reserve(deps, meter, last, {"all": left}, lambda: True)
    found = budget_accounts.finish(deps, budget_accounts.read(deps, meter))
    assert (
        sum((moves.share(e.value, budget_accounts.number(e.name), Decimal(limit)) for e in found), Decimal(0)) == limit
    )
    assert not any(e.value.giving or e.value.taken for e in found)


@pytest.fixture
def small_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two holds fill a record."""
    monkeypatch.setattr(moves, "MOST_HELD", 2)


STORES: dict[str, Callable[[Stage, Path], State]] = {
    "memory": lambda on, _: MemoryState(on.deps.clock),
    "sqlite": lambda on, folder: SqliteState(folder / "state.db", on.deps.clock),
}


@pytest.mark.parametrize("store", STORES.values(), ids=STORES.keys())
def test_more_holds_than_a_record_takes_fill_the_budget_to_the_dollar(
    store: Callable[[Stage, Path], State], tmp_path: Path
) -> None:
    """3,600 nodes fit a budget of $3,600 and no other does; what one leaves behind in any part, another gets."""
    on = stage(3600)
    deps = replace(on.deps, state=store(on, tmp_path))
    for n in range(4):
        assert budget_holds.reserve(deps, f"d{n}", 0, [dollar(on)] * 900, START) == ""
    run = "a run may take 0.928 h: classes.batch has no max_runtime"
    why = f"budget all: $3,601.00 of $3,600.00 a month would be held ({run})"
    assert budget_holds.reserve(deps, "d5", 0, [dollar(on)], START) == why
    assert [len(part.held) for part in parts_of(deps.state).values()] == [1500, 1500, 600]
    judge(deps.state, 3600)
    ended = START + timedelta(minutes=15)
    for entry in budget_accounts.every_hold(deps)[::120]:
        budget_holds.end(deps, entry, ended)
    assert budget_accounts.read(deps, meter_of(deps)).total == 3600 - 30 * Decimal("0.75")
    assert budget_holds.reserve(deps, "d6", 0, [dollar(on)] * 22, START) == ""
    assert budget_holds.reserve(deps, "d7", 0, [dollar(on)], START) != ""
    judge(deps.state, 3600)
    all_room_is_there(deps, 3600)


@pytest.mark.usefixtures("small_records")
@pytest.mark.parametrize("store", STORES.values(), ids=STORES.keys())
def test_a_crash_at_any_call_of_a_transfer_loses_room_for_a_while_and_makes_none(
    store: Callable[[Stage, Path], State], tmp_path: Path
) -> None:
    """Wherever a worker dies while room moves from two parts to a third, the next who needs the room has it all."""
    crashes = 0
    for calls in count(0):
        on = stage(6)
        folder = tmp_path / str(calls)
        folder.mkdir()
        deps = replace(on.deps, state=store(on, folder))
        scattered(deps, dollar(on))
        worker = Worker(deps.state, partial(_transfer, deps=deps))
        for _ in range(calls):
            worker.step()
        if worker.over:
            break
        crashes += 1
        worker.die()
        judge(deps.state, 6)
        all_room_is_there(deps, 6)
        judge(deps.state, 6)
    assert crashes > 30


def scattered(deps: Deps, node: Terms) -> None:
    """Four dollars are held in two parts, one in a third, and then two are free in the first two."""
    assert budget_holds.reserve(deps, "a", 0, [node] * 5, START) == ""
    for entry in budget_accounts.every_hold(deps):
        if entry.value.id in ("a.0.0", "a.0.2"):
            budget_holds.end(deps, entry, START, void=True)
    assert len(parts_of(deps.state)) == 3
    meter = meter_of(deps)
    assert budget_accounts.gather(deps, meter, f"{meter.key}/1", Decimal(2))


def _transfer(state: State, deps: Deps) -> None:
    meter = meter_of(deps)
    assert budget_accounts.reserve(
        replace(deps, state=state), meter, f"{meter.key}/2", {"late": Decimal(3)}, lambda: True
    )


@pytest.mark.usefixtures("small_records")
def test_a_crash_at_any_call_of_a_purchase_leaves_no_part_that_nobody_knows() -> None:
    """Wherever a purchase that opens new parts dies, every dollar that was held is seen by whoever counts next."""
    for calls in count(0):
        on = stage(9)
        assert budget_holds.reserve(on.deps, "a", 0, [dollar(on)], START) == ""
        worker = Worker(on.deps.state, partial(_buy_five, on=on))
        for _ in range(calls):
            worker.step()
        if worker.over:
            break
        worker.die()
        for entry in budget_accounts.every_hold(on.deps):
            for name in entry.value.accounts:
                assert name in [known.name for known in budget_accounts.read(on.deps, meter_of(on.deps))], calls
        judge(on.deps.state, 9)


def _buy_five(state: State, on: Stage) -> None:
    assert budget_holds.reserve(replace(on.deps, state=state), "b", 0, [dollar(on)] * 5, START) == ""


LIMIT = 12


class Rooms(RuleBasedStateMachine):
    """Records of two holds, workers that stand still or die at any call, and a judge that knows lives and the limit."""

    def __init__(self) -> None:
        super().__init__()
        self.most, moves.MOST_HELD = moves.MOST_HELD, 2
        on = stage(LIMIT)
        self.at, self.decisions = START, count(1)
        self.node = dollar(on)
        self.deps = replace(on.deps, state=MemoryState(self))
        self.bought: dict[str, datetime] = {}
        self.asked: dict[str, int] = {}
        self.ended: dict[str, datetime] = {}
        self.workers: list[tuple[str, Worker]] = []

    def now(self) -> datetime:
        """The one clock."""
        return self.at

    def stopwatch(self) -> Callable[[], float]:
        """A watch on it."""
        begun = self.at
        return lambda: (self.at - begun).total_seconds()

    @rule(nodes=st.integers(1, 5), calls=st.integers(0, 40))
    def buy(self, nodes: int, calls: int) -> None:
        """A purchase begins and gets so far."""
        decision = f"d{next(self.decisions):04d}"
        self.asked[decision], at = nodes, self.at
        answers: list[str] = []

        def work(state: State) -> None:
            deps = replace(self.deps, state=state)
            answers.append(budget_holds.reserve(deps, decision, 0, [self.node] * nodes, at))
            if answers == [""]:
                self.bought |= {f"{decision}.0.{n}": at for n in range(nodes)}

        self._begin(decision, work, calls)

    @rule(which=st.integers(0, 20), calls=st.integers(0, 30))
    def stop(self, which: int, calls: int) -> None:
        """A node goes; somebody begins to settle it."""
        for id in sorted(self.bought)[which : which + 1]:
            ended = self.ended.setdefault(id, self.at)
            self._begin("", partial(self._settle, id=id, ended=ended), calls)

    @rule(part=st.integers(0, 5), need=st.integers(1, 6), calls=st.integers(0, 20))
    def transfer(self, part: int, need: int, calls: int) -> None:
        """Somebody begins to move room to a part."""
        meter = meter_of(self.deps)
        known = [entry.name for entry in budget_accounts.read(self.deps, meter)]
        to = known[part % len(known)]

        def work(state: State) -> None:
            budget_accounts.gather(replace(self.deps, state=state), meter, to, Decimal(need))

        self._begin("", work, calls)

    @rule(which=st.integers(0, 9), calls=st.integers(1, 12))
    def step(self, which: int, calls: int) -> None:
        """A late worker goes on for some calls."""
        if self.workers:
            for _ in range(calls):
                self.workers[which % len(self.workers)][1].step()

    @rule(which=st.integers(0, 9))
    def die(self, which: int) -> None:
        """A late worker never comes back. What it was buying is given back, unless it had it all."""
        if self.workers:
            decision, worker = self.workers.pop(which % len(self.workers))
            worker.die()
            self._give_back(decision)

    @rule(minutes=st.sampled_from([3, 6, 36]))
    def wait(self, minutes: int) -> None:
        """Time passes, in steps whose dollars are exact, and no further than a node is held for."""
        later = self.at + timedelta(minutes=minutes)
        self.at = later if later <= START + timedelta(minutes=60) else self.at

    @invariant()
    def no_room_is_made(self) -> None:
        """At every moment."""
        judge(self.deps.state, LIMIT)

    def teardown(self) -> None:
        """In the end what is settled is what the nodes lived, and every other dollar of the limit is free."""
        try:
            for _, worker in self.workers:
                worker.finish()
            for decision in self.asked:
                self._give_back(decision)
            for id in self.bought:
                self._settle(self.deps.state, id, self.ended.setdefault(id, self.at))
            assert list(HOLD.scan(self.deps.state)) == []
            found = parts_of(self.deps.state) or {0: Account()}
            assert not any(part.held or part.done for part in found.values())
            settled = sum((part.settled for part in found.values()), Decimal(0))
            assert round(settled, 6) == round(sum(map(self._lived, self.bought), Decimal(0)), 6)
            if parts_of(self.deps.state):
                all_room_is_there(self.deps, LIMIT)
        finally:
            moves.MOST_HELD = self.most

    def _lived(self, id: str) -> Decimal:
        return Decimal((self.ended[id] - self.bought[id]).total_seconds()) / 3600

    def _begin(self, decision: str, work: Callable[[State], None], calls: int) -> None:
        worker = Worker(self.deps.state, work)
        for _ in range(calls):
            worker.step()
        self.workers.append((decision, worker))

    def _give_back(self, decision: str) -> None:
        ids = {f"{decision}.0.{n}" for n in range(self.asked.get(decision, 0))}
        if ids.isdisjoint(self.bought):
            budget_holds.settle(self.deps, (), ids)

    def _settle(self, state: State, id: str, ended: datetime) -> None:
        found = HOLD.get(state, f"c/{id}")
        if found is not None:
            budget_holds.end(replace(self.deps, state=state), found, ended)


TestRooms = Rooms.TestCase
TestRooms.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)


def drawn(node: Terms, rng: Random) -> Iterator[Terms]:
    """Nodes of many prices, teams and pools."""
    while True:
        usd = Decimal(rng.randrange(1, 10**9)) / 10**8
        team, pool = (f"a-{what}-with-a-long-name-{rng.randrange(200)}" for what in ("team", "pool"))
        yield msgspec.structs.replace(node, usd_per_hour=usd, team=team, pool=pool)


def test_no_record_outgrows_its_limit_with_twenty_thousand_holds() -> None:
    """20,000 nodes of drawn prices in one budget, bought in drawn numbers, some gone again: no record nears it."""
    on, rng = stage(10**6), Random(11)
    state = Sized(on.deps.clock)
    deps, nodes = replace(on.deps, state=state), drawn(dollar(on), rng)
    bought = 0
    while bought < 20_000:
        size = min(rng.randrange(1, 1500), 20_000 - bought)
        decision = f"{rng.randrange(10**14):014d}-{rng.getrandbits(32):08x}"
        assert budget_holds.reserve(deps, decision, rng.randrange(100), list(islice(nodes, size)), START) == ""
        bought += size
        found = HOLD.scan(state, f"c/{decision}")
        for entry in list(found)[:5]:
            budget_holds.end(deps, entry, START + timedelta(minutes=rng.randrange(60)))
    assert sum(len(part.held) for part in parts_of(state).values()) > 19_000
    assert max(state.largest.values()) < LARGEST / 2
    judge(state, 10**6)
