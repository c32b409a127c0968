"""Laws of a plan, over drawn clusters: nothing twice, within caps, nothing taken from the busy, always a reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small_fleet import A100, FLEET, NOW, T4, V100X4, in_flight, node, plan, pod, policy

from pilotlight.facts.capacity import Node, Offering
from pilotlight.facts.decisions import Plan
from pilotlight.facts.memory import Memory
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.nodes.pool_state import InFlight
from pilotlight.facts.policy import Policy, PoolPolicy, SparePolicy
from pilotlight.facts.workload import Gang, PodDemand

LATER = NOW + timedelta(minutes=1)
BY_POOL = {o.pool: o for o in FLEET}


@dataclass(frozen=True)
class Scene:
    """One drawn cluster."""

    pending: tuple[PodDemand, ...]
    nodes: tuple[Node, ...]
    flights: tuple[InFlight, ...]
    booting: dict[str, int]
    rules: Policy

    def plan(self, pending: Sequence[PodDemand] | None = None, **changed: object) -> Plan:
        """Its plan, with a change or none."""
        given_ = {
            "nodes": self.nodes,
            "rules": self.rules,
            "booting": self.booting,
            "memory": Memory(in_flight=self.flights),
        }
        return plan(self.pending if pending is None else pending, **{**given_, **changed})  # type: ignore[arg-type]


small_pods = st.builds(
    lambda gpus, milli, priority, memory: (gpus, 1000 if gpus > 1 else milli, {"priority": priority, "memory": memory}),
    st.sampled_from([1, 1, 1, 2, 4, 8, 16]),
    st.sampled_from([1000, 1000, 500, 250]),
    st.sampled_from([0, 0, 10]),
    st.sampled_from([0, 1 << 30]),
)


@st.composite
def gangs(draw: st.DrawFn, number: int) -> list[PodDemand]:
    """A gang of one or two shapes, of which some members may be missing."""
    size = draw(st.integers(2, 4))
    here = draw(st.integers(1, size))
    member = Gang(key=f"g{number}", size=size)
    return [pod(f"g{number}-{n}", draw(st.sampled_from([4, 8])), gang=member) for n in range(here)]


@st.composite
def lit_nodes(draw: st.DrawFn) -> list[Node]:
    """Nodes of every pool, busy or idle."""
    out = []
    for n in range(draw(st.integers(0, 6))):
        of = draw(st.sampled_from(FLEET))
        used = draw(st.integers(0, of.gpus))
        out.append(
            node(
                f"n{n}",
                of,
                used=used,
                idle_s=draw(st.sampled_from([0, 100, 10_000])),
                schedulable=draw(st.sampled_from([True, True, False])),
            )
        )
    return out


caps = st.builds(
    Caps,
    nodes=st.none() | st.integers(0, 12),
    gpus=st.none() | st.integers(0, 60),
    usd_per_hour=st.none() | st.integers(0, 200).map(Decimal),
)


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Waiting pods and gangs, nodes lit and on their way, demand in flight, caps."""
    drawn = draw(st.lists(small_pods, max_size=8))
    pending = [pod(f"p{n}", gpus, milli, **traits) for n, (gpus, milli, traits) in enumerate(drawn)]
    booting = {o.pool: draw(st.integers(0, 2)) for o in FLEET}
    flights = [in_flight(BY_POOL[pool], [p], count) for (pool, count), p in zip(booting.items(), pending) if count]  # noqa: B905
    for n in range(draw(st.integers(0, 2))):
        pending += draw(gangs(n))
    pools = {
        o.pool: PoolPolicy(
            instance_type=o.instance_type,
            max=draw(st.integers(0, 8)),
            spares=SparePolicy(warm=draw(st.integers(0, 1))),
        )
        for o in FLEET
    }
    return Scene(
        pending=tuple(pending),
        nodes=tuple(draw(lit_nodes())),
        flights=tuple(flights),
        booting=booting,
        rules=policy(pools=pools, caps=draw(caps)),
    )


