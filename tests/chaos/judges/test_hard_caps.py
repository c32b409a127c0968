"""The judges of hard budgets: what nodes cost beyond one is what was lit while nobody could look, and people know.

Whether a stop was due is asked of everybody who pays for a node, once its holds say who.
"""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from harness.faults.luck import Outage
from harness.judges.hard_caps import passed, unseen
from harness.judges.invariants import Invariants
from harness.judges.strangers_books import StrangersBooks
from harness.scene import CATALOG, START
from harness.serial_run import is_look

from pilotlight.facts.money.budgets import Terms
from pilotlight.facts.money.money_policy import Budget, BudgetScope
from pilotlight.facts.policy import ClassPolicy, Policy
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.units import HOUR
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World

POOL = "one-on-demand"
STORE = Outage("state", HOUR, 2 * HOUR)


def _four_hours(usd: Decimal = Decimal(3)) -> StrangersBooks:
    """A node at a dollar an hour that was lit for four hours, under a hard budget of three dollars a day, or others."""
    books = StrangersBooks(Policy(version=1, budgets=(Budget(name="day", usd=usd, period="day"),)))
    books.log({"event": "launch", "node": "n1", "type": "one", "capacity_type": "on-demand", "t": 0.0})
    terms = Terms(
        pool=POOL,
        team="",
        workload_class="batch",
        usd_per_hour=Decimal(1),
        gpus=1,
        boot_s=0,
        idle_s=0,
        run_s=HOUR,
        run_source="",
        typical_s=HOUR,
    )
    books.bought(["n1"], (terms,), HOUR)
    books.log({"event": "terminate", "node": "n1", "t": 4 * HOUR})
    return books


@pytest.mark.parametrize(
    ("down", "told", "says"),
    [
        pytest.param((), True, "passed by 1.00, and 0.00 were lit in outages", id="nothing was down"),
        pytest.param((STORE,), True, "", id="the store was down for that long"),
        pytest.param((STORE,), False, "nobody was told", id="and nobody was told"),
        pytest.param((STORE._replace(port="channel"),), True, "0.00 were lit", id="a channel stops no look"),
        pytest.param((STORE, STORE._replace(port="pools")), True, "", id="an hour in which two are down is one hour"),
        pytest.param((STORE._replace(end_s=1.5 * HOUR),), True, "0.52 were lit", id="it was down for half of that"),
    ],
)
def test_what_is_beyond_a_hard_budget(down: tuple[Outage, ...], told: bool, says: str) -> None:
    """An overrun is a violation but for what was lit in an outage of store, API server or cloud, where that is told."""
    found = list(passed(_four_hours(), 5 * HOUR, down, lambda name, day: told))
    assert [says in line for line in found] == ([True] if says else [])


@pytest.mark.parametrize(
    ("unread", "says"),
    [
        pytest.param((POOL, 60.0, 600.0), "", id="its pool was unread soon after: not known until it joined"),
        pytest.param((POOL, 61.0, 600.0), "0.00 were lit", id="it was there for more than a tick before"),
        pytest.param((POOL, -60.0, 0.0), "0.00 were lit", id="its pool was read again by then"),
        pytest.param(("eight-spot", -60.0, 600.0), "0.00 were lit", id="another pool was unread"),
    ],
)
def test_what_nobody_could_know_of_is_beyond_a_hard_budget(unread: tuple[str, float, float], says: str) -> None:
    """What an unread pool's group makes anew may pass a budget by what it costs until it joins, and by no more."""
    pool, from_s, to_s = unread
    for limit, most in ((Decimal("3.95"), says), (Decimal("3.9"), says or "0.06 were lit")):
        books = _four_hours(limit)
        books.unread.note((pool,), from_s)
        books.unread.note((), to_s)
        found = list(passed(books, 5 * HOUR, (), lambda name, day: True))
        assert [most in line for line in found] == ([True] if most else [])


def test_a_cluster_at_which_no_look_ends_is_unseen() -> None:
    """Workers that die one after the other see to no budget; two looks a few minutes apart do."""
    assert list(unseen((60.0, 300.0, 1500.0), 1600.0)) == [Outage("cluster", 300.0, 1500.0)]


@pytest.mark.parametrize(
    ("function", "answer", "ends"),
    [
        ("capacity_reconcile", {"outcome": "seen", "decision": ""}, True),
        ("capacity_reconcile", {"outcome": "at-work", "decision": ""}, False),
        ("spot_interruption", {"outcome": "done", "decision": ""}, False),
        ("spot_interruption", {"outcome": "done", "decision": "01795179966231-5856601e"}, True),
        ("billing_tick", {"outcome": "done", "decision": ""}, False),
    ],
)
def test_a_notice_that_decides_nothing_ends_no_look(function: str, answer: dict[str, object], ends: bool) -> None:
    """That an interruption goes on, or was heard before, is said without a look at the budgets' nodes."""
    assert is_look(function, answer) is ends


POLICY = Policy(
    version=1,
    classes={"batch": ClassPolicy(may_move=("hard-cap",))},
    budgets=(
        Budget(name="few", scope=BudgetScope(team="red"), usd=Decimal("0.5"), period="day", hard=True),
        Budget(name="many", scope=BudgetScope(team="blue"), usd=Decimal(1000), period="day", hard=True),
    ),
)
"""Red's dollars are fewer than a stretch costs, blue's are plenty."""


