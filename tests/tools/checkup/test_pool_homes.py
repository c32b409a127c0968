"""Which pools are homed, and why or why not, as a plan says it."""

from collections.abc import Sequence

import msgspec
import pytest
from small_fleet import A100, FLEET, NOW, SAME_SPEED, node, pod, policy

from pilotlight.facts.capacity import BoundPod, ClusterView
from pilotlight.facts.limits.brakes import ALL, Brakes
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import Policy
from pilotlight.facts.workload import PodDemand
from pilotlight.tools.checkup.pool_homes import pool_homes
from pilotlight.tools.report.texts.pool_homes_text import section

SMALL, LARGE = pod("small"), pod("large", gpus=8)
PLAIN = policy()
TAINTED = msgspec.structs.replace(PLAIN.pools["a100"], taints=(BIRTH_TAINT,))
HOMED = msgspec.structs.replace(PLAIN, pools={**PLAIN.pools, "a100": TAINTED})
SAID: dict[str, tuple[Policy, Sequence[PodDemand], ClusterView, Brakes, bool, str]] = {
    "its taint, and small work": (HOMED, [SMALL], ClusterView(), Brakes(), True, "a pod of 1 GPU costs less on t4"),
    "its taint alone": (HOMED, [LARGE], ClusterView(), Brakes(), True, "its taints say so; no pod that waits or runs"),
    "no taint, and small work": (PLAIN, [SMALL], ClusterView(), Brakes(), False, "costs less on t4: list the taint"),
    "no taint, and no need": (PLAIN, [LARGE], ClusterView(), Brakes(), False, "no pod that waits or runs costs less"),
    "no watchman": (HOMED, [SMALL], ClusterView(watched=False), Brakes(), False, "watchman.yaml"),
    "no limit": (HOMED, [SMALL], ClusterView(limited=False), Brakes(), False, "pilotlight connect --act"),
    "a pause": (HOMED, [SMALL], ClusterView(), Brakes(paused={ALL: "by hand"}), False, "it is paused: by hand"),
    "another mode": (HOMED, [SMALL], ClusterView(), Brakes(modes={"a100": "advise"}), False, "its mode is not act"),
}


@pytest.mark.parametrize(("rules", "pending", "view", "brakes", "homed", "why"), SAID.values(), ids=SAID.keys())
def test_why_a_pool_is_homed_or_not(
    rules: Policy, pending: Sequence[PodDemand], view: ClusterView, brakes: Brakes, homed: bool, why: str
) -> None:
    """Each pool says whether its nodes are kept, and why, with the way out."""
    view = msgspec.structs.replace(view, pending=tuple(pending))
    told = {one.pool: one for one in pool_homes(view, rules, FLEET, SAME_SPEED, brakes, NOW)}
    assert told.keys() == PLAIN.pools.keys()
    assert (told["a100"].homed, why in told["a100"].why) == (homed, True)


def test_a_pod_that_runs_counts() -> None:
    """A pool is worth its homes for the work that runs now, though nothing waits."""
    running = BoundPod(uid="u", namespace="ml", name="p", gpu=SMALL.shape.gpu, shape=SMALL.shape)
    view = ClusterView(nodes=(node("n", A100, used=1, pods=(running,)),))
    told = {one.pool: one.why for one in pool_homes(view, PLAIN, FLEET, SAME_SPEED, Brakes(), NOW)}
    assert told["a100"].startswith("a pod of 1 GPU costs less on t4")


def test_pools_of_equal_reasons_are_one_line() -> None:
    """Homed pools come first; without homes nothing is said."""
    told = pool_homes(ClusterView(pending=(SMALL,)), HOMED, FLEET, SAME_SPEED, Brakes(), NOW)
    blank, title, *lines = section(told)
    assert (blank, title) == ("", "Homes")
    assert [line.split()[:2] for line in lines] == [["homed", "a100:"], ["open", "t4:"], ["open", "v100x4:"]]
    off = msgspec.structs.replace(HOMED, placement="none")
    assert pool_homes(ClusterView(), off, FLEET, SAME_SPEED, Brakes(), NOW) == ()
