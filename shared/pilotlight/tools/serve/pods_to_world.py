"""Pods in the world: the one that an event names, or one given as a Pod."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from pilotlight import typed_json
from pilotlight.codec.events import Delivery, decode
from pilotlight.codec.kubernetes.companions import Objects
from pilotlight.codec.kubernetes.view import view_of
from pilotlight.decide.demand.classify import classify
from pilotlight.errors import BadInput
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.demand.settled_claims import Refused, refusals, settle_claims
from pilotlight.facts.messages import PodPending
from pilotlight.facts.workload import CLAIM_REFUSED, GpuRequest, PodDemand, PodTraits, Toleration, shape
from pilotlight.ports.cluster import Cluster
from pilotlight.tools.cli.kubectl_lists import read_pods
from pilotlight.units import Seconds
from pilotlight.wiring import App

RUN_S: Seconds = 600
"""How long such a pod of the world runs once it has started."""


def create(app: App, body: bytes, headers: Mapping[str, str]) -> list[str]:
    """Create in the world the pods of a Pod (or a list of them), or those that an event names; their names.

    They wait from now on, for a sample's own time is long ago. A pod that is there already stays as it is. Raises
    ``Reject`` for a body that holds neither.
    """
    now = app.clock.now()
    demands = [msgspec.structs.replace(one, created_at=now) for one in _demands(app, body, headers)]
    if app.served_world is not None:
        return app.served_world.create(demands, RUN_S)
    from pilotlight.tools.serve import world_pods

    return world_pods.create(app.world, demands, RUN_S)


def app_with_pods(app: App, body: bytes, headers: Mapping[str, str]) -> App:
    """The app as if those pods were in its cluster: nothing is created anywhere, so that a dry run changes nothing."""
    deps = app.deps
    cluster = _Supposed(deps.cluster, _demands(app, body, headers))
    return App(
        app.settings,
        cluster=cast(Cluster, cluster),
        pools=deps.pools,
        state=app.state,
        outbox=app.outbox,
        clock=app.clock,
        policy=app.policy,
        catalog=app.catalog,
    )


class _Supposed:
    """A cluster that shows pods it does not have; whatever else is asked goes to it."""

    def __init__(self, cluster: Cluster, demands: Sequence[PodDemand]) -> None:
        self._cluster, self._demands = cluster, tuple(demands)

    def observe(self) -> ClusterView:
        view = self._cluster.observe()
        here = {pod.uid for pod in view.pending}
        more = tuple(pod for pod in self._demands if pod.uid not in here)
        claimed = (Refused(p.namespace, p.created_at, p.full_name, p.shape.team, p.refused) for p in more)
        findings = (*view.findings, *refusals(claimed))
        return msgspec.structs.replace(view, pending=(*view.pending, *more), findings=findings)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


def _demands(app: App, body: bytes, headers: Mapping[str, str]) -> list[PodDemand]:
    if _is_pod(body, headers):
        return _of_pods(app, body, "the body")
    found = decode(body, headers, cluster=app.deps.name)
    events = [one.message for one in found if isinstance(one, Delivery) and isinstance(one.message, PodPending)]
    return [demand for event in events for demand in _of_event(app, event)]


def _of_event(app: App, event: PodPending) -> list[PodDemand]:
    if event.pod is not None:
        return _of_pods(app, msgspec.json.encode(event.pod), f"{event.namespace}/{event.name}")
    payer = settle_claims(app.policy, event.namespace, None, PodTraits(), 0, classify).team
    plain = shape(
        gpu=GpuRequest(count=1),
        tolerations=(Toleration(operator="Exists"),),
        workload_class="notebook",
        class_reason="the event names a pod without its spec: taken as a notebook with one GPU",
        team=payer,
    )
    uid = event.uid or f"{event.namespace}/{event.name}"
    now = app.clock.now()
    return [PodDemand(uid=uid, namespace=event.namespace, name=event.name, shape=plain, created_at=now)]


def _of_pods(app: App, body: bytes, where: str) -> list[PodDemand]:
    view = view_of(read_pods(body, where), (), Objects(), policy=app.policy, classify=classify)
    if wrong := [one for one in view.findings if one.code != CLAIM_REFUSED]:
        subject = "" if wrong[0].subject == where else f"{wrong[0].subject}: "
        raise BadInput(f"{where}: {subject}{wrong[0].message}")
    if not view.pending:
        raise BadInput(f"{where}: no pod in it waits for a GPU")
    return list(view.pending)


def _is_pod(body: bytes, headers: Mapping[str, str]) -> bool:
    """True where a body is pods and no CloudEvent: Knative's references to a pod carry its kind, too."""
    try:
        head = typed_json.decode(body, _Head)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    wrapped = head.specversion or any(name.lower() == "ce-specversion" for name in headers)
    return not wrapped and head.kind in ("Pod", "PodList", "List")


class _Head(msgspec.Struct, frozen=True):
    kind: str = ""
    specversion: str = ""
