"""Workers that stand still at any call to the store, for as long as it takes, neither lose nor double money."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from late_worker import Worker
from stage import START, Stage

from pilotlight.adapters.state.memory import MemoryState
from pilotlight.decide.money.budget_limits import terms, window
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.decisions import Buy, CallStep, Plan, Record
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.nodes.pool_state import Booting, PoolState
from pilotlight.facts.policy import ClassPolicy
from pilotlight.flow.budgets import budget_holds, renew_holds
from pilotlight.flow.observe.snapshot import Snapshot
from pilotlight.flow.records import ledger
from pilotlight.ports.state import State
from pilotlight.state_schema.billing_records import CAP, HOLD
from pilotlight.units import HOUR

BUDGETS = (
    Budget(name="day", usd=Decimal(40), period="day", timezone="America/New_York"),
    Budget(name="now", usd=Decimal(9), period="hour"),
)
STOP = ClassPolicy(gpu_models="any", idle_timeout=300, max_runtime=2 * HOUR, may_move=("hard-cap",))


class Books(RuleBasedStateMachine):
    """A fleet of nodes at a dollar an hour, workers that stand still, and a judge that only knows the nodes' lives."""

    def __init__(self) -> None:
        super().__init__()
        on = Stage(budgets=BUDGETS, classes={"batch": STOP})
        self.at, self.count = START, 0
        self.state = MemoryState(self)
        self.deps = replace(on.deps, state=self.state)
        offering = next(o for o in on.deps.offerings if o.pool == "one")
        self.terms = terms(offering, on.deps.policy, workload_class="batch", team="")
        self.lit: dict[str, datetime] = {}
        self.lives: list[tuple[datetime, datetime]] = []
        self.workers: list[Worker] = []

    def now(self) -> datetime:
        """The one clock."""
        return self.at

    def stopwatch(self) -> Callable[[], float]:
        """A watch on it."""
        begun = self.at
        return lambda: (self.at - begun).total_seconds()

    def snapshot(self) -> Snapshot:
        """What a look shows now."""
        booting = tuple(Booting(instance=name, requested_at=at) for name, at in self.lit.items())
        pool = PoolState(name="one", desired=len(booting), booting=booting)
        was = ledger.recall(self.state, "c")
        return Snapshot(view=ClusterView(), pools=(pool,), memory=was.memory, was=was, flights=(), now=self.at)

    def _look(self) -> None:
        renew_holds.keep(self.deps, self.snapshot())

    @rule(nodes=st.integers(1, 3), sends=st.booleans())
    def buy(self, nodes: int, sends: bool) -> None:
        """Reserve, stopped nowhere, and perhaps launch."""
        self.count += 1
        decision = f"d{self.count:04d}"
        refused = budget_holds.reserve(self.deps, decision, 0, [self.terms] * nodes, self.at)
        self._file(decision, nodes, sent=sends and not refused)
        if not refused and sends:
            self.lit |= {f"n{self.count}-{n}": self.at for n in range(nodes)}

    @rule(nodes=st.integers(1, 3))
    def buy_late(self, nodes: int) -> None:
        """Reserve with stops; nothing is ever launched, as for a worker whose call is revoked."""
        self.count += 1
        decision, at = f"d{self.count:04d}", self.at
        wanted = [self.terms] * nodes
        self._file(decision, nodes, sent=False)
        self._begin(lambda state: budget_holds.reserve(replace(self.deps, state=state), decision, 0, wanted, at))

    @rule()
    def look_late(self) -> None:
        """A look begins, and its worker stands still at every call."""
        snapshot = self.snapshot()
        self._begin(lambda state: renew_holds.keep(replace(self.deps, state=state), snapshot))

    @rule(n=st.integers(0, 9))
    def end(self, n: int) -> None:
        """A node goes, and a worker that is not late settles it."""
        self._look()
        if self.lit:
            name = sorted(self.lit)[n % len(self.lit)]
            self.lives.append((self.lit.pop(name), self.at))
            budget_holds.settle(self.deps, {name}, ())

    @rule(n=st.integers(0, 9))
    def settle_late(self, n: int) -> None:
        """A node goes, and the worker that settles it stands still: another finds it gone."""
        self._look()
        self.at += timedelta(seconds=1)
        if self.lit:
            name = sorted(self.lit)[n % len(self.lit)]
            self.lives.append((self.lit.pop(name), self.at))
            self._begin(lambda state: budget_holds.settle(replace(self.deps, state=state), {name}, ()))
            self._look()

    @rule(which=st.integers(0, 9), calls=st.integers(1, 12))
    def step(self, which: int, calls: int) -> None:
        """Some late worker goes on for some calls."""
        for _ in range(calls if self.workers else 0):
            self.workers[which % len(self.workers)].step()

    @rule(which=st.integers(0, 9))
    def die(self, which: int) -> None:
        """Some late worker never comes back."""
        if self.workers:
            self.workers.pop(which % len(self.workers)).die()

    @rule(minutes=st.sampled_from([1, 10, 60, 300, 700]))
    def wait(self, minutes: int) -> None:
        """Time passes; somebody looks before it has."""
        self._look()
        self.at += timedelta(minutes=minutes)
        self._look()

    def _file(self, decision: str, nodes: int, *, sent: bool) -> None:
        """What became of its one call, as whoever holds the lease files it."""
        buy = Buy(
            pool="one",
            offering="one",
            zone="",
            count=nodes,
            usd_per_hour=Decimal(1),
            boot_s=0,
            demands=(),
            shapes=(),
            why="",
        )
        step = CallStep(n=0, call="grow", pool="one", target="one", count=nodes if sent else 0)
        step = msgspec.structs.replace(step, state="done" if sent else "revoked")
        record = Record(
            id=decision,
            cluster="c",
            flow="test",
            trigger="test",
            at=self.at,
            status="open",
            plan=Plan(buys=(buy,)),
            steps=(step,),
        )
        ledger.close(self.state, record)

    def _begin(self, work: Callable[[State], Any]) -> None:
        self.workers.append(Worker(self.state, work))

    @invariant()
    def nothing_is_held_above_a_rate(self) -> None:
        """Whoever reserves, dollars an hour stay under their limit."""
        held = [e.value.total for e in CAP.scan(self.state) if "/usd_per_hour/" in e.name]
        assert sum(held, Decimal(0)) <= 9

    def teardown(self) -> None:
        """In the end every day has cost what its nodes lived in it, to the cent, and nothing is left."""
        self._look()
        for name in list(self.lit):
            self.lives.append((self.lit.pop(name), self.at))
            budget_holds.settle(self.deps, {name}, ())
        for worker in self.workers:
            worker.finish()
        self.at += timedelta(minutes=5)
        self._look()
        assert list(HOLD.scan(self.state)) == []
        settled = dict[str, Decimal]()
        for entry in CAP.scan(self.state):
            assert (entry.value.held, entry.value.done) == ({}, {}), entry
            if "/usd/" in entry.name and entry.value.settled:
                settled[entry.name.rpartition("/")[2]] = round(entry.value.settled, 6)
        assert settled == judged(self.lives)


