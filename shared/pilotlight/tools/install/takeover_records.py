"""Records of what taking pools over changed, in a ConfigMap beside our account: all that handing them back needs.

A key a pool. The Lease that every look renews (infra/kubernetes/placement) says how long we have been silent.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import quote

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.listing import NAMESPACES
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.codec.kubernetes.typed_objects import Metadata, Wire
from pilotlight.errors import Conflict
from pilotlight.facts.limits.pool_handover import Taken

NAMESPACE, NAME = "pilotlight", "pilotlight-takeover"
PLACE = f"{NAMESPACES}/{NAMESPACE}/configmaps"


class _Map(Wire, frozen=True):
    metadata: Metadata
    data: dict[str, str] = msgspec.field(default_factory=dict)


_MAP = typed_json.decoder(_Map)
_TAKEN = typed_json.decoder(Taken)


class Written(NamedTuple):
    """The pools that were taken over, by name, and what could not be read, a line each."""

    taken: Mapping[str, Taken]
    unread: tuple[str, ...] = ()


def read(api: Api) -> Written:
    """The records as they are there; none where no pool was ever taken over."""
    try:
        data = api.get(f"{PLACE}/{NAME}", _MAP).data
    except Missing:
        return Written({})
    taken: dict[str, Taken] = {}
    unread: list[str] = []
    for key, text in sorted(data.items()):
        try:
            one = _TAKEN.decode(text)
        except msgspec.DecodeError as error:
            unread.append(f"ConfigMap {NAMESPACE}/{NAME}: {key} cannot be read ({error}); it is left as it is")
        else:
            taken[one.pool] = one
    return Written(taken, tuple(unread))


def write(api: Api, taken: Taken) -> None:
    """Write a pool down, beside the others. Raises ``Missing`` where the namespace is not there."""
    data = {"data": {_key(taken.pool): msgspec.json.encode(taken).decode()}}
    try:
        api.ask("PATCH", f"{PLACE}/{NAME}", NOTHING, data, MERGE_PATCH)
        return
    except Missing:
        labels = {"app.kubernetes.io/name": "pilotlight"}
        meta = {"name": NAME, "namespace": NAMESPACE, "labels": labels}
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **data}
    try:
        api.ask("POST", PLACE, NOTHING, made)
    except Conflict:  # Somebody else made it at the same moment.
        api.ask("PATCH", f"{PLACE}/{NAME}", NOTHING, data, MERGE_PATCH)


def drop(api: Api) -> None:
    """Nothing is taken over any more."""
    with suppress(Missing):
        api.ask("DELETE", f"{PLACE}/{NAME}", NOTHING)


def tell(api: Api, message: str, now: datetime) -> None:
    """A Warning on the ConfigMap, which ``kubectl get events -n pilotlight`` shows. The same words are told once."""
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    told = blake2b(f"{at}/{message}".encode(), digest_size=8).hexdigest()
    about = {"apiVersion": "v1", "kind": "ConfigMap", "name": NAME, "namespace": NAMESPACE}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{NAME}.{told}", "namespace": NAMESPACE},
        "involvedObject": about,
        "reason": "HandedBack",
        "message": message[:1024],
        "type": "Warning",
        "source": {"component": "pilotlight"},
        "reportingComponent": "pilotlight",
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
    api.ask("POST", f"{NAMESPACES}/{quote(NAMESPACE)}/events", NOTHING, event)


def _key(pool: str) -> str:
    """A pool's key: its name, where a ConfigMap takes that."""
    if re.fullmatch(r"[-.a-zA-Z0-9]{1,200}", pool):
        return pool
    return f"_{blake2b(pool.encode(), digest_size=12).hexdigest()}"
