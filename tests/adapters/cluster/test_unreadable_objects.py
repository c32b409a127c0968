"""An unexpected error in reading one object of a real API server costs that object alone."""

from typing import Any

import pytest
from hostile_site import HostileSite
from small_cloud import CATALOG

from pilotlight.codec.events import encode
from pilotlight.codec.kubernetes import view
from pilotlight.codec.kubernetes.nodes import nodes
from pilotlight.facts.messages import Tick
from pilotlight.settings import Settings
from pilotlight.units import HOUR
from pilotlight.wiring import App


def served(site: HostileSite) -> App:
    """The site as a deployment."""
    was = site.deps
    return App(
        Settings(mode="act", cluster="c"),
        cluster=was.cluster,
        pools=was.pools,
        state=was.state,
        outbox=was.outbox,
        clock=was.clock,
        policy=was.policy,
        catalog=CATALOG,
    )


def play(site: HostileSite, app: App, minutes: int) -> set[int]:
    """What looks once a minute answer."""
    answers = set()
    for n in range(minutes):
        site.world.advance(site.world.now_s + 60)
        tick = encode(Tick(cluster="c"), id=f"t{site.world.now_s}-{n}")
        answers.add(app.receive("capacity_reconcile", tick, {}).status)
    return answers


def odd(patch: pytest.MonkeyPatch, where: Any, function: str, name: str) -> None:
    """Whatever a pod of this name has written makes it raise."""
    real = getattr(where, function)

    def raises(asked: Any, *given: Any, **named: Any) -> Any:
        if asked.pod.metadata.name == name and not asked.pod.unread:
            raise KeyError(name)
        return real(asked, *given, **named)

    patch.setattr(where, function, raises)


def told(site: HostileSite) -> list[str]:
    """Whom people were told of, each time."""
    return [alert.subject for alert in site.alerts if alert.kind == "isolated" and not alert.resolved]


def test_a_waiting_pod_that_cannot_be_read_is_not_bought_for() -> None:
    """Nothing is launched for it, the pod that comes beside it is served, and it is told once in 50 looks."""
    site = HostileSite("20")
    app = served(site)
    with pytest.MonkeyPatch.context() as patch:
        odd(patch, view, "demand_of", "odd")
        site.submit("odd", run_s=10 * HOUR)
        assert play(site, app, 25) == {200}
        assert site.world.launches == 0
        site.submit("plain", run_s=10 * HOUR)
        assert play(site, app, 25) == {200}
    assert "plain" in site.world.running
    assert [name.partition("/")[2] for name in told(site)] == ["odd"]


def test_a_pod_on_a_node_that_cannot_be_read_keeps_its_node() -> None:
    """Its node counts as working for as long as it is there: never idle, never given back."""
    site = HostileSite("20")
    app = served(site)
    site.submit("odd", run_s=2 * HOUR)
    assert play(site, app, 10) == {200}
    with pytest.MonkeyPatch.context() as patch:
        odd(patch, nodes, "bound_pod", "odd")
        assert play(site, app, 60) == {200}
        assert (len(site.world.nodes), site.world.launches) == (1, 1)
        assert [name.partition("/")[2] for name in told(site)] == ["odd"]
    assert play(site, app, 90) == {200}
    assert not site.world.nodes
