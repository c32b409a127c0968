"""Marks of nodes that we keep closed to new pods, by owner: a node opens when its last owner leaves.

Key: ``mark/<cluster>/<node>``, written before the node is marked and deleted before it is opened: a crash leaves a
marked node that no record names, which the next look opens.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from pilotlight.errors import BadRequest, Busy, Conflict, Denied, Retry
from pilotlight.facts.capacity import Node
from pilotlight.facts.labels import CORDONED
from pilotlight.facts.workload import Finding
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import ledger
from pilotlight.flow.records.lease import LOST
from pilotlight.ports.state import ABSENT
from pilotlight.state_schema.cluster_records import NODE_MARK, MarkOwner, NodeMark, Ownership
from pilotlight.state_schema.instance_records import RESCUE

REST = timedelta(hours=1)
"""A node that a person opened again is not given back for so long."""

GOING = timedelta(minutes=10)
"""A node object may be seen for so long after its instance was given back."""

SETTLED = timedelta(seconds=30)
"""A mark so old is on its node for certain: where it is not, a person took it off."""


def hold(
    deps: Deps,
    node: str,
    owner: MarkOwner,
    why: str,
    *,
    by: str = "",
    until: datetime | None = None,
    doubted: bool = False,
) -> None:
    """Keep a node closed for an owner's sake. Repeating it is harmless. Raises what the cluster raises.

    Decisions' names sort by time: one that comes after a later one held the node is a worker's that stood still.
    """
    now, node = deps.now(), deps.known_as(node)
    while True:
        mark, version = _read(deps, node)
        if owner in mark.owners and mark.owners[owner].by > by:
            raise Busy(LOST)
        since = mark.owners[owner].since if owner in mark.owners else now
        owners: dict[MarkOwner, Ownership] = {
            **mark.owners,
            owner: Ownership(why=why, by=by, since=since, until=until, doubted=doubted),
        }
        if owners == mark.owners or _put(deps, NodeMark(node=node, owners=owners), version):
            break
    deps.cluster.cordon(node, by if owner == "release" else "")
    if owner not in mark.owners and owner != "release":  # What came of that is told when it is known.
        deps.tell("", node, CORDONED, f"Pilotlight lets no new pods onto it: {why}", owner)


def hear_opened(deps: Deps, node: Node, now: datetime) -> None:
    """Write down that a person opened a node that was being given back: another owner who closes it would hide it."""
    mark = _read(deps, deps.known_as(node.name))[0] if node.opened_by else None
    if mark is not None and _names_ours(deps, node, mark, now):
        _opened_by_hand(deps, mark, node, now)


def is_held(deps: Deps, node: str, owner: MarkOwner) -> bool:
    """True where an owner keeps a node closed."""
    return owner in _read(deps, deps.known_as(node))[0].owners


def lift(deps: Deps, node: str, owner: MarkOwner, *, by: str = "") -> None:
    """An owner leaves; with the last one the node opens, at the next look where that is refused now.

    Where another decision holds it since, ``by`` is not its name and nothing changes.
    """
    node = deps.known_as(node)
    while True:
        mark, version = _read(deps, node)
        if owner in mark.owners and mark.owners[owner].by != by:
            return
        owners = {name: claim for name, claim in mark.owners.items() if name != owner}
        if _put(deps, NodeMark(node=node, owners=owners), version):
            break
    if not NodeMark(node=node, owners=owners).is_closed:
        with suppress(Denied):
            open_node(deps, node)


def forget(deps: Deps, node: str) -> None:
    """The node is gone."""
    NODE_MARK.delete(deps.state, _name(deps, node))


def mark_released(deps: Deps, node: str, why: str, *, by: str = "") -> None:
    """Its cloud takes the instance: while the node object is still seen it stays closed, whoever else leaves.

    A cluster that does not answer changes nothing: the node was closed before, and a later look closes it again.
    """
    try:
        deps.cluster.cordon(node)
    except BadRequest:  # It is gone already.
        forget(deps, node)
        return
    except (Denied, Retry):
        pass
    now = deps.now()
    claim = Ownership(why=why, by=by, since=now, until=now + GOING, given_back=True)
    NODE_MARK.put(deps.state, _name(deps, node), NodeMark(node=node, owners={"release": claim}))


def released_nodes(
    found: Iterable[NodeMark], nodes: Sequence[Node], now: datetime, ending: Container[str] = ()
) -> set[str]:
    """Nodes that are still seen though their instance was given back; ``ending`` are those that a cloud is ending."""
    claims = {mark.node: mark.owners.get("release") for mark in found}
    return {n.name for n in nodes if (c := claims.get(n.name)) and c.given_back and not _back(c, n, now, ending)}


def in_doubt(found: Iterable[NodeMark]) -> frozenset[str]:
    """Nodes that are closed for nothing but a notice that nobody confirms."""
    return frozenset(
        mark.node
        for mark in found
        if mark.is_closed and all(claim.doubted for owner, claim in mark.owners.items() if owner != "person")
    )


def _back(claim: Ownership, node: Node, now: datetime, ending: Container[str]) -> bool:
    """True where it did not go after all, or another has its name since."""
    return (_over(claim, now) and node.instance not in ending) or node.created_at > claim.since


def open_node(deps: Deps, node: str) -> None:
    """Take our mark off a node. One that is gone is no error."""
    try:
        deps.cluster.uncordon(deps.known_as(node))
    except BadRequest:
        return


def settle(
    deps: Deps, nodes: Sequence[Node], leaving: Container[str], now: datetime, ending: Container[str] = ()
) -> tuple[dict[str, datetime], tuple[Finding, ...]]:
    """Set marks against what a look shows: nodes that rest and until when, and what people should know.

    A node that a person opened while it was being given back rests; one that others keep closed is closed again. A mark
    that no record names, and one whose time is over, comes off; so does that of an interruption which another worker
    ended before it was written. What may still be called for a node keeps it closed.
    """
    known = {mark.node: mark for mark in every(deps)}
    late = _late(deps, known.values(), now)
    rests: dict[str, datetime] = {}
    findings: list[Finding] = []
    for node in nodes:
        name = deps.known_as(node.name)
        try:
            until, told = _settle_one(deps, known.pop(name, None), node, leaving, late, now, ending)
        except Denied as no:
            until, gone = _rests_until(_read(deps, name)[0], now), isinstance(no, BadRequest)
            told = [] if gone else [Finding(subject=f"node {node.name}", code="mark-refused", message=str(no))]
        rests |= {node.name: until} if until is not None else {}
        findings += told
    for left in known.values():
        if _settled(left, now):
            forget(deps, left.node)
    return rests, tuple(findings)


def _settle_one(
    deps: Deps,
    mark: NodeMark | None,
    node: Node,
    leaving: Container[str],
    late: Container[str],
    now: datetime,
    ending: Container[str],
) -> tuple[datetime | None, list[Finding]]:
    """Settle the mark of a node that is seen: until when it rests, and what people should know."""
    opened = bool(node.opened_by) and _names_ours(deps, node, mark, now)
    if mark is None and not opened:
        if node.marked and node.name not in leaving:
            open_node(deps, node.name)
        elif node.opened_by:
            deps.cluster.forget_opened(deps.known_as(node.name))
        return None, []
    mark = mark or NodeMark(node=deps.known_as(node.name), owners={})
    if mark.node in late:
        lift(deps, node.name, "rescue")
    elif (release := mark.owners.get("release")) is not None and release.given_back:
        if _back(release, node, now, ending):
            lift(deps, node.name, "release", by=release.by)
        elif not node.marked:
            deps.cluster.cordon(mark.node)
    else:
        return _settle_ours(deps, mark, node, leaving, now, opened=opened)
    return None, []


def _names_ours(deps: Deps, node: Node, mark: NodeMark | None, now: datetime) -> bool:
    """True where the note on a node names the release that holds it, or one of late that was called off: anybody who
    may patch nodes may write one."""
    if mark is not None and mark.owners:
        release = mark.owners.get("release")
        return release is None or release.by == node.opened_by
    known = deps.known_as(node.name)
    begun = (record for record, _ in ledger.open_records(deps.state, deps.name) if record.id == node.opened_by)
    record = ledger.filed_decision(deps.state, deps.name, node.opened_by) or next(begun, None)
    return (
        record is not None
        and now < record.at + REST
        and any(step.call == "release" and step.target == known for step in record.steps)
    )


def _settle_ours(
    deps: Deps, mark: NodeMark, node: Node, leaving: Container[str], now: datetime, *, opened: bool
) -> tuple[datetime | None, list[Finding]]:
    """Settle the mark of a node that was not given back: until when it rests, and what people should know. ``opened``:
    a person took it off."""
    told: list[Finding] = []
    release = mark.owners.get("release")
    if opened:
        mark, told = _opened_by_hand(deps, mark, node, now)
    elif not node.marked and _settled(mark, now):
        _not_closed(deps, mark)
    elif release is not None and node.name not in leaving and _over(release, now):
        lift(deps, node.name, "release", by=release.by)
    until = _rests_until(mark, now)
    if until is None and "person" in mark.owners:
        lift(deps, node.name, "person")
    return until, told


def _rests_until(mark: NodeMark, now: datetime) -> datetime | None:
    """Until when a node stays that a person opened; None where it need not any more."""
    person = mark.owners.get("person")
    return person.until if person is not None and person.until is not None and person.until > now else None


def _late(deps: Deps, marks: Iterable[NodeMark], now: datetime) -> set[str]:
    """Nodes held by an interruption that is over: such a one lifts its mark before its record goes."""
    claims = ((mark.node, mark.owners.get("rescue")) for mark in marks)
    held = {node for node, claim in claims if claim is not None and now - claim.since >= SETTLED}
    if not held:
        return held
    return held - {entry.value.node for entry in RESCUE.scan(deps.state, f"{deps.name}/")}


def _opened_by_hand(deps: Deps, mark: NodeMark, node: Node, now: datetime) -> tuple[NodeMark, list[Finding]]:
    """A release is off for an hour; what else keeps the node closed closes it again."""
    told: list[Finding] = []
    if "release" in mark.owners or not mark.owners:
        owners: dict[MarkOwner, Ownership] = {name: claim for name, claim in mark.owners.items() if name != "release"}
        owners["person"] = Ownership(why="opened while it was being given back", since=now, until=now + REST)
        mark = NodeMark(node=mark.node, owners=owners)
        _put(deps, mark, _read(deps, mark.node)[1])
        told.append(_told(node.name))
    if mark.is_closed:
        deps.cluster.cordon(mark.node)
    else:
        deps.cluster.forget_opened(mark.node)
    return mark, told


def _not_closed(deps: Deps, mark: NodeMark) -> None:
    """A worker died before it closed a node: a release is off, and so is one that was called off meanwhile; what else
    keeps the node closed closes it."""
    if (release := mark.owners.get("release")) is not None:
        lift(deps, mark.node, "release", by=release.by)
    if any(owner not in ("release", "person") for owner in mark.owners):
        deps.cluster.cordon(mark.node)


def _told(node: str) -> Finding:
    return Finding(
        subject=f"node {node}",
        code="opened-by-hand",
        message="it is kept for an hour, then judged like any idle node",
    )


def _settled(mark: NodeMark, now: datetime) -> bool:
    return all(now - claim.since >= SETTLED for claim in mark.owners.values())


def _over(claim: Ownership, now: datetime) -> bool:
    return claim.until is not None and claim.until <= now


def every(deps: Deps) -> Iterator[NodeMark]:
    """All marks of the cluster."""
    return (entry.value for entry in NODE_MARK.scan(deps.state, f"{deps.name}/"))


def _read(deps: Deps, node: str) -> tuple[NodeMark, int]:
    found = NODE_MARK.get(deps.state, _name(deps, node))
    return (found.value, found.version) if found else (NodeMark(node=node, owners={}), ABSENT)


def _put(deps: Deps, mark: NodeMark, version: int) -> bool:
    """True where nobody was faster."""
    try:
        if mark.owners:
            NODE_MARK.put(deps.state, _name(deps, mark.node), mark, if_version=version)
        elif version != ABSENT:
            NODE_MARK.delete(deps.state, _name(deps, mark.node), if_version=version)
    except Conflict:
        return False
    return True


def _name(deps: Deps, node: str) -> str:
    return f"{deps.name}/{node}"
