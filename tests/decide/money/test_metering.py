"""The live meter: teams, idle and shared add up to what nodes cost, whatever happens and however often it looks."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_fleet import A100, T4, node, offering

from pilotlight.decide.money.economics import billed_cost
from pilotlight.decide.money.gpu_shares import holdings
from pilotlight.decide.money.holds import Lit
from pilotlight.decide.money.metering import MeterLook, count_day, cuts, day_start, metered_node, stopped_node
from pilotlight.decide.money.node_hours import lines
from pilotlight.facts.capacity import BoundPod, Node, Offering
from pilotlight.facts.money.bill import CostLine, Life, MeteredNode, MeterPart
from pilotlight.facts.workload import SHARED, GpuRequest

DAY = timedelta(days=1)
HOURLY = offering("hourly", "T4", 1, "2", minimum_s=3600, increment_s=3600)
SLICED = offering("mig", "A100", 1, "4")
FLEET = {o.pool: o for o in (T4, A100, HOURLY, SLICED)}
MIG1, MIG2, MIG3 = (f"nvidia.com/mig-{n}" for n in ("1g.10gb", "2g.20gb", "3g.40gb"))


def pod(team: str, count: int = 1, milli: int = 1000, resource: str = "nvidia.com/gpu") -> BoundPod:
    """A pod of a team that holds GPUs."""
    gpu = GpuRequest(count=count, milli=milli, resource=resource)
    return BoundPod(uid=team, namespace=f"ns-{team}", name=team, gpu=gpu, workload_class="batch", team=team)


class Ledger:
    """Days of the meter, counted look by look as the flow does it."""

    def __init__(self, zones: Sequence[str] = ()) -> None:
        self.parts: dict[date, MeterPart] = {}
        self.first: date | None = None
        self.zones = zones
        self.last: datetime | None = None
        self.fleet: dict[str, Offering] = FLEET

    def look(
        self, at: datetime, nodes: Sequence[Node] = (), lives: Sequence[Life] = (), silent: Sequence[str] = ()
    ) -> None:
        """One look at the nodes that are lit, with lives that are known to be over, and pools that do not answer."""
        lit = {
            n.instance: metered_node(Lit(n.instance, n.pool, n.created_at, n), self.fleet.get(n.pool)) for n in nodes
        }
        over = {one.instance: stopped_node(one, self.fleet.get(one.pool)) for one in lives}
        seen = {n.instance: n for n in nodes}
        look = MeterLook(at, lit, over, self.fleet, self.last, nodes=seen, silent=frozenset(silent))
        self.last = max(at, self.last or at)
        day = self.first or at.date()
        before: dict[str, MeteredNode] = {}
        while day <= at.date():
            empty = MeterPart(day=day, seen=day_start(day))
            self.parts[day] = count_day(self.parts.get(day, empty), before, look, cuts(day, self.zones))
            before, day = self.parts[day].nodes, day + DAY
        self.first = at.date()

    @property
    def lines(self) -> list[CostLine]:
        """Every line of every day."""
        return [line for part in self.parts.values() for line in lines(part.nodes.values())[0]]

    def usd(self, **of: str) -> Decimal:
        """Dollars of the lines that have such fields, to the cent."""
        found = [line.usd for line in self.lines if all(getattr(line, k) == v for k, v in of.items())]
        return sum(found, Decimal(0)).quantize(Decimal("0.01"))


def at(hours: float, day: int = 20) -> datetime:
    """So many hours into a day of November 2026."""
    return datetime(2026, 11, day, tzinfo=UTC) + timedelta(hours=hours)


def life(name: str, of: Offering, began: datetime, ended: datetime) -> Life:
    """The life of a node that is over."""
    return Life(instance=f"i-{name}", node=name, pool=of.pool, since=began, ended_at=ended)


@pytest.mark.parametrize(("silent", "usd"), [((), "8.00"), (("a100",), "24.00")], ids=["it answers", "it is silent"])
def test_a_node_that_boots_in_a_pool_that_does_not_answer_is_not_missed(silent: Sequence[str], usd: str) -> None:
    """It is counted through, and over at the first look of a pool that answers."""
    books = Ledger()
    boots = node("a", A100, created_at=at(10), ready=False, pods=())
    books.look(at(10.1), [boots])
    books.look(at(10.25), silent=silent)
    books.look(at(10.75))
    assert books.usd() == Decimal(usd)


def test_a_nodes_time_belongs_to_who_held_it_at_the_look_before() -> None:
    """Boot is shared, what teams hold is theirs, the rest is idle: eight GPUs at $32 an hour."""
    books = Ledger()
    begun = node("a", A100, created_at=at(10), ready=False, pods=())
    busy = msgspec.structs.replace(begun, ready=True, pods=(pod("red", 4), pod("blue", 2)))
    books.look(at(10.25), [begun])
    books.look(at(10.5), [busy])
    books.look(at(11.5), [msgspec.structs.replace(busy, pods=())])
    books.look(at(12.5), [], [life("a", A100, at(10), at(12))])
    assert books.usd(kind="shared") == Decimal(16)
    assert (books.usd(team="red"), books.usd(team="blue")) == (Decimal(16), Decimal(8))
    assert books.usd(kind="idle") == Decimal(8) + Decimal(16)
    assert books.usd() == Decimal(64)
    assert {(x.project, x.workload_class) for x in books.lines if x.team == "red"} == {("ns-red", "batch")}


def started(of: BoundPod, hours: float) -> BoundPod:
    """The pod with the time of its start."""
    return msgspec.structs.replace(of, started_at=at(hours))


def test_idle_and_shared_time_do_not_wait_for_a_look() -> None:
    """A node tells the time between two looks: shared until it was ready, idle until its pod began and after its end.

    Two hours at $32: $16 shared, $8 idle, $24 of red, $16 idle. By looks alone all of it were shared and red's.
    """
    books = Ledger()
    begun = node("a", A100, created_at=at(10), ready=False, pods=())
    ready = msgspec.structs.replace(begun, ready=True, ready_since=at(10.5))
    books.look(at(10), [begun])
    books.look(at(11), [msgspec.structs.replace(ready, pods=(started(pod("red", 8), 10.75),))])
    books.look(at(12), [msgspec.structs.replace(ready, idle_since=at(11.5))])
    assert (books.usd(kind="shared"), books.usd(team="red"), books.usd(kind="idle")) == tuple(
        map(Decimal, (16, 24, 24))
    )


def test_an_end_that_a_look_saw_late_is_idle_from_then_on() -> None:
    """At $1 an hour a look sees the end 105.48 s late, and the node stops 92.16 s later: $0.0549 idle, not $0.0256."""
    books, ended = Ledger(), at(11)
    seen, gone = ended + timedelta(seconds=105.48), ended + timedelta(seconds=197.64)
    held = node("t", T4, created_at=at(10), pods=(started(pod("red"), 10),))
    books.look(ended - timedelta(seconds=14), [held])
    books.look(seen, [msgspec.structs.replace(held, pods=(), idle_since=ended)])
    books.look(gone, [], [life("t", T4, at(10), gone)])
    idle = sum((line.usd for line in books.lines if line.kind == "idle"), Decimal(0))
    assert idle.quantize(Decimal("0.0001")) == Decimal("0.0549")


def test_who_comes_takes_over_from_who_goes() -> None:
    """Blue starts on what red leaves between two looks: red holds until then, and both never more than the node."""
    books = Ledger()  # From nine on, when red's pod started.
    held = node("a", A100, created_at=at(9), pods=(started(pod("red", 8), 9),))
    books.look(at(10), [held])
    books.look(at(11), [msgspec.structs.replace(held, pods=(started(pod("blue", 8), 10.25),))])
    assert (books.usd(team="red"), books.usd(team="blue"), books.usd(kind="idle")) == tuple(map(Decimal, (40, 24, 0)))


def test_a_start_from_before_the_last_look_moves_nothing() -> None:
    """Red was seen at eleven, so an end of half past ten is another pod's: red held until the look that misses it."""
    books = Ledger()
    held = node("a", A100, created_at=at(9), pods=(started(pod("red", 4), 9),))
    books.look(at(10), [held])
    books.look(at(11), [held])
    books.look(at(12), [msgspec.structs.replace(held, idle_since=at(10.5), pods=())])
    assert books.usd(team="red") == 3 * 16


