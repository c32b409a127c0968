"""Limits of GPUs of Karpenter's NodePools given back: each is again what its annotation says stood before ours."""

from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import quote

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.nodepool_limits import NODE_POOLS
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.codec.kubernetes.karpenter_objects import BEFORE, WROTE
from pilotlight.errors import Forbidden
from pilotlight.facts.money.gates import LIMITED
from pilotlight.tools.install.hand_over import Told

_ANY = typed_json.decoder(dict[str, Any])


def our_limits(api: Api) -> dict[str, dict[str, Any]]:
    """The NodePools with a limit of ours, by name; none where there is no Karpenter, or it may not be seen."""
    try:
        found = api.get(NODE_POOLS, _ANY).get("items") or ()
    except (Missing, Forbidden):
        return {}
    return {each["metadata"]["name"]: each for each in found if BEFORE in (each["metadata"].get("annotations") or {})}


def give_back(api: Api, names: Collection[str], *, dry_run: bool) -> Iterator[Told]:
    """Give these their limits back, or all where none is named. Raises ``Conflict`` where one changed meanwhile."""
    for name, pool in sorted(our_limits(api).items()):
        if names and name not in names:
            continue
        meta = pool["metadata"]
        before, now = meta["annotations"][BEFORE], (pool["spec"].get("limits") or {}).get(LIMITED)
        if not dry_run:
            own = {"resourceVersion": meta.get("resourceVersion"), "annotations": {BEFORE: None, WROTE: None}}
            body = {"metadata": own, "spec": {"limits": {LIMITED: before or None}}}
            api.ask("PATCH", f"{NODE_POOLS}/{quote(name)}", NOTHING, body, MERGE_PATCH)
        yield Told(
            pool=f"NodePool {name}",
            verb="would set" if dry_run else "set",
            setting=f"limit of {LIMITED}",
            was="none" if now is None else str(now),
            now=before or "none",
        )
