"""Figures of one cluster, pushed by OTLP after its billing tick where the environment names a receiver.

A push that fails is logged and forgotten: the next tick's has the same sums.
"""

import logging
from urllib.parse import unquote

from pilotlight.errors import PilotlightError
from pilotlight.flow.deps import Deps
from pilotlight.ports.state import State
from pilotlight.settings import Settings

PATH = "/v1/metrics"
TIMEOUT_S = 5.0
_log = logging.getLogger(__name__)


def push(deps: Deps, settings: Settings, alerts: State) -> None:
    """One attempt, of all that the states know now. Never raises what the ports raise."""
    from pilotlight.adapters.webhook_post import Poster
    from pilotlight.codec.otlp import metrics
    from pilotlight.flow import figures

    try:
        receiver = Poster(settings.otlp + PATH, "OTLP receiver", timeout_s=TIMEOUT_S, allow_private=True)
        samples = [*figures.of_cluster(deps), *figures.of_alerts(alerts)]
        headers = {"Content-Type": "application/json", **otlp_headers(settings.otlp_headers)}
        now = deps.now()
        answer = receiver.post(metrics(samples, now), headers)
        if not 200 <= answer.status < 300:
            raise receiver.refusal(answer, now, "check OTEL_EXPORTER_OTLP_ENDPOINT")
    except PilotlightError as error:
        _log.warning("figures were not pushed", extra={"data": {"cluster": deps.name, "why": str(error)}})


def otlp_headers(text: str) -> dict[str, str]:
    """Headers as OTEL_EXPORTER_OTLP_HEADERS has them: ``key=value,key=value``, percent-encoded."""
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {unquote(key.strip()): unquote(value.strip()) for key, _, value in pairs}