SHARES: dict[str, tuple[Node, int, dict[str, float]]] = {
    "whole devices": (node("n", A100, pods=(pod("a", 2), pod("b", 1))), 8, {"a": 2 / 8, "b": 1 / 8}),
    "a share of a device": (node("n", T4, pods=(pod("a", 1, 250),)), 1, {"a": 0.25}),
    "MIG slices by their compute": (
        node("n", SLICED, devices=(), slices={MIG1: 1}, pods=(pod("a", 2, resource=MIG2), pod("b", resource=MIG2))),
        1,
        {"a": 4 / 7, "b": 2 / 7},
    ),
    "MIG slices that leave a part unusable": (
        node("n", SLICED, devices=(), slices={MIG3: 1}, pods=(pod("a", resource=MIG3),)),
        1,
        {"a": 1 / 2},
    ),
    "slices beside whole devices": (
        node("n", A100, devices=(0,) * 6, slices={MIG1: 13}, pods=(pod("a", 6), pod("b", resource=MIG1))),
        8,
        {"a": 6 / 8, "b": 2 / 14 / 8},
    ),
    "time-sliced shares": (
        node("n", T4, devices=(), slices={SHARED: 3}, pods=(pod("a", resource=SHARED),)),
        1,
        {"a": 1 / 4},
    ),
    "one GPU advertised four times": (node("n", T4, devices=(1000,) * 4, pods=(pod("a", 1),)), 1, {"a": 1 / 4}),
    "more asked for than there is": (node("n", T4, pods=(pod("a", 2), pod("b", 2))), 1, {"a": 0.5, "b": 0.5}),
}


