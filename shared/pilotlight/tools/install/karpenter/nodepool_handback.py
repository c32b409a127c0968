"""Limits of GPUs of Karpenter's NodePools given back: each is again what its annotation says stood before ours.

A mark stays on each, by which no tick sets a limit of ours again, until the NodePool is taken over.
"""

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.nodepool_limits import NODE_POOLS
from pilotlight.adapters.cluster.kubernetes.transport import MERGE_PATCH, NOTHING, Api, Missing
from pilotlight.codec.kubernetes.karpenter_objects import BEFORE, HANDED_BACK, WROTE
from pilotlight.errors import Conflict, Forbidden
from pilotlight.facts.money.gates import LIMITED
from pilotlight.tools.install.hand_over import Told

TRIES = 5
_ANY = typed_json.decoder(dict[str, Any])


def our_limits(api: Api) -> dict[str, dict[str, Any]]:
    """The NodePools with a limit of ours, by name; none where there is no Karpenter, or it may not be seen."""
    return _noted(api, BEFORE)


def _noted(api: Api, note: str) -> dict[str, dict[str, Any]]:
    try:
        found = api.get(NODE_POOLS, _ANY).get("items") or ()
    except (Missing, Forbidden):
        return {}
    return {each["metadata"]["name"]: each for each in found if note in (each["metadata"].get("annotations") or {})}


def take_again(api: Api, names: Collection[str], *, dry_run: bool) -> Iterator[Told]:
    """Take the mark off these NodePools, or off all where none is named: the next tick sets their limits."""
    for name in sorted(_noted(api, HANDED_BACK)):
        if names and name not in names:
            continue
        if not dry_run:
            _patch(api, name, {"metadata": {"annotations": {HANDED_BACK: None}}})
        yield Told(pool=f"NodePool {name}", verb="would set" if dry_run else "set", setting="handed back", was="yes")


def _patch(api: Api, name: str, body: dict[str, Any]) -> None:
    api.ask("PATCH", f"{NODE_POOLS}/{quote(name)}", NOTHING, body, MERGE_PATCH)


def give_back(api: Api, names: Collection[str], now: datetime, *, dry_run: bool) -> Iterator[Told]:
    """Give these their limits back, or all where none is named. Raises ``Conflict`` where one changes again and again:
    Karpenter itself writes its counts into a NodePool at any time.
    """
    for name, pool in sorted(our_limits(api).items()):
        if not names or name in names:
            yield from _tried(api, name, pool, now, dry_run)


def _tried(api: Api, name: str, pool: dict[str, Any], now: datetime, dry: bool) -> Iterator[Told]:
    """One as it was read, then as it stands now; nothing where another hand gave it back meanwhile."""
    read: dict[str, Any] | None = pool
    for left in reversed(range(TRIES)):
        if read is None:
            return
        try:
            yield _given_back(api, read, now, dry)
            return
        except Conflict:
            if not left:
                raise
            read = our_limits(api).get(name)


def _given_back(api: Api, pool: dict[str, Any], now: datetime, dry: bool) -> Told:
    meta = pool["metadata"]
    name, before, limit = meta["name"], meta["annotations"][BEFORE], (pool["spec"].get("limits") or {}).get(LIMITED)
    if not dry:
        notes = {BEFORE: None, WROTE: None, HANDED_BACK: now.strftime("%Y-%m-%dT%H:%M:%SZ")}
        own = {"resourceVersion": meta.get("resourceVersion"), "annotations": notes}
        _patch(api, name, {"metadata": own, "spec": {"limits": {LIMITED: before or None}}})
    was = "none" if limit is None else str(limit)
    verb: Literal["set", "would set"] = "would set" if dry else "set"
    return Told(pool=f"NodePool {name}", verb=verb, setting=f"limit of {LIMITED}", was=was, now=before or "none")
