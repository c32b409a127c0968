"""Which pools are homed, their nodes kept for the pods that are planned on them, and why; of the others why not."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

import msgspec

from pilotlight.decide.offers.selection import Choices
from pilotlight.decide.place.belonging import Homes, acting_pools
from pilotlight.facts.capacity import ClusterView, Offering
from pilotlight.facts.limits.brakes import ALL, Brakes
from pilotlight.facts.memory import Memory
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import PodShape
from pilotlight.tools.checkup.placement_worth import WATCHMAN_FILE

TAINT = "list the taint pilotlight.dev/home=new:NoSchedule in its taints, in the policy and at its cloud"
AT_HOME = "no pod that waits or runs costs less elsewhere"


class PoolHome(msgspec.Struct, frozen=True, kw_only=True):
    """A pool: its nodes are kept or open to every pod, and why."""

    pool: str
    homed: bool
    why: str


def pool_homes(
    view: ClusterView,
    policy: Policy,
    offerings: Sequence[Offering],
    throughput: Mapping[str, Mapping[str, float]],
    brakes: Brakes,
    now: datetime,
) -> tuple[PoolHome, ...]:
    """Each pool of a policy, by name, as the pods that wait and run have it; nothing where none of them is homed by
    ``placement``.
    """
    if policy.placement != "homes":
        return ()
    running = (pod.shape for node in view.nodes for pod in node.pods if pod.shape is not None and pod.gpu is not None)
    shapes = {shape.key: shape for shape in (*(pod.shape for pod in view.pending), *running)}
    worth = homed_pools(shapes.values(), offerings, policy, throughput, now)
    return tuple(_of_pools(view, policy, brakes, worth))


def _of_pools(view: ClusterView, policy: Policy, brakes: Brakes, worth: Mapping[str, str]) -> Iterator[PoolHome]:
    acting = acting_pools(view, policy, brakes)
    for name in sorted(policy.pools):
        why = worth.get(name, AT_HOME)
        if name not in policy.homed:
            yield PoolHome(pool=name, homed=False, why=f"{why}: {TAINT}" if name in worth else why)
        elif off := _off(name, view, brakes, acting=name in acting):
            yield PoolHome(pool=name, homed=False, why=off)
        else:
            yield PoolHome(pool=name, homed=True, why=why if name in worth else f"its taints say so; {why}")


def _off(name: str, view: ClusterView, brakes: Brakes, *, acting: bool) -> str:
    """Why the nodes of a pool that lists the taint are opened all the same."""
    if view.limited is False:
        return "nothing limits our account to tolerations: pilotlight connect --act writes the policy that does"
    if not view.watched:
        return f"no watchman would open its nodes in our place: {WATCHMAN_FILE}"
    if name in brakes.paused or ALL in brakes.paused:
        return f"it is paused: {brakes.paused.get(name) or brakes.paused[ALL]}"
    return "" if acting else "its mode is not act"


def homed_pools(
    shapes: Iterable[PodShape],
    offerings: Sequence[Offering],
    policy: Policy,
    throughput: Mapping[str, Mapping[str, float]],
    now: datetime,
) -> dict[str, str]:
    """The pools whose nodes are to be born closed, each with the reason: one of these shapes may run there and costs
    less elsewhere, alone or where many fill a node. A pool where every shape is at home either way needs no taint.
    """
    ask = partial(Choices(policy, throughput, Memory(), now), offerings=offerings)
    homes = Homes(policy, ask, (), ())
    found: dict[str, str] = {}
    alike: dict[int, PodShape] = {}
    for one in shapes:
        alike.setdefault(id(homes.able(one)), one)
    for one in alike.values():
        gpus = f"{one.gpu.count} GPU{'s' * (one.gpu.count != 1)}"
        for pool in sorted(_stray_pools(homes, one)):
            best = ", ".join(sorted(homes.pools_for(one) or ()))
            found.setdefault(pool, f"a pod of {gpus} costs less on {best}")
        candidates = homes.able(one).candidates
        least = min((c.rate for c in candidates), default=None)
        cheap = ", ".join(sorted({c.offering.pool for c in candidates if c.rate == least}))
        for pool in (c.offering.pool for c in candidates if c.rate != least):
            found.setdefault(pool, f"many pods of {gpus} cost less on {cheap}")
    return found


def _stray_pools(homes: Homes, shape: PodShape) -> set[str]:
    """The pools that a shape may use and does not belong to."""
    belongs = homes.pools_for(shape)
    if belongs is None:
        return set()
    able = homes.able(shape)
    return {c.offering.pool for c in (*able.candidates, *(c for c, _, _ in able.held))} - belongs