@pytest.mark.parametrize(("on", "gpus", "expected"), SHARES.values(), ids=SHARES.keys())
def test_pods_hold_their_part_of_a_node(on: Node, gpus: int, expected: dict[str, float]) -> None:
    """Whole GPUs, slices and shares become exact parts of the node."""
    holders, parts = holdings(on, gpus)
    assert {h.team: h.parts / parts for h in holders} == pytest.approx(expected)


DOLLARS: dict[str, tuple[Offering, dict[str, Any], dict[str, str]]] = {
    "MIG slices at $4": (
        SLICED,
        {"devices": (), "slices": {MIG1: 1}, "pods": (pod("a", 2, resource=MIG2), pod("b", resource=MIG2))},
        {"a": "2.29", "b": "1.14", "idle": "0.57"},
    ),
    "one of seven slices": (SLICED, {"devices": (), "slices": {MIG1: 6}, "pods": (pod("a", resource=MIG1),)},
                            {"a": "0.57", "idle": "3.43"}),
    "time-sliced shares at $1": (
        T4,
        {"devices": (), "slices": {SHARED: 2}, "pods": (pod("a", resource=SHARED), pod("b", resource=SHARED))},
        {"a": "0.25", "b": "0.25", "idle": "0.50"},
    ),
    "a fifth of a GPU": (T4, {"pods": (pod("a", 1, 200),)}, {"a": "0.20", "idle": "0.80"}),
    "whole GPUs beside slices at $32": (
        A100,
        {"devices": (0,) * 6, "slices": {MIG1: 13}, "pods": (pod("a", 6), pod("b", resource=MIG1))},
        {"a": "24.00", "b": "0.57", "idle": "7.43"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("of", "holding", "usd"), DOLLARS.values(), ids=DOLLARS)
def test_an_hour_of_slices_and_shares_in_dollars(of: Offering, holding: dict[str, Any], usd: dict[str, str]) -> None:
    """Each team pays its part of the node's hour, the rest is idle, and the parts are the node's price."""
    books = Ledger()
    held = node("n", of, created_at=at(10), **holding)
    books.look(at(10), [held])
    books.look(at(11), [held])
    told = {name: str(books.usd(kind="idle") if name == "idle" else books.usd(team=name)) for name in usd}
    assert (told, books.usd()) == (usd, of.usd_per_hour.quantize(Decimal("0.01")))


def test_the_minimum_and_the_increment_are_shared() -> None:
    """A node billed by the hour that lived 90 minutes costs two hours: the half hour that nobody used is shared."""
    books = Ledger()
    books.look(at(1), [node("h", HOURLY, created_at=at(1))])
    books.look(at(1.1), [node("h", HOURLY, created_at=at(1))])
    books.look(at(3), [], [life("h", HOURLY, at(1), at(2.5))])
    assert (books.usd(), books.usd(kind="idle")) == (Decimal(4), Decimal(3))


def test_a_node_without_gpus_is_shared() -> None:
    """What a pool of CPU nodes costs is nobody's idle time."""
    books = Ledger()
    books.fleet = {"cpu": offering("cpu", "", 0, "1")}
    for hour in (1, 3):
        books.look(at(hour), [node("c", books.fleet["cpu"], created_at=at(1))])
    assert (books.usd(), books.usd(kind="shared")) == (Decimal(2), Decimal(2))


def test_a_node_that_came_and_went_between_two_looks_is_counted_whole() -> None:
    """Nobody saw it lit: its life's record says what it cost, once."""
    books = Ledger()
    books.look(at(1))
    for _ in range(2):
        books.look(at(2), [], [life("x", T4, at(1.25), at(1.75))])
    assert (books.usd(), books.usd(kind="shared")) == (Decimal("0.50"), Decimal("0.50"))


def test_a_node_without_a_price_is_named_and_never_free() -> None:
    """Its hours are kept, its dollars are in no line; once the price is known all of it is counted."""
    books = Ledger()
    odd = msgspec.structs.replace(node("odd", T4, created_at=at(1)), instance_type="m60")
    books.fleet = {}
    books.look(at(1), [odd])
    books.look(at(3), [odd])
    assert lines(books.parts[at(0).date()].nodes.values()) == ((), ("odd",))
    books.fleet = {"t4": offering("t4", "T4", 1, "3", instance_type="m60")}
    books.look(at(4), [odd])
    assert books.usd() == Decimal(9)


def test_time_has_the_price_of_its_look() -> None:
    """A new price counts from the look that first sees it, over midnight too; what was counted keeps its own."""
    books = Ledger()
    lit = node("a", T4, created_at=at(22))
    books.look(at(22), [lit])
    books.fleet = {"t4": msgspec.structs.replace(T4, usd_per_hour=Decimal(3))}
    books.look(at(23), [lit])
    books.look(at(2, day=21), [lit])
    assert books.usd() == Decimal(1 * 1 + 3 * 3)


def test_a_day_is_cut_at_the_midnights_of_the_budgets_zones() -> None:
    """On the day clocks go back New York's midnight is an hour later in UTC than the day before."""
    assert [c.hour for c in cuts(date(2026, 10, 31), ["America/New_York", "UTC"])] == [0, 4]
    assert [c.hour for c in cuts(date(2026, 11, 2), ["America/New_York"])] == [0, 5]


lives = st.tuples(
    st.sampled_from(sorted(FLEET)),
    st.integers(0, 60 * 60),
    st.integers(1, 30 * 60),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.sampled_from([125, 250, 1000])), max_size=3),
)


