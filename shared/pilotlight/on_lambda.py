"""The functions as handlers of AWS Lambda: ``pilotlight.on_lambda.pod_pending`` and its like.

They take what SQS, EventBridge, SNS and the Scheduler hand over; the environment is that of every deployment.
"""

from collections.abc import Callable
from typing import Any, Protocol

from pilotlight.doorway.batch import take
from pilotlight.doorway.functions import Function
from pilotlight.wiring import app


class Context(Protocol):
    """An invocation's context, as Lambda tells it."""

    def get_remaining_time_in_millis(self) -> int:
        """Until it is cut off."""
        ...


Handler = Callable[[Any, Context], dict[str, Any]]


def _handler(function: Function) -> Handler:
    def handle(event: Any, context: Context) -> dict[str, Any]:
        return take(app(), function, event, lambda: context.get_remaining_time_in_millis() / 1000)

    return handle


pod_pending = _handler("pod_pending")
kueue_admission = _handler("kueue_admission")
capacity_reconcile = _handler("capacity_reconcile")
billing_tick = _handler("billing_tick")
billing_import = _handler("billing_import")
spot_interruption = _handler("spot_interruption")
alert_fanout = _handler("alert_fanout")
