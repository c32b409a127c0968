"""Proof that our account's limit holds: the admission policy as it is there, and dry runs of what it must refuse.

The dry runs are our account's own, by its token or by impersonation; nothing is changed by them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

import msgspec

from pilotlight.adapters.cluster.kubernetes import writes
from pilotlight.adapters.cluster.kubernetes.access.server_access import Access, Source
from pilotlight.adapters.cluster.kubernetes.access.tokens import token_of
from pilotlight.adapters.cluster.kubernetes.listing import NODES
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.codec.kubernetes.nodes.gpu_models import POOL_LABELS
from pilotlight.codec.kubernetes.pages import listing
from pilotlight.codec.kubernetes.typed_objects import KubeNode, Wire
from pilotlight.errors import BadRequest, Forbidden, PilotlightError
from pilotlight.tools.checkup.rights import ACCOUNT, LIMIT
from pilotlight.tools.checkup.survey_facts import Limit, Trial
from pilotlight.tools.install.admission_policy import names_of
from pilotlight.tools.install.connect_account import PLACES

_NODE_LIST = listing(KubeNode)


class _Variable(Wire, frozen=True):
    name: str = ""
    expression: str = ""


class _PolicySpec(Wire, frozen=True):
    variables: tuple[_Variable, ...] = ()


class _Policy(Wire, frozen=True):
    spec: _PolicySpec = _PolicySpec()


_POLICY = msgspec.json.Decoder(_Policy)


@dataclass(frozen=True, slots=True)
class _AsOurAccount:
    """A source whose calls are made as our account."""

    source: Source

    def access(self, *, anew: bool = False) -> Access:
        return replace(self.source.access(anew=anew), acting_as=ACCOUNT)


class _Unproven(Exception):
    """A trial that says nothing."""


def limit_of(source: Source, api: Api, pools: Sequence[str]) -> Limit:
    """The policy that limits our account, and what it does. ``pools`` are those it should list."""
    limit = _read(api)
    token = token_of(source.access().token)
    ours = api if token is not None and token.subject == ACCOUNT else Api(_AsOurAccount(source))
    try:
        trials = tuple(_trials(api, ours, pools))
    except Forbidden as no:
        if "impersonate" not in str(no):
            return msgspec.structs.replace(limit, patches=False)
        return msgspec.structs.replace(limit, unproven="this credential may not impersonate our account")
    except (_Unproven, PilotlightError) as error:
        return msgspec.structs.replace(limit, unproven=str(error))
    return msgspec.structs.replace(limit, patches=True, trials=trials)


def _read(api: Api) -> Limit:
    try:
        spec = api.get(f"{PLACES['ValidatingAdmissionPolicy']}/{LIMIT}", _POLICY).spec
    except Missing:
        return Limit(policy="absent")
    except PilotlightError:
        return Limit()
    try:
        api.get(f"{PLACES['ValidatingAdmissionPolicyBinding']}/{LIMIT}", NOTHING)
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
    yield _tried(ours, "label", (inside or outside)[0], {"metadata": {"labels": {"pilotlight.dev/dry-run": "true"}}})
    if inside:
        yield _tried(ours, "mark", inside[0], _marked(api, inside[0]))
    if outside:
        yield _tried(ours, "stray", outside[0], _marked(api, outside[0]))


def _names(node: KubeNode) -> set[str]:
    return {node.metadata.labels[key] for key in POOL_LABELS if key in node.metadata.labels}


def _marked(api: Api, node: KubeNode) -> dict[str, Any]:
    marks = api.get(f"{NODES}/{quote(node.metadata.name)}", writes.MARKS)
    return {"spec": {"taints": writes.with_ours(marks)}}


def _tried(api: Api, what: Any, node: KubeNode, change: dict[str, Any]) -> Trial:
    name = node.metadata.name
    try:
        api.ask("PATCH", f"{NODES}/{quote(name)}?dryRun=All", NOTHING, change, MERGE_PATCH)
    except BadRequest as no:
        said = str(no)
        return Trial(what=what, node=name, allowed=False if LIMIT in said else None, said=said)
    return Trial(what=what, node=name, allowed=True)
