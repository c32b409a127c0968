"""Users that a cluster knows by themselves, as GKE does a cloud's accounts: the roles they are bound to, and who acts.

No token of ours is made for them. Two bindings name them: who acts, and who looks (which is everybody).
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.transport import Api, Missing
from pilotlight.errors import BadInput
from pilotlight.tools.install.connect_account import ACCOUNT, LABEL, NAMESPACE, PLACES, Object

ACTS, LOOKS = f"{ACCOUNT}-act-accounts", f"{ACCOUNT}-observe-accounts"
ADMITS, STOPS = f"{ACCOUNT}-kueue-accounts", f"{ACCOUNT}-queues-accounts"
QUEUE_LOOKS, QUEUE_ACTS = f"{ACCOUNT}-gke-queue-accounts", f"{ACCOUNT}-gke-queue-act-accounts"
"""The names of the bindings; with Kueue of who answers its checks, and of who stops queues; of GKE's queue, in our
namespace."""

_GROUP = "rbac.authorization.k8s.io"
_NAME = re.compile(r"[A-Za-z0-9@._:/+-]{1,253}")
_ANY = typed_json.decoder(dict[str, Any])


def bindings(
    actors: Iterable[str], readers: Iterable[str], *, kueue: bool = False, gke_queue: bool = False
) -> Iterator[Object]:
    """RoleBindings of actors and readers. Raises ``BadInput`` for what names no account, or one of Kubernetes' own."""
    actors, readers = list(actors), list(readers)
    for name in (*actors, *readers):
        if not _NAME.fullmatch(name) or name.startswith("system:"):
            raise BadInput(
                f"{name!r} is no account: name it as the cluster does, as in pilotlight@acme.iam.gserviceaccount.com"
            )
    if both := set(actors) & set(readers):
        raise BadInput(f"{min(both)} is an actor and a reader: name it once")
    yield _binding(LOOKS, "observe", (*actors, *readers))
    if actors:
        yield _binding(ACTS, "act", actors)
    if kueue:
        # Who counts money stops queues, and does nothing else.
        yield _binding(STOPS, "queues", (*actors, *readers))
        if actors:
            yield _binding(ADMITS, "kueue", actors)
    if gke_queue:
        yield _binding(QUEUE_LOOKS, "gke-queue", (*actors, *readers), NAMESPACE)
        if actors:
            yield _binding(QUEUE_ACTS, "gke-queue-act", actors, NAMESPACE)


def acting(api: Api) -> tuple[str, ...]:
    """The accounts that are bound to act now."""
    try:
        there = api.get(f"{PLACES['ClusterRoleBinding']}/{ACTS}", _ANY)
    except Missing:
        return ()
    return tuple(subject["name"] for subject in there.get("subjects") or () if subject.get("kind") == "User")


def _binding(name: str, role: str, accounts: Iterable[str], namespace: str = "") -> Object:
    where = {"namespace": namespace} if namespace else {}
    kind = "Role" if namespace else "ClusterRole"
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": {"name": name, **where, "labels": {LABEL: ACCOUNT}},
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": f"{ACCOUNT}-{role}"},
        "subjects": [{"kind": "User", "apiGroup": _GROUP, "name": account} for account in accounts],
    }
