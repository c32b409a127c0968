"""Which pools are homed, their nodes kept for the pods that are planned on them, and why; of the others why not."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from pilotlight.decide.place.belonging import acting_pools
from pilotlight.decide.place.homes import homed_pools
from pilotlight.facts.capacity import ClusterView, Offering
from pilotlight.facts.limits.brakes import ALL, Brakes
from pilotlight.facts.policy import Policy

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
        return "no watchman would open its nodes in our place: apply infra/kubernetes/placement/watchman.yaml"
    if name in brakes.paused or ALL in brakes.paused:
        return f"it is paused: {brakes.paused.get(name) or brakes.paused[ALL]}"
    return "" if acting else "its mode is not act"
