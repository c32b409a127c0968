"""Alerts of what is wrong say what it is in their first line, and which command shows more."""

from stage import Stage

from pilotlight.facts.messages import Alert
from pilotlight.facts.policy import PoolPolicy


def _told(stage: Stage, kind: str) -> Alert:
    [alert] = [alert for alert in stage.alerts if alert.kind == kind]
    return alert


def test_what_is_no_pod_is_told_with_what_is_the_matter() -> None:
    """A pool that another hand raised is named with that; no pod is to be asked why."""
    stage = Stage()
    stage.event(stage.submit("pod", run_s=7200))
    stage.minutes(5)
    stage.world.launch("one")
    stage.minutes(2)
    alert = _told(stage, "finding-pool-resized")
    assert (alert.what, alert.how, alert.subject) == ("pool one was raised by another hand", "pilotlight doctor", "")


def test_a_pod_that_gets_no_node_is_asked_why() -> None:
    """The command names the pod."""
    stage = Stage(pools={"one": PoolPolicy(instance_type="one", max=0)})
    stage.submit("waits")
    stage.minutes(1)
    alert = _told(stage, "refused")
    assert (alert.what, alert.how, alert.subject) == ("ml/waits refused", "pilotlight why ml/waits", "ml/waits")
