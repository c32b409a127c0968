"""Proof that our account's limits hold: the admission policies as they are there, and dry runs of what they refuse.

The dry runs are our account's own, by its token or by impersonation; nothing is changed by them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes import pod_tolerations, writes
from pilotlight.adapters.cluster.kubernetes.access.server_access import Access, Source, token_of
from pilotlight.adapters.cluster.kubernetes.listing import NODES, PODS, pod_path
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.codec.kubernetes.nodes.gpu_models import POOL_LABELS
from pilotlight.codec.kubernetes.pages import listing
from pilotlight.codec.kubernetes.pods.pods import is_mirror
from pilotlight.codec.kubernetes.typed_objects import KubeNode, Pod, Wire
from pilotlight.errors import BadRequest, Busy, Forbidden, PilotlightError
from pilotlight.facts.labels import CLOSED_BY
from pilotlight.tools.checkup.rights import ACCOUNT, EVICTION_LIMIT, LIMIT, POD_LIMIT
from pilotlight.tools.checkup.survey_facts import Limit, Trial
from pilotlight.tools.install.admission_policy import names_of
from pilotlight.tools.install.connect_account import PLACES

_NODE_LIST, _POD_LIST = listing(KubeNode), listing(Pod)


class _Variable(Wire, frozen=True):
    name: str = ""
    expression: str = ""


class _PolicySpec(Wire, frozen=True):
    variables: tuple[_Variable, ...] = ()


class _Policy(Wire, frozen=True):
    spec: _PolicySpec = _PolicySpec()


_POLICY = typed_json.decoder(_Policy)


@dataclass(frozen=True, slots=True)
class _AsOurAccount:
    """A source whose calls are made as our account."""

    source: Source

    def access(self, *, anew: bool = False) -> Access:
        return replace(self.source.access(anew=anew), acting_as=ACCOUNT)


class _Unproven(Exception):
    """A trial that says nothing."""


def limit_of(source: Source, api: Api, pools: Sequence[str]) -> Limit:
    """The policy that limits our account's changes of nodes, and what it does. ``pools`` are those it should list."""
    return _proved(_read(api, LIMIT), _trials(api, _ours(source, api), pools))


def pod_limit_of(source: Source, api: Api) -> Limit:
    """The policy that limits our account's changes of pods, and what it does."""
    return _proved(_read(api, POD_LIMIT), _pod_trials(api, _ours(source, api)))


def eviction_limit_of(source: Source, api: Api, pools: Sequence[str]) -> Limit:
    """The policies that limit our account's evictions, and what they do. ``pools`` are those they should list."""
    return _proved(_read(api, EVICTION_LIMIT), _eviction_trials(api, _ours(source, api), pools))


def _ours(source: Source, api: Api) -> Api:
    """The API server as our account sees it."""
    token = token_of(source.access().token)
    return api if token is not None and token.subject == ACCOUNT else Api(_AsOurAccount(source))


def _proved(limit: Limit, tried: Iterator[Trial]) -> Limit:
    try:
        trials = tuple(tried)
    except Forbidden as no:
        if "impersonate" not in str(no):
            return msgspec.structs.replace(limit, patches=False)
        return msgspec.structs.replace(limit, unproven="this credential may not impersonate our account")
    except (_Unproven, PilotlightError) as error:
        return msgspec.structs.replace(limit, unproven=str(error))
    return msgspec.structs.replace(limit, patches=True, trials=trials)


def _read(api: Api, name: str) -> Limit:
    try:
        spec = api.get(f"{PLACES['ValidatingAdmissionPolicy']}/{name}", _POLICY).spec
    except Missing:
        return Limit(policy="absent")
    except PilotlightError:
        return Limit()
    try:
        api.get(f"{PLACES['ValidatingAdmissionPolicyBinding']}/{name}", NOTHING)
    except Missing:
        bound = False
    except PilotlightError:
        return Limit()
    else:
        bound = True
    pools = next((names_of(v.expression) for v in spec.variables if v.name == "pools"), None)
    return Limit(policy="there", bound=bound, pools=pools)


