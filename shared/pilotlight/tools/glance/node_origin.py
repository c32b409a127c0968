"""The decision that bought a node, and for which pods: of a node that boots, works or has just gone."""

from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec

from pilotlight.decide.money.node_cost import Bought, Lived
from pilotlight.facts.decisions import Buy, Record
from pilotlight.flow.billing import meter_nodes
from pilotlight.flow.billing.node_costs import buyers
from pilotlight.flow.deps import Deps
from pilotlight.flow.observe.snapshot import Snapshot


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """A node and its purchase. ``decision`` is empty where none of those that are kept bought it."""

    node: str
    instance: str
    decision: str = ""
    bought_at: datetime | None = None
    pods: tuple[str, ...] = ()  # Those that the purchase was for.
    why: str = ""  # The purchase's reason.


def origins(
    deps: Deps, subject: str, looked: Snapshot | None, records: Mapping[str, Record], now: datetime
) -> Iterator[Origin]:
    """Of each instance that a name means; none of a name that is no node's."""
    lit, names = _lit(looked) if looked is not None else ({}, {})
    for day in (now.date() - meter_nodes.DAY, now.date()):
        names |= {instance: node.name for instance, node in meter_nodes.nodes(deps.state, deps.name, day).items()}
    there = {*names, *(instance for instance, _ in lit)}
    meant = {one for one in there if one and subject in (one, names.get(one))}
    if not meant:
        return
    bought = buyers(deps, lit, now.date())
    for instance in sorted(meant):
        calls = [call for (each, _), call in sorted(bought.items()) if each == instance]
        yield _origin(names.get(instance) or instance, instance, calls[-1] if calls else None, records)


def _lit(looked: Snapshot) -> tuple[dict[Lived, str], dict[str, str]]:
    """Pools of the lives of a look's instances, and the names of those that are nodes."""
    nodes = looked.view.nodes
    names = {node.instance: node.name for node in nodes}
    lit = {(node.instance, node.created_at): node.pool for node in nodes}
    for pool in looked.pools:
        lit |= {(one.instance, one.requested_at): pool.name for one in pool.booting if one.instance not in names}
    return lit, names


def _origin(node: str, instance: str, call: Bought | None, records: Mapping[str, Record]) -> Origin:
    record = records.get(call.decision) if call else None
    if call is None or record is None:
        return Origin(node=node, instance=instance)
    made = record.plan.calls[call.step]
    known = {uid: pod for group in record.plan.pods for uid, pod in zip(group.uids, group.pods, strict=False)}
    pods = tuple(known[uid] for uid in made.demands if uid in known) if isinstance(made, Buy) else ()
    return Origin(node=node, instance=instance, decision=record.id, bought_at=record.at, pods=pods, why=made.why)
