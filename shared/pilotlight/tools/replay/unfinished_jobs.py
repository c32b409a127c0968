"""Reasons why a run leaves jobs undone: what they wait for."""

from collections.abc import Mapping

from pilotlight.flow.cycle.planning import dry_run
from pilotlight.flow.deps import Deps
from pilotlight.world.world_nodes import WorldJob


def reasons(deps: Deps, jobs: Mapping[str, WorldJob]) -> dict[str, str]:
    """Why each waiting job has no node, as one more look would decide; by the job's id."""
    plan = dry_run(deps, releases=False).plan if jobs else None
    if plan is None:
        return {}
    said = {uid: group.why for group in plan.pods for uid in group.uids}
    return {name: said[uid] for name, job in jobs.items() if (uid := job.demands[0].uid) in said}