def judged(lives: list[tuple[datetime, datetime]]) -> dict[str, Decimal]:
    """What each day of New York cost: minutes lived at a dollar an hour, at least one, worked out by themselves."""
    sums: dict[str, Decimal] = {}
    for begun, ended in lives:
        at, end = begun, max(ended, begun + timedelta(minutes=1))
        while at < end:
            start, then = window(BUDGETS[0], at)
            until = min(end, then)
            key = f"{start:%Y%m%dT%H%M}"
            sums[key] = sums.get(key, Decimal(0)) + Decimal((until - at).total_seconds()) / 3600
            at = until
    return {key: round(usd, 6) for key, usd in sums.items()}


TestLateWorkers = Books.TestCase
TestLateWorkers.settings = settings(
    max_examples=25, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_a_purchase_that_was_never_made_leaves_no_hold_for_a_newer_node() -> None:
    """A worker that died after its call was revoked leaves a hold; the next purchase's node costs its own life."""
    books = Books()
    books.buy(1, sends=False)
    books.at += timedelta(seconds=50)
    books.buy(1, sends=True)
    books._look()
    [hold] = [entry.value for entry in HOLD.scan(books.state)]
    assert (hold.id, hold.since) == ("d0002.0.0", books.at)
    books.at += timedelta(minutes=10)
    books.teardown()


def test_a_look_from_before_a_node_ended_holds_nothing_for_it_again() -> None:
    """Two looks stand still while their nodes end and are charged: what they do afterwards costs nothing."""
    books = Books()
    books.buy(1, sends=True)
    books.look_late()
    books.end(0)
    books.buy(1, sends=True)
    books.step(which=0, calls=5)
    books.look_late()
    books.teardown()
