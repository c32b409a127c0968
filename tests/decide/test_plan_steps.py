"""The plan's table: each step reads and writes only what its row says, loaders lead somewhere, a page tells it."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from msgspec.structs import replace
from random_looks import look_of
from small_fleet import FLEET, NOW, SAME_SPEED, node, pod, policy

from pilotlight.decide import plan
from pilotlight.decide.plan import STEPS, plan_cluster
from pilotlight.decide.work import Look, Step, Work
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.decisions import NodeVerdict
from pilotlight.facts.memory import Memory, RefusedRelease
from pilotlight.facts.nodes.pool_state import Booting, InFlight, PoolState
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import RenewPolicy, SparePolicy

ROOT = Path(__file__).resolve().parents[2]
PAGE, DECIDE = ROOT / "docs" / "how-it-decides.md", ROOT / "shared" / "pilotlight" / "decide"
KNOWN = {"look", "now", "wake_at"}
"""Parts that every step may use: what is known does not change."""


NOT_DRAWN = {
    "volumes",
    "joined nodes",
    "first work",
    "spot lifetimes",
    "device claims",
    "doubt about fit",
    "account quotas",
    "vain purchases",
}
"""Steps that need what no random cluster has, or a look that may ask."""


class Guarded(Work):
    """A plan in the making that refuses what the row of its present step does not name."""

    row: Step | None = None
    inside = False
    done: set[str] = set()  # noqa: RUF012

    def __getattribute__(self, name: str) -> Any:
        if name in {"row", "inside", "done"} or name.startswith("_"):
            return object.__getattribute__(self, name)
        row = self.row
        if row is not None and not self.inside and name not in KNOWN | row.reads | row.writes:
            raise AssertionError(f"{row.name} reads {name}")
        with self._within():
            return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        row = self.row if name not in {"row", "inside", "done"} else None
        if row is not None and not name.startswith("_") and name not in row.writes:
            raise AssertionError(f"{row.name} writes {name}")
        object.__setattr__(self, name, value)

    @contextmanager
    def _within(self) -> Iterator[None]:
        """What a property of the work reads itself is its own."""
        was, self.inside = self.inside, True
        try:
            yield
        finally:
            self.inside = was


def contents(work: Work) -> dict[str, Any]:
    """What the parts hold that may be changed without being written anew."""
    parts = vars(work)
    held = {name: copy(part) for name, part in parts.items() if isinstance(part, (dict, list, set))}
    if (run := parts.get("run")) is None:
        return held
    bought = {name: (len(one.bins), tuple(one.demands)) for name, one in run.purchases.items()}
    lists = tuple(tuple(one) for one in (run.outcomes, run.findings, run.demands, run.due))
    free = [(bin_.where, tuple(bin_.devices), bin_.pods) for bin_ in (*run.ready, *run.booting)]
    return {**held, "run": (lists, bought, free, run.headroom.nodes, dict(run.headroom.by_pool))}


def guarded(look: Look) -> Guarded:
    """The whole table, run by a work that refuses, and looked at after each step."""
    work, due = Guarded(look), set[str]()
    for row in STEPS:
        before, work.row = contents(work), row
        if row.when(work):
            row.load()(work)
            due.add(row.name)
        work.row = None
        after = contents(work)
        changed = {name for name in before if name in after and before[name] != after[name]}
        assert changed <= row.writes, f"{row.name} changes {sorted(changed - row.writes)}"
    work.done = due
    return work


def looks() -> dict[str, Look]:
    """Looks in which most steps have something to do."""
    rules = policy(FLEET)
    pools = {
        name: replace(pool, spares=SparePolicy(warm=1), renew=RenewPolicy(max_age=3600.0))
        for name, pool in rules.pools.items()
    }
    states = [PoolState(name=offering.pool, desired=1) for offering in FLEET]
    old = node("n1", FLEET[0], created_at=NOW - timedelta(hours=5))
    waiting = ClusterView(pending=(pod("p1"), pod("p2")), nodes=())
    lit = ClusterView(pending=(pod("p1"),), nodes=(old,))
    goes = NodeVerdict(
        verdict="release", node="n1", instance="i-1", pool=FLEET[0].pool, why="asked for", usd_per_hour=Decimal(1)
    )
    plain = Look(waiting, (), FLEET, rules, Memory(), NOW, throughput=SAME_SPEED)
    busy = Look(lit, states, FLEET, replace(rules, pools=pools), Memory(), NOW, throughput=SAME_SPEED)
    since = NOW - timedelta(minutes=2)
    ends = Booting(instance="i-2", requested_at=since)
    vain = InFlight(
        decision="d",
        offering=FLEET[0].name,
        pool=FLEET[0].pool,
        count=1,
        requested_at=since,
        ready_by=NOW,
        vain_since=since,
    )
    return {
        "pods wait": plain,
        "a purchase is in vain": replace(
            busy,
            view=replace(lit, pending=()),
            policy=rules,
            pools=[replace(states[0], desired=2, booting=(ends,)), *states[1:]],
            memory=Memory(in_flight=(vain,)),
        ),
        "nodes are old": busy,
        "nodes go": replace(busy, gives=(goes,)),
        "only growth": replace(busy, releases=False),
        "it may ask": replace(plain, asks=("fit", "quotas"), memory=Memory(believing=True)),
        "nodes are homed": replace(
            busy,
            view=replace(lit, nodes=(replace(old, home="new"),)),
            policy=replace(rules, pools={name: replace(one, taints=(BIRTH_TAINT,)) for name, one in pools.items()}),
        ),
    }


@pytest.mark.parametrize("name", looks())
def test_a_step_uses_what_its_row_names(name: str) -> None:
    """Run by a work that refuses all other reads and writes, the table gives the same plan."""
    look = looks()[name]
    work = guarded(look)
    assert replace(work.plan, again=work.again) == plan_cluster(look)


def with_images(view: ClusterView) -> ClusterView:
    """The same cluster, where pods wait with images that some of its nodes have."""
    pending = tuple(replace(one, image=f"i{at % 3}") for at, one in enumerate(view.pending))
    nodes = tuple(replace(one, images=(f"i{at % 3}",)) for at, one in enumerate(view.nodes))
    return replace(view, pending=pending, nodes=nodes)


def with_refusals(memory: Memory, view: ClusterView) -> Memory:
    """Each second node's last release was refused."""
    refusal = RefusedRelease(until=NOW + timedelta(days=900), why="no")
    return replace(memory, refusals={one.instance or one.name: refusal for one in view.nodes[::2]})