@given(scenes())
def test_no_demand_is_bought_for_twice(scene: Scene) -> None:
    """No pod is bought for while capacity asked for it is on its way, and none in two purchases of a plan."""
    bought = [uid for b in scene.plan().buys for uid in b.demands]
    assert len(bought) == len(set(bought))
    assert not set(bought) & {uid for f in scene.flights for uid in f.demands}


def _beside(
    booting: dict[str, int], gangs: dict[str, list[int]], *singles: PodDemand, most: tuple[int, int], usd: int = 500
) -> Scene:
    """Gangs of so many GPUs a pod beside single pods, with nodes on their way; those of V100s for the second pod."""
    members = [
        pod(f"{key}-{n}", count, gang=Gang(key=key, size=len(gpus)))
        for key, gpus in gangs.items()
        for n, count in enumerate(gpus)
    ]
    pools = {
        "a100": PoolPolicy(instance_type="A100x8", max=most[1]),
        "v100x4": PoolPolicy(instance_type="V100x4", max=most[0]),
    }
    rules = policy(pools=pools, caps=Caps(usd_per_hour=Decimal(usd)))
    flights = tuple(in_flight(V100X4, [single], booting["v100x4"]) for single in singles[1:])
    return Scene((*singles, *members), (), flights, {"t4": 0, "a100": 0, **booting}, rules)


FIRST = pod("p", 1, priority=10, memory=1 << 30)


@example(_beside({"v100x4": 1, "a100": 1}, {"g": [8, 4, 4, 4]}, most=(8, 2)))
@example(_beside({"v100x4": 2, "a100": 1}, {"g": [4, 4, 4, 4]}, FIRST, pod("q", 1), most=(4, 2)))
@example(_beside({"v100x4": 2}, {"g0": [4, 8, 4, 4], "g1": [4, 4]}, FIRST, most=(8, 8), usd=103))
@given(scenes())
def test_a_plan_carried_out_buys_nothing_more(scene: Scene) -> None:
    """Once a plan's purchases are on their way, the same cluster leads to no purchase for a pod that has its place.

    What was refused may be bought for yet: a spare that the plan bought beside may be the room its gang lacked.
    """
    first = scene.plan()
    booting = {p: n + sum(b.count for b in first.buys if b.pool == p) for p, n in scene.booting.items()}
    flights = tuple(in_flight(BY_POOL[b.pool], [], b.count, LATER) for b in first.buys)
    flights = tuple(
        msgspec.structs.replace(f, demands=b.demands, decision="d2") for f, b in zip(flights, first.buys, strict=True)
    )
    second = scene.plan(booting=booting, memory=Memory(in_flight=scene.flights + flights), now=LATER)
    placed = {uid for g in first.pods if g.verdict in ("fits", "booting", "bought") for uid in g.uids}
    assert [b for b in second.buys if placed.intersection(b.demands)] == []


@given(scenes())
def test_busy_nodes_are_never_released(scene: Scene) -> None:
    """A node with a GPU pod bound to it stays, whatever else holds; so does one that a waiting pod will take."""
    made = scene.plan()
    gone = {n.node for n in made.releases}
    assert not gone & {n.name for n in scene.nodes if n.gpu_pods}
    assert not gone & {g.where for g in made.pods if g.verdict == "fits"}


@given(scenes())
def test_no_plan_passes_a_cap(scene: Scene) -> None:
    """Where anything is bought, what is lit, boots and is bought passes no cap: nodes, GPUs, dollars, a pool's most."""
    made = scene.plan()
    lit = {o.pool: sum(n.pool == o.pool for n in scene.nodes) + scene.booting[o.pool] for o in FLEET}
    after = {pool: n + sum(b.count for b in made.buys if b.pool == pool) for pool, n in lit.items()}
    for buy in made.buys:
        assert after[buy.pool] <= scene.rules.pools[buy.pool].max
    if made.buys:
        limits, spend = scene.rules.caps, sum(n * BY_POOL[p].usd_per_hour for p, n in after.items())
        assert limits.nodes is None or sum(after.values()) <= limits.nodes
        assert limits.gpus is None or sum(n * BY_POOL[p].gpus for p, n in after.items()) <= limits.gpus
        assert limits.usd_per_hour is None or spend <= limits.usd_per_hour


