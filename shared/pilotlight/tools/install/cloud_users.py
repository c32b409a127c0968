"""Users that a cluster knows by themselves, as GKE does a cloud's accounts: the roles they are bound to, and who acts.

No token of ours is made for them. Two bindings name them: who acts, and who looks (which is everybody).
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.transport import Api, Missing
from pilotlight.errors import BadInput
from pilotlight.tools.install.connect_account import ACCOUNT, LABEL, NAMESPACE, PLACES, Object

_GROUP = "rbac.authorization.k8s.io"
_NAME = re.compile(r"[A-Za-z0-9@._:/+-]{1,253}")
_ANY = typed_json.decoder(dict[str, Any])


class Extra(NamedTuple):
    """Roles of a file in rbac/ that is off unless asked for: whose they are, and if they stand in our namespace."""

    acts: tuple[str, ...] = ()
    looks: tuple[str, ...] = ()  # Who acts looks too.
    counts: tuple[str, ...] = ()  # Who only looks, and counts money and idle GPUs.
    namespaced: bool = False

    @property
    def roles(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.looks, *self.acts, *self.counts)


EXTRAS: Mapping[str, Extra] = {
    "kueue": Extra(("kueue",), ("queues",)),  # Who counts money stops queues, and does nothing else.
    "gke-queue": Extra(("gke-queue-act",), ("gke-queue",), namespaced=True),
    "karpenter": Extra(("karpenter",)),
    "karpenter-claims": Extra(("karpenter-claims",)),
    "reclaim": Extra(counts=("reclaim",)),  # billing_tick alone finds idle owners.
}
"""By the file's name, which is the option of `pilotlight connect` too."""
TO_ACT = tuple(name for name, extra in EXTRAS.items() if extra.acts and name != "kueue")
"""Those that are of no use to an account that does not act."""


def bindings(actors: Iterable[str], readers: Iterable[str], extras: Container[str] = ()) -> Iterator[Object]:
    """RoleBindings of actors and readers. Raises ``BadInput`` for what names no account, or one of Kubernetes' own."""
    actors, readers = list(actors), list(readers)
    for name in (*actors, *readers):
        if not _NAME.fullmatch(name) or name.startswith("system:"):
            raise BadInput(
                f"{name!r} is no account: name it as the cluster does, as in pilotlight@acme.iam.gserviceaccount.com"
            )
    if both := set(actors) & set(readers):
        raise BadInput(f"{min(both)} is an actor and a reader: name it once")
    yield _binding("observe", (*actors, *readers))
    if actors:
        yield _binding("act", actors)
    for extra in (extra for name, extra in EXTRAS.items() if name in extras):
        namespace = NAMESPACE if extra.namespaced else ""
        for role in extra.roles:
            accounts = [*(actors if role not in extra.counts else ()), *(readers if role not in extra.acts else ())]
            if accounts:
                yield _binding(role, accounts, namespace)


def binding_of(role: str) -> str:
    """The name of the binding of a role to accounts of the cluster's own."""
    return f"{ACCOUNT}-{role}-accounts"


def acting(api: Api) -> tuple[str, ...]:
    """The accounts that are bound to act now."""
    try:
        there = api.get(f"{PLACES['ClusterRoleBinding']}/{binding_of('act')}", _ANY)
    except Missing:
        return ()
    return tuple(subject["name"] for subject in there.get("subjects") or () if subject.get("kind") == "User")


def _binding(role: str, accounts: Iterable[str], namespace: str = "") -> Object:
    where = {"namespace": namespace} if namespace else {}
    kind = "Role" if namespace else "ClusterRole"
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": {"name": binding_of(role), **where, "labels": {LABEL: ACCOUNT}},
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": f"{ACCOUNT}-{role}"},
        "subjects": [{"kind": "User", "apiGroup": _GROUP, "name": account} for account in accounts],
    }