class Bench:
    """A node that runs red's pod, and the judge beside it."""

    def __init__(self, policy: Policy = POLICY) -> None:
        books = StrangersBooks(policy)
        self.world = World(CATALOG, [WorldPool(name=POOL, instance_type="one", max=1)], log=books.log)
        self.judges = Invariants(self.world, policy, books, "c")
        (self.node,) = self.world.launch(POOL)
        self.world.advance(HOUR / 4)
        made = shape(gpu=GpuRequest(count=1), workload_class="batch", team="red")
        self.world.submit(PodDemand(uid="a", namespace="red", name="a", shape=made, created_at=START), 4 * HOUR)

    def holds(self, *teams: str) -> None:
        """Its hold is written: these teams pay, each for as much."""
        owners = [{"team": team, "workload_class": "batch", "part": str(1 / len(teams))} for team in teams]
        terms: dict[str, Any] = {"pool": POOL, "usd_per_hour": "1", "gpus": 1, "workload_class": "batch"}
        terms |= {"team": teams[0], "owners": owners if owners[1:] else []}
        hold = {"since": START.isoformat(), "instance": self.node, "terms": terms}
        self.judges.wrote("w0", "hold/c/1", json.dumps({"items": {"h": hold}}).encode())

    def stops(self) -> None:
        """A stop by a hard cap is written down."""
        self.judges.wrote("w0", "rescue/c/1", json.dumps({"kind": "hard-cap", "instance": self.node}).encode())

    def false(self) -> list[str]:
        """What is wrong with it once the pod is made to leave."""
        self.judges.evicting("a")
        return [each.text for each in self.judges.violations]


@pytest.fixture
def bench() -> Bench:
    """A bench."""
    return Bench()


@pytest.mark.parametrize("teams", [("blue", "red"), ("red", "blue")])
def test_a_stop_is_due_where_one_of_those_who_share_a_node_has_no_room(bench: Bench, teams: tuple[str, ...]) -> None:
    """Whoever is named first: a node goes on while all of its owners can pay their parts."""
    bench.holds(*teams)
    bench.stops()
    assert bench.false() == []


def test_a_stop_is_judged_by_the_holds_of_its_look(bench: Bench) -> None:
    """Holds change nodes in the look that stops one, and are written after the stop: its node is red's by then."""
    bench.holds("blue")
    bench.stops()
    bench.holds("red")
    assert bench.false() == []


@pytest.mark.parametrize("later", [(), ("blue", "green")], ids=["its owner's", "others'"])
def test_a_stop_of_a_node_whose_owners_have_room_is_false(bench: Bench, later: tuple[str, ...]) -> None:
    """Also where others pay for it from then on who have room too."""
    bench.holds("blue")
    bench.stops()
    if later:
        bench.holds(*later)
    assert bench.false() == [f"a was evicted from {bench.node} though many has room"]


@pytest.mark.parametrize(("usd", "says"), [("0.1", ""), ("0.5", "though few has room")])
def test_a_pod_leaves_alone_where_its_own_stretch_has_no_room(usd: str, says: str) -> None:
    """Red runs on blue's node: what its stretch takes counts too, and a budget that holds that has room."""
    few, *others = POLICY.budgets
    rules = msgspec.structs.replace(POLICY, budgets=(msgspec.structs.replace(few, usd=Decimal(usd)), *others))
    bench = Bench(rules)
    bench.holds("blue")
    rescue = {"kind": "out-of-budget", "instance": bench.node, "leaving": ["a"]}
    bench.judges.wrote("w0", "rescue/c/1", json.dumps(rescue).encode())
    assert [says in line for line in bench.false()] == ([True] if says else [])


def test_half_of_an_exchange_takes_a_node_from_nobody() -> None:
    """Two holds name a node for a while, as a worker died halfway: the older one goes on with it, and all its hours are
    that one's once. Charged as much, or a minute less, no budget is wrong; at an hour less it is."""
    books = StrangersBooks(POLICY)
    for node in ("n1", "n2"):
        books.log({"event": "launch", "node": node, "type": "one", "capacity_type": "on-demand", "t": 0.0})
    for node, n, team, matched_s in (
        ("n1", 0, "red", 0),
        ("n2", 1, "blue", 0),
        ("n1", 1, "blue", 7200),
        ("n1", 0, "red", 0),
    ):
        terms = {"pool": POOL, "usd_per_hour": "1", "gpus": 1, "workload_class": "batch", "team": team}
        at = (START + timedelta(seconds=matched_s)).isoformat()
        hold = {"since": START.isoformat(), "matched_at": at, "instance": node, "terms": terms}
        books.wrote(f"hold/c/{n}", json.dumps({"items": {"h": {**hold, "frozen": True}}}).encode(), matched_s)
        books.wrote(f"hold/c/{n}", json.dumps({"items": {"h": hold}}).encode(), matched_s)
    books.log({"event": "terminate", "node": "n1", "t": 3 * HOUR})
    for usd, wrong in (("3", False), ("2.99", False), ("2", True)):
        found = books.settled_wrongly({"few/usd/20261120T0000": json.dumps({"settled": usd}).encode()}, 3 * HOUR)
        assert any(line.startswith("few/") for line in found) == wrong
