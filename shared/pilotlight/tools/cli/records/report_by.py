"""``pilotlight report --by``: a period's dollars by one attribute, in rows that add up to the report's total."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING

from pilotlight.errors import BadInput
from pilotlight.settings import deployed_settings
from pilotlight.tools.advice.money.spend_by import BY, PodTime, SpendRow, spend_by, spend_by_pods

if TYPE_CHECKING:
    from pilotlight.facts.money.bill import MeterDay

LABEL = "label="


def check_by(by: str, prometheus: str) -> None:
    """Raise ``BadInput`` for what nothing can be told by."""
    of_pods = by == "pod" or (by.startswith(LABEL) and by != LABEL)
    if by and by not in BY and not of_pods:
        raise BadInput(f"--by {by}: write {', '.join(BY)}, pod, or label=KEY, as label=app")
    if of_pods and not prometheus:
        raise BadInput(f"--by {by}: the meter keeps no pods; name the Prometheus of kube-state-metrics by --prometheus")
    if prometheus and not of_pods:
        raise BadInput("--prometheus tells pods and their labels: add --by pod or --by label=KEY")


def rows_by(
    by: str, metered: "Sequence[MeterDay]", first: date, last: date, team: str | None, prometheus: str, auth: str
) -> tuple[SpendRow, ...]:
    """The rows. Prometheus is asked for those days alone in which something was metered."""
    if by in BY:
        return spend_by(metered, first, last, BY[by], team)
    label = by.removeprefix(LABEL) if by != "pod" else ""
    return spend_by_pods(metered, first, last, seen_pods(metered, first, last, prometheus, auth, label), team)


def seen_pods(
    metered: "Sequence[MeterDay]", first: date, last: date, prometheus: str, auth: str, label: str = ""
) -> Iterator[PodTime]:
    """GPU-time of pods, or of values of a label, on the days in which something was metered."""
    from datetime import UTC, datetime

    from pilotlight.adapters.prometheus_api import PrometheusApi
    from pilotlight.tools.advice.kube_state import pod_times

    api = PrometheusApi(prometheus, deployed_settings().environ, auth)
    lit = {day.day for day in metered if day.lines}
    days = [day for day in (first + timedelta(n) for n in range((last - first).days + 1)) if day in lit]
    return pod_times(api, days, datetime.now(UTC), label)