def test_random_clusters_use_what_the_rows_name() -> None:
    """Three hundred clusters with features on and off give the same plan so, and most steps are due in one of them."""
    due: set[str] = set()
    for seed in range(300):
        parts = look_of(seed)
        parts.pop("features")
        if seed % 3 == 0:
            parts["memory"] = with_refusals(parts["memory"], parts["view"])
        look = Look(**parts | {"view": with_images(parts["view"])} if seed % 2 else parts)
        work = guarded(look)
        assert replace(work.plan, again=work.again) == plan_cluster(look), f"seed {seed}"
        due |= work.done
    assert {row.name for row in STEPS} - due <= NOT_DRAWN


def test_the_guard_sees_a_step_that_writes_more() -> None:
    """A step that writes what its row does not name is refused."""
    work = Guarded(looks()["pods wait"])
    work.row = STEPS[0]
    with pytest.raises(AssertionError, match="writes buys"):
        work.buys = ()
    with pytest.raises(AssertionError, match="reads nodes"):
        _ = work.nodes


@pytest.mark.parametrize("row", STEPS, ids=lambda row: row.name)
def test_a_loader_leads_to_a_step(row: Step) -> None:
    """Each loader gives a function of one Work that returns nothing, and a row names no part that a work lacks."""
    do = row.load()
    hints = get_type_hints(do, {"Work": Work})
    assert hints == {"work": Work, "return": type(None)}
    parts = {*vars(Work(looks()["pods wait"])), *Work.__annotations__, *dir(Work), "run", "plan", "usd_per_hour_before"}
    assert row.reads | row.writes <= parts


def test_a_feature_is_a_file_and_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its row nothing of the plan asks for the file of node ages: all else is decided as it was.

    Nor does any file of the package need it to be imported.
    """
    at_their_tops = re.compile(r"^(from|import) .*node_age\b", re.MULTILINE)
    assert [path for path in DECIDE.parent.rglob("*.py") if at_their_tops.search(path.read_text())] == []
    rooms = [path for path in DECIDE.rglob("*.py") if "node_age" in re.sub(r"when.node_age", "", path.read_text())]
    assert [path.name for path in rooms] == ["plan.py"]
    assert rooms[0].read_text().count("node_age") == 1
    looks = [Look(**{k: v for k, v in look_of(seed).items() if k != "features"}) for seed in range(100)]
    ages = [plan_cluster(look) for look in looks]
    monkeypatch.setattr(plan, "STEPS", tuple(row for row in STEPS if row.name != "node ages"))
    monkeypatch.setitem(sys.modules, "pilotlight.decide.nodes.node_age", None)
    without = [plan_cluster(look) for look in looks]
    differ = [n for n, (one, other) in enumerate(zip(ages, without, strict=True)) if one != other]
    assert 0 < len(differ) < len(looks)
    for n in differ:
        assert any(pool.renew.asks for pool in looks[n].policy.pools.values())
        assert (ages[n].pods, ages[n].buys) == (without[n].pods, without[n].buys)


def test_no_two_steps_bear_one_name() -> None:
    """A step is told by its name."""
    assert len({row.name for row in STEPS}) == len(STEPS)


def test_the_page_tells_the_steps_in_their_order() -> None:
    """docs/how-it-decides.md names every step of the table in bold, in the table's order, and no other."""
    steps = PAGE.read_text("utf-8").partition("## Steps")[2].partition("\n## ")[0]
    told = [" ".join(name.split()) for name in re.findall(r"\*\*(.+?)\*\*", steps, re.S)]
    assert told == [row.name for row in STEPS]