@settings(max_examples=60, deadline=None)
@given(
    fleet=st.lists(lives, min_size=1, max_size=4),
    looks=st.lists(st.integers(0, 100 * 60), min_size=1, max_size=25),
    start=st.sampled_from([datetime(2026, 3, 7, tzinfo=UTC), datetime(2026, 10, 31, 9, tzinfo=UTC)]),
    told=st.booleans(),
)
def test_teams_idle_and_shared_are_what_the_nodes_cost(
    fleet: list[tuple[str, int, int, list[tuple[str, int, int]]]], looks: list[int], start: datetime, told: bool
) -> None:
    """Over random nodes, pods and looks, month ends and the days clocks change: to the cent, each look taken twice."""
    books, last = Ledger(["America/New_York", "Asia/Kolkata"]), start + timedelta(minutes=200 * 60)
    moments = sorted({start, last, *(start + timedelta(minutes=m) for m in looks)})
    cost, known = Decimal(0), []
    for n, (pool, began, lasted, holders) in enumerate(fleet):
        born, died = start + timedelta(minutes=began), start + timedelta(minutes=began + lasted)
        if not told:  # Then it is over at the first look that misses it, if any look saw it at all.
            if not any(born <= m < died for m in moments):
                continue
            died = min(m for m in moments if m >= died)
        cost += billed_cost(FLEET[pool], (died - born).total_seconds())
        if pool == SLICED.pool:
            pods = tuple(pod(team, count, resource=(MIG1, MIG2, MIG3)[milli % 3]) for team, count, milli in holders)
        else:
            pods = tuple(pod(team, count, milli if count == 1 else 1000) for team, count, milli in holders)
        known.append((node(f"n{n}", FLEET[pool], created_at=born, pods=pods), born, died))
    for moment in moments:
        lit = [one for one, born, died in known if born <= moment < died]
        gone = [life(o.name, FLEET[o.pool], b, d) for o, b, d in known if told and d <= moment]
        for _ in range(2):
            books.look(moment, lit, gone)
    books.look(last + 2 * timedelta(hours=1))  # What was paid ahead is counted as its time comes.
    assert books.usd() == cost.quantize(Decimal("0.01"))
    assert all(line.usd >= 0 for line in books.lines)