def _trials(api: Api, ours: Api, pools: Sequence[str]) -> Iterator[Trial]:
    """A label, and our taint inside and outside the pools: one node each, where there is one."""
    nodes = api.get(NODES, _NODE_LIST).items or []
    inside = [node for node in nodes if _names(node) & {*pools}]
    outside = [node for node in nodes if not _names(node) & {*pools}]
    if not nodes:
        raise _Unproven("there is no node to try it on")
    for what, node, change in (
        ("label", (inside or outside)[0], LABEL),
        *(("mark", node, _marked(api, node)) for node in inside[:1]),
        *(("stray", node, _marked(api, node)) for node in outside[:1]),
    ):
        name = node.metadata.name
        yield _tried(what, name, LIMIT, partial(_patch, ours, f"{NODES}/{quote(name)}", change))


def _pod_trials(api: Api, ours: Api) -> Iterator[Trial]:
    """A label, a toleration of everything and one of a home, on a pod that is not over."""
    pod = next((pod for pod in api.get(PODS, _POD_LIST, limit="100").items or [] if not pod.is_finished), None)
    if pod is None:
        raise _Unproven("there is no pod to try it on")
    for what, change in (
        ("label", partial(_patch, ours, pod_path(pod.metadata.namespace, pod.metadata.name), LABEL)),
        ("toleration", partial(pod_tolerations.try_toleration, ours, pod.metadata, {"operator": "Exists"})),
        ("home", partial(pod_tolerations.try_toleration, ours, pod.metadata, pod_tolerations.toleration("dry-run"))),
    ):
        yield _tried(what, pod.name, POD_LIMIT, change)


def _eviction_trials(api: Api, ours: Api, pools: Sequence[str]) -> Iterator[Trial]:
    """Of a pod outside the pools an eviction as it stands, one that names no node, and one that names a node of a pool;
    of a pod inside one as it stands.
    """
    inside = {node.metadata.name for node in api.get(NODES, _NODE_LIST).items or [] if _names(node) & {*pools}}
    pods = api.get(PODS, _POD_LIST, limit="500", fieldSelector="spec.nodeName!=").items or []
    bound = [pod for pod in pods if pod.spec.node_name and not pod.is_finished and not is_mirror(pod)]
    stray = next((pod for pod in bound if pod.spec.node_name not in inside), None)
    own = next((pod for pod in bound if pod.spec.node_name in inside), None)
    if stray is None and own is None:
        raise _Unproven("there is no pod on a node to try it on")
    some, node = stray or own, min(inside, default="")
    for what, pod, named in (
        ("plain", some, ""),
        *((("claimed", stray, node),) if node else ()),
        ("outside", stray, stray.spec.node_name if stray else ""),
        ("evicted", own, own.spec.node_name if own else ""),
    ):
        if pod is not None:
            evicts = partial(writes.evict, ours, pod.metadata.namespace, pod.metadata.name, pod.metadata.uid, named)
            yield _tried(what, pod.name, EVICTION_LIMIT, partial(evicts, only_ask=True))


LABEL = {"metadata": {"labels": {"pilotlight.dev/dry-run": "true"}}}
"""A change that both policies refuse."""


def _names(node: KubeNode) -> set[str]:
    return {node.metadata.labels[key] for key in POOL_LABELS if key in node.metadata.labels}


def _marked(api: Api, node: KubeNode) -> dict[str, Any]:
    marks = api.get(f"{NODES}/{quote(node.metadata.name)}", writes.MARKS)
    return {"metadata": {"annotations": {CLOSED_BY: "dry-run"}}, "spec": {"taints": writes.with_ours(marks)}}


def _patch(api: Api, path: str, change: dict[str, Any]) -> None:
    api.ask("PATCH", f"{path}?dryRun=All", NOTHING, change, MERGE_PATCH)


def _tried(what: Any, name: str, limit: str, change: Callable[[], None]) -> Trial:
    try:
        change()
    except Busy:
        return Trial(what=what, of=name, allowed=True)  # By a disruption budget alone, which is asked last.
    except BadRequest as no:
        said = str(no)
        return Trial(what=what, of=name, allowed=False if limit in said else None, said=said)
    return Trial(what=what, of=name, allowed=True)
