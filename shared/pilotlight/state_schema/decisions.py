"""Families of what a cluster's decisions leave behind."""

from datetime import datetime
from typing import Any

from pilotlight.codec.records import Format
from pilotlight.facts.capacity import InFlight
from pilotlight.facts.decisions import Record, Step
from pilotlight.facts.memory import Memory
from pilotlight.state_schema.table import Part, Parted, Table
from pilotlight.units import HOUR


def _with_steps(old: Any) -> dict[str, Any]:
    """The fields of a decision's record with steps, from those with effects (schema 1)."""
    steps, held = [], []
    calls = [*old["plan"].get("buys", []), *(n for n in old["plan"].get("nodes", []) if n["verdict"] == "release")]
    for n, (call, effect) in enumerate(zip(calls, old.pop("effects"), strict=True)):
        outcome, note = effect.get("outcome", "planned"), effect.get("note", "")
        if outcome in ("advised", "stopped"):
            code = "mode" if outcome == "advised" else "approval" if note.endswith("approval") else "limit"
            what = {"buy": call} if effect["call"] == "grow" else {"node": call}
            held.append({"code": code, "why": note, "count": effect.get("count", 0), **what})
            state, code = "revoked", "paused"
        else:
            state, code = _STATES[outcome]
        kept = {key: effect[key] for key in ("call", "pool", "target", "count", "to", "note") if key in effect}
        kept |= {"sent_at": old["at"]} if state == "sent" else {}
        steps.append({**kept, "n": n, "instance": call.get("instance", ""), "state": state, "code": code})
    return {**old, "steps": steps, "plan": {**old["plan"], "held": held}}


_STATES = {
    "planned": ("sent", ""),
    "done": ("done", ""),
    "denied": ("denied", "refused"),
    "kept": ("revoked", "taken"),
    "undone": ("revoked", "failed"),
}
"""Of what became of an effect. One that was planned may have been sent: the cloud is read."""


def _without_hits(old: Any) -> dict[str, Any]:
    """A memory without what pools were asked for, which was counted otherwise (schema 1): it is learned anew."""
    strange = sorted(old.keys() - {*Memory.__struct_encode_fields__})
    if strange:
        raise ValueError(f"it has the field {strange[0]!r}")
    return {key: value for key, value in old.items() if key != "hits"}


MEMORY = Table("memory", Format(Memory, _without_hits))
"""``<cluster>``."""

IN_FLIGHT = Table("inflight", Format(InFlight))
"""``<cluster>/<decision>.<n>``, and ``+<part>`` behind it for more demands than one record holds."""

OPEN = Table("open", Format(Record, _with_steps))
"""``<cluster>/<id>``: a decision from before its first call until after its last is known."""

STEP = Table("step", Format(Step), 24 * HOUR)
"""``<cluster>/<decision>/<n>``: one call of an open decision; left behind only where its worker came back too late."""


DECISION = Table("decision", Format(Record, _with_steps), 30 * 24 * HOUR)
"""``<cluster>/<id>``: a decision that was carried out."""


class IdlePart(Part[datetime], frozen=True, kw_only=True):
    """Since when nodes are idle, by name."""


class BeliefPart(Part[datetime], frozen=True, kw_only=True):
    """Since when pods are believed to fit where they are not bound, by pod and node."""


BELIEFS = Parted(Table("belief", Format(BeliefPart)), BeliefPart)
"""``<cluster>/<part>``."""

IDLE = Parted(Table("idle", Format(IdlePart)), IdlePart)
"""``<cluster>/<part>``."""