STOPS: dict[str, tuple[list[float], float, float, float, bool]] = {
    "seen by a look in between": ([10, 10.5, 11.5, 12.5, 13], 11, 12.25, 1.75, False),
    "told by its life's record": ([10, 10.5, 11.5, 12.5, 13], 11, 12.25, 1.75, True),
    "between two looks": ([10, 10.5, 12.5, 13], 11, 12.25, 1.75, True),
    "over midnight": ([10, 10.5, 11.5, 25, 26], 11, 24.5, 2.5, True),
    "over midnight, and started before it": ([10, 10.5, 11.5, 25, 26], 11, 23.5, 3.5, True),
    "by a clock ahead of ours": ([10, 10.5, 11.5, 12.5, 13], 11, 12.501, 1.5, True),
    "for two days": ([10, 10.5, 11.5, 59, 60], 11, 58.5, 2.5, True),
}


@pytest.mark.parametrize(("looks", "stops", "starts", "hours", "told_so"), STOPS.values(), ids=STOPS)
def test_a_node_costs_nothing_while_it_stands_stopped(
    looks: list[float], stops: float, starts: float, hours: float, told_so: bool
) -> None:
    """The same instance, stopped and started again: its two lives are counted, and not what is between them."""
    books = Ledger()
    for hour in looks:
        there = hour <= stops or hour >= starts - 0.01
        lit = [node("a", A100, created_at=at(10 if hour <= stops else starts))] if there else []
        books.look(at(hour), lit, [life("a", A100, at(10), at(stops))] if told_so and hour > stops else [])
    seen_to = 11.5 if not told_so else stops
    assert books.usd() == Decimal(32) * Decimal(str(hours + seen_to - stops))