@given(scenes())
def test_gangs_are_all_or_nothing(scene: Scene) -> None:
    """Every pod of a gang has a place, or none has; an incomplete gang has none."""
    made = scene.plan()
    placed = {uid for g in made.pods if g.verdict in ("fits", "booting", "bought") for uid in g.uids}
    flown = {uid for f in scene.flights for uid in f.demands}
    by_gang: dict[Gang, list[str]] = {}
    for p in scene.pending:
        if p.shape.gang is not None:
            by_gang.setdefault(p.shape.gang, []).append(p.uid)
    for gang, uids in by_gang.items():
        here = len(placed & (set(uids) - flown))
        assert here in (0, len(uids))
        assert here == 0 or len(uids) == gang.size


@given(scenes())
def test_everything_has_a_verdict_and_a_reason(scene: Scene) -> None:
    """Each waiting pod has exactly one verdict, each node one; every one, and every purchase, says why."""
    made = scene.plan()
    assert sorted(uid for g in made.pods for uid in g.uids) == sorted(p.uid for p in scene.pending)
    assert sorted(n.node for n in made.nodes) == sorted(n.name for n in scene.nodes)
    assert all(g.why for g in made.pods)
    assert all(n.why for n in made.nodes)
    assert all(b.why for b in made.buys)
    assert all(r.why for g in made.pods for r in g.rejected)
    assert all(f.code and f.message for f in made.findings)


@given(scenes(), st.randoms(use_true_random=False))
def test_the_order_of_things_does_not_matter(scene: Scene, random: object) -> None:
    """Pods, nodes, offerings and what is in flight may come in any order: the plan is the same."""

    def mixed(things: Sequence[object]) -> list[object]:
        return random.sample(list(things), len(things))  # type: ignore[attr-defined,no-any-return]

    memory = Memory(in_flight=tuple(mixed(scene.flights)))  # type: ignore[arg-type]
    again = scene.plan(mixed(scene.pending), nodes=mixed(scene.nodes), offerings=mixed(FLEET), memory=memory)  # type: ignore[arg-type]
    assert _canon(again) == _canon(scene.plan())


def _canon(made: Plan) -> Plan:
    """A plan, its findings and options in an order of their own."""
    groups = tuple(
        msgspec.structs.replace(g, rejected=tuple(sorted(g.rejected, key=lambda r: (r.offering, r.why))))
        for g in made.pods
    )
    return msgspec.structs.replace(made, pods=groups, findings=tuple(sorted(made.findings, key=lambda f: f.subject)))


@given(scenes(), st.sampled_from(FLEET), st.integers(1, 50))
def test_a_dearer_offering_changes_nothing(scene: Scene, like: Offering, more: int) -> None:
    """Beside each machine the same at a higher price: what is bought is as before, while the caps leave room."""
    rules = msgspec.structs.replace(
        scene.rules,
        caps=Caps(),
        pools={name: PoolPolicy(instance_type=p.instance_type, max=99) for name, p in scene.rules.pools.items()},
    )
    dear = msgspec.structs.replace(like, pool="dear", usd_per_hour=like.usd_per_hour + more)
    pools = {**rules.pools, "dear": PoolPolicy(instance_type=dear.instance_type, max=99)}
    with_dear = scene.plan(offerings=(*FLEET, dear), rules=msgspec.structs.replace(rules, pools=pools))
    assert with_dear.buys == scene.plan(rules=rules).buys


@settings(max_examples=30)
@given(st.integers(1, 40), st.sampled_from([T4, V100X4, A100]))
def test_identical_pods_waste_no_node(count: int, of: object) -> None:
    """So many one-GPU pods take as few nodes of the only type as can hold them."""
    made = plan([pod(f"p{n}") for n in range(count)], offerings=[of], rules=policy([of]))  # type: ignore[list-item]
    assert sum(b.count for b in made.buys) == min(20, -(-count // of.gpus))  # type: ignore[attr-defined]
