"""The right to evict, in namespaces that are named instead of in all: a Role and its binding in each."""

import re
from collections.abc import Iterable, Iterator, Sequence

from pilotlight.errors import BadInput
from pilotlight.tools.install.connect_account import ACCOUNT, LABEL, NAMESPACE, Object

EVICTIONS = f"{ACCOUNT}-evictions"
"""The name of each."""
_GROUP = "rbac.authorization.k8s.io"
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_RULE = {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}


def evict_in(objects: Sequence[Object], namespaces: Sequence[str], users: Iterable[str]) -> Iterator[Object]:
    """These objects, of which the role that acts evicts nowhere, and what lets our account and users evict there."""
    if wrong := [name for name in namespaces if not _NAMESPACE.fullmatch(name)]:
        raise BadInput(f"--evict-in {wrong[0]!r} is no name of a namespace")
    for one in objects:
        acts = (one["kind"], one["metadata"]["name"]) == ("ClusterRole", f"{ACCOUNT}-act")
        yield {**one, "rules": [rule for rule in one["rules"] if rule != _RULE]} if acts else one
    account = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    who = [account, *({"kind": "User", "apiGroup": _GROUP, "name": user} for user in users)]
    for name in namespaces:
        meta = {"name": EVICTIONS, "namespace": name, "labels": {LABEL: ACCOUNT}}
        made: Object = {"apiVersion": f"{_GROUP}/v1", "kind": "Role", "metadata": meta, "rules": [_RULE]}
        yield made
        ref = {"apiGroup": _GROUP, "kind": "Role", "name": EVICTIONS}
        yield {"apiVersion": f"{_GROUP}/v1", "kind": "RoleBinding", "metadata": meta, "roleRef": ref, "subjects": who}
