"""An account of Pilotlight's own on a cluster: its objects, a token that ends, and a kubeconfig of nothing more.

Whoever connects shows their own credential once; only the server's address, its CA and the new token are written.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.access.server_access import Access
from pilotlight.adapters.cluster.kubernetes.listing import NAMESPACES
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.codec.kubernetes.typed_objects import Wire
from pilotlight.errors import BadInput, Failed
from pilotlight.units import Seconds

ACCOUNT, NAMESPACE = "pilotlight", "pilotlight"
READER = "pilotlight-reader"
"""The account of rbac/read.yaml, which can never act."""
LABEL = "app.kubernetes.io/name"
"""What every object of ours carries, with the account's name."""

_RBAC, _ADMISSION = "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
PLACES = {
    "Namespace": NAMESPACES,
    "ServiceAccount": f"{NAMESPACES}/{NAMESPACE}/serviceaccounts",
    "Lease": f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases",
    "CronJob": f"/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs",
    "Role": f"{_RBAC}/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"{_RBAC}/namespaces/{NAMESPACE}/rolebindings",
    "ClusterRole": f"{_RBAC}/clusterroles",
    "ClusterRoleBinding": f"{_RBAC}/clusterrolebindings",
    "ValidatingAdmissionPolicy": f"{_ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{_ADMISSION}/validatingadmissionpolicybindings",
}
"""Where the kinds of infra/kubernetes that are applied lie."""

_ANY = typed_json.decoder(dict[str, Any])

Object = dict[str, Any]


class Step(NamedTuple):
    """The step to take about one object."""

    verb: Literal["create", "change", "keep", "remove", "reopen"]
    kind: str
    name: str
    why: str = ""


class _Minted(Wire, frozen=True):
    token: str
    expiration_timestamp: datetime


class _TokenRequest(Wire, frozen=True):
    status: _Minted


class Minted(NamedTuple):
    """A token, and when the API server says that it ends."""

    token: str
    ends: datetime


def apply(api: Api, objects: Iterable[Object], *, dry_run: bool) -> Iterator[Step]:
    """Create what is missing, change what differs, keep the rest; fields that others set stay as they are.

    Raises ``Failed`` at a kind that the API server does not know, and at an object of that name that is not ours; what
    stands before it has been made by then.
    """
    for wanted in objects:
        kind, name = wanted["kind"], wanted["metadata"]["name"]
        place = place_of(wanted)
        try:
            there = api.get(f"{place}/{quote(name)}", _ANY)
        except Missing:
            step = Step("create", kind, name)
        else:
            step = Step("keep" if _holds(there, wanted) else "change", kind, name)
            if step.verb == "change" and not is_ours(there):
                raise Failed(
                    f"{kind} {name} is there, and not Pilotlight's: it lacks the label {LABEL}={ACCOUNT}; rename it, or"
                    " give it that label where it is to be changed"
                )
        if not dry_run and step.verb == "create":
            _create(api, place, wanted)
        elif not dry_run and step.verb == "change":
            api.ask("PATCH", f"{place}/{quote(name)}", NOTHING, wanted, MERGE_PATCH)
        yield step


def place_of(one: Object) -> str:
    """Where an object lies; one in a namespace that is not ours says so."""
    return PLACES[one["kind"]].replace(f"/{NAMESPACE}/", f"/{one['metadata'].get('namespace', NAMESPACE)}/")


def is_ours(there: Object) -> bool:
    """True where an object was made by a version of these manifests; others' of the same name are left alone."""
    return (there.get("metadata", {}).get("labels") or {}).get(LABEL) == ACCOUNT


def _create(api: Api, place: str, wanted: Object) -> None:
    try:
        api.ask("POST", place, NOTHING, wanted)
    except Missing:
        raise Failed(
            f"the API server knows no {wanted['kind']} of {wanted['apiVersion']}, which limits what our account may"
            " change; it is part of Kubernetes from 1.30 on: upgrade the cluster, or connect without --act"
        ) from None


def _holds(there: object, wanted: object) -> bool:
    """True where all that is wanted is there; the server adds defaults of its own."""
    if isinstance(wanted, Mapping) and isinstance(there, Mapping):
        return all(_holds(there.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(there, list):
        return len(there) == len(wanted) and all(map(_holds, there, wanted))
    return there == wanted


def has_role(api: Api, role: str) -> bool:
    """True where our account has the role of a file in rbac/."""
    try:
        api.get(f"{PLACES['ClusterRoleBinding']}/{ACCOUNT}-{role}", _ANY)
    except Missing:
        return False
    return True


def mint(api: Api, seconds: Seconds, account: str = ACCOUNT) -> Minted:
    """A new token of an account of ours. The API server may make it shorter than asked for. Raises ``Missing``."""
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": int(seconds)},
    }
    made = api.ask("POST", f"{PLACES['ServiceAccount']}/{account}/token", typed_json.decoder(_TokenRequest), body)
    return Minted(made.status.token, made.status.expiration_timestamp)


def kubeconfig(access: Access, token: str, name: str) -> str:
    """A kubeconfig of one context with that token, and of ``access`` only the address and whom to trust."""
    import base64

    cluster = {"server": access.server}
    if access.ca:
        cluster["certificate-authority-data"] = base64.b64encode(access.ca.encode()).decode()
    if access.server_name:
        cluster["tls-server-name"] = access.server_name
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": ACCOUNT, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": ACCOUNT, "namespace": NAMESPACE}}],
    }
    # JSON is YAML, and needs no package to write.
    return msgspec.json.format(msgspec.json.encode(config)).decode() + "\n"


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, in one step: what was there is whole until the new one is.

    Raises ``Failed``.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        beside.replace(path)
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}; name another place with --out") from None


def read_objects(texts: Mapping[str, bytes]) -> list[Object]:
    """The objects of manifests by their names. Raises ``BadInput``."""
    import yaml

    from pilotlight.codec.bounded_yaml import load_all

    try:
        return [each for text in texts.values() for each in load_all(text) if each]
    except yaml.YAMLError as error:
        raise BadInput(f"infra/kubernetes: {error}") from None
