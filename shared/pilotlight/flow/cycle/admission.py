"""Kueue's admission check answered at the end of a look: what is queued is let in when its nodes are ready.

The dollars of those nodes were held when they were bought, by the same look as any other purchase. An answer that
cannot be written fails nothing: the work still waits for it at the next look.
"""

import logging
from datetime import datetime

from pilotlight.decide.capacity.admission import answers
from pilotlight.errors import Denied, Retry
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.decisions import Plan
from pilotlight.flow.deps import Deps
from pilotlight.ports import AdmittingCluster

_log = logging.getLogger("pilotlight.admission")


def admit(deps: Deps, view: ClusterView, plan: Plan, now: datetime) -> tuple[str, ...]:
    """Write what is answered now, a line each; nothing where no pool may be acted on."""
    cluster, done = deps.cluster, list[str]()
    if not isinstance(cluster, AdmittingCluster) or not deps.acts:
        return ()
    for answer in answers(view, plan, now):
        about = f"{answer.of.namespace}/{answer.of.name}"
        try:
            cluster.answer_check(answer)
        except (Denied, Retry) as error:
            _log.warning("not answered", extra={"data": {"workload": about, "why": str(error)}})
            continue
        done.append(f"answered {answer.state} for Workload {about}: {answer.message}")
    return tuple(done)
