"""The life of holds: which node each belongs to, how it moves on while the node is lit, and what it leaves behind."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

import msgspec

from pilotlight.decide.money.budget import amount, held, limit, longest_run, refusal, terms, used
from pilotlight.facts.budget import Account, Hold, Meter
from pilotlight.facts.capacity import BoundPod, Node, Offering, PoolState
from pilotlight.facts.policy import DEFAULT_CLASSES, Policy
from pilotlight.facts.workload import WorkloadClass
from pilotlight.units import Seconds

TICK = timedelta(seconds=60)
"""A reconcile looks this often: a pod can bind so long before anyone sees it."""

SKEW = timedelta(minutes=5)
"""The cloud's clock may be so far behind ours. It can be long: every older instance has a hold of its own."""

NAMED = 5
"""A report names so many nodes."""

YOUNG = timedelta(seconds=60)
"""One lease: a purchase younger than that may still be under way in other hands."""


class Lit(NamedTuple):
    """An instance that is paid for; ``node`` is None until it registers."""

    instance: str
    pool: str
    since: datetime
    node: Node | None

    @property
    def pods(self) -> tuple[BoundPod, ...]:
        """What keeps it lit."""
        return self.node.gpu_pods if self.node is not None else ()


class Matching(NamedTuple):
    """Holds with their instances (None: on its way), instances nobody holds for, and holds whose node is gone."""

    live: tuple[tuple[Hold, Lit | None], ...]
    strange: tuple[Lit, ...]
    over: tuple[Hold, ...]


def lit(nodes: Iterable[Node], pools: Iterable[PoolState]) -> tuple[Lit, ...]:
    """Every instance that is paid for, as far as the cluster and the cloud name it."""
    found = {n.instance or n.name: Lit(n.instance or n.name, n.pool, n.created_at, n) for n in nodes}
    for pool in pools:
        for booting in pool.booting:
            found.setdefault(booting.instance, Lit(booting.instance, pool.name, booting.requested_at, None))
    return tuple(found.values())


def match(holds: Sequence[Hold], lit_: Sequence[Lit], pools: Sequence[PoolState], now: datetime) -> Matching:
    """Which hold is whose. A hold that is bought and has no instance yet takes the oldest of its pool that is free."""
    by_instance = {one.instance: one for one in lit_}
    going = [h for h in holds if h.ended_at is None]
    live: list[tuple[Hold, Lit | None]] = [(h, by_instance[h.instance]) for h in going if h.instance in by_instance]
    taken = {h.instance for h, _ in live}
    waiting = sorted((h for h in going if not h.instance), key=lambda h: (h.since, h.id))
    strange: list[Lit] = []
    for one in sorted(lit_, key=lambda o: (o.since, o.instance)):
        if one.instance in taken:
            continue
        hold = next((h for h in waiting if h.terms.pool == one.pool and h.since <= one.since + SKEW), None)
        if hold is None:
            strange.append(one)
        else:
            waiting.remove(hold)
            since = min(hold.since, one.since)
            live.append((msgspec.structs.replace(hold, instance=one.instance, since=since), one))
    missing = [h for h in going if h.instance and h.instance not in by_instance]
    coming, gone = _coming([*waiting, *missing], lit_, pools, now)
    live += [(hold, None) for hold in coming]
    return Matching(tuple(live), tuple(strange), (*gone, *(h for h in holds if h.ended_at is not None)))


def _coming(
    holds: Iterable[Hold], lit_: Iterable[Lit], pools: Iterable[PoolState], now: datetime
) -> tuple[list[Hold], list[Hold]]:
    """Holds whose instance the cloud still owes (it counts more than it names) or that are young; and the others."""
    owed: dict[str, int] = defaultdict(int, {p.name: p.desired for p in pools})
    for one in lit_:
        owed[one.pool] -= 1
    coming: list[Hold] = []
    gone: list[Hold] = []
    for hold in holds:
        owed[hold.terms.pool] -= 1
        young = not hold.instance and now < hold.since + YOUNG
        (coming if young or owed[hold.terms.pool] >= 0 else gone).append(hold)
    return coming, gone


def adopted(one: Lit, offering: Offering, policy: Policy, now: datetime) -> Hold:
    """A hold for a node nobody held for: it was lit before there were budgets, or by other hands."""
    pod = next(iter(one.pods), None)
    kind = _class(pod.workload_class) if pod else None
    own = terms(offering, policy, workload_class=kind, team=pod.team if pod else "")
    return Hold(
        id=f"seen.{one.instance}", decision="", terms=own, since=one.since, binds_until=now, instance=one.instance
    )


def _class(name: str) -> WorkloadClass | None:
    return next((known for known in DEFAULT_CLASSES if known == name), None)


def committed(hold: Hold, pods: Iterable[BoundPod], policy: Policy) -> Hold:
    """The hold with the longest run of what has bound to its node since."""
    longest: tuple[Seconds, str] = (hold.terms.run_s, hold.terms.run_source)
    for pod in pods:
        longest = max(longest, longest_run(pod.max_run_s, _class(pod.workload_class), policy), key=lambda run: run[0])
    if longest[0] == hold.terms.run_s:
        return hold
    own = msgspec.structs.replace(hold.terms, run_s=longest[0], run_source=longest[1])
    return msgspec.structs.replace(hold, terms=own)


def moved_on(hold: Hold, now: datetime) -> Hold:
    """The hold that covers what binds up to the next look, and one idle timeout more, where it does not yet."""
    if hold.binds_until >= now + TICK:
        return hold
    return msgspec.structs.replace(hold, binds_until=now + TICK + timedelta(seconds=hold.terms.idle_s))


class Claim(NamedTuple):
    """A meter's account after a claim; why it was not granted whole; how much of what runs already is not covered."""

    account: Account
    refused: str = ""
    short: Decimal = Decimal(0)


def claim_new(meter: Meter, account: Account, holds: Sequence[Hold]) -> Claim:
    """Hold for a purchase: all of it, or nothing. Claiming again what is held changes nothing."""
    wanted = {h.id: held(meter, h) for h in holds}
    after = msgspec.structs.replace(account, held={**account.held, **wanted})
    if after.total > meter.limit and after.total > account.total:
        return Claim(account, refusal(meter, after.total, holds[0].terms))
    return Claim(after)


def claim_more(meter: Meter, account: Account, has: Hold, wants: Hold, now: datetime) -> Claim:
    """Move a lit node's hold on from what it is committed to (``has``) to what it ``wants``.

    Where that does not fit it gets what is left of its commitment, and in any case what it has cost by now.
    """
    own = account.held.get(has.id, Decimal(0))
    others = account.total - own
    spent, commitment = used(meter, has, now), held(meter, has)
    wanted = max(spent, held(meter, wants))
    refused, short = "", Decimal(0)
    if wanted <= own or others + wanted <= meter.limit:
        grant = max(own, wanted)
    else:
        grant = max(own, spent, min(commitment, meter.limit - others))
        refused, short = refusal(meter, others + wanted, wants.terms), max(Decimal(0), commitment - grant)
    if grant == own and has.id in account.held:
        return Claim(account, refused, short)
    return Claim(msgspec.structs.replace(account, held={**account.held, has.id: grant}), refused, short)


def put_out(hold: Hold, now: datetime) -> Hold:
    """What a node still takes that nothing runs on and nothing can bind to: its time until it is put out."""
    nothing = msgspec.structs.replace(hold.terms, run_s=0.0, typical_s=0.0)
    until = now + TICK + timedelta(seconds=hold.terms.idle_s)
    return msgspec.structs.replace(hold, terms=nothing, binds_until=until)


def let_go(meter: Meter, account: Account, hold: Hold, now: datetime) -> Claim:
    """Such a node's hold without what is free for others."""
    needs = max(used(meter, hold, now), held(meter, put_out(hold, now)))
    if account.held.get(hold.id, Decimal(0)) <= needs:
        return Claim(account)
    return Claim(msgspec.structs.replace(account, held={**account.held, hold.id: needs}))


def spent_up(meter: Meter, account: Account, hold: Hold, now: datetime) -> bool:
    """Whether a node that stays until the look after next costs more than is held for it."""
    return meter.end is not None and account.held.get(hold.id, Decimal(0)) < used(meter, hold, now + 2 * TICK)


def report(meter: Meter, account: Account, refused: Sequence[tuple[str, Claim]]) -> str:
    """What people should know of a meter: nodes (by name) that cannot be held for, and how far it may be passed.

    Only what bound between two looks, ran over from the last period or past its longest run can pass a hard limit.
    """
    beyond = sum((claim.short for _, claim in refused), max(Decimal(0), account.total - meter.limit))
    said = [f"{amount(meter, account.total)} of {limit(meter)} are held or spent"]
    if refused:
        names = ", ".join(name for name, _ in refused[:NAMED]) + (", ..." if len(refused) > NAMED else "")
        said = [refused[0][1].refused, f"nothing new binds to {names} until there is room"]
    if beyond > 0:
        said.append(f"what runs already may go {amount(meter, beyond)} beyond")
    return "; ".join(said) if refused or beyond > 0 else ""


def charged(meter: Meter, account: Account, hold: Hold, ended_at: datetime) -> Account:
    """What is held becomes what the node really cost. Doing it twice is doing it once."""
    if meter.end is None:
        return account
    cost = used(meter, hold, ended_at)
    if not cost and hold.id not in account.held:
        return account
    return msgspec.structs.replace(account, held={**account.held, hold.id: cost})


def settled(meter: Meter, account: Account, hold: Hold, ended_at: datetime) -> Account:
    """What a node really cost is settled; the rest of its hold is free again. A hold that is not there changes nothing.

    Worked out anew: a worker that has lost the lease, and does not know it yet, may have held for a longer run since.
    """
    if hold.id not in account.held:
        return account
    cost = used(meter, hold, ended_at) if meter.end is not None else Decimal(0)
    return msgspec.structs.replace(released(account, hold.id), settled=account.settled + cost)


def released(account: Account, hold: str) -> Account:
    """Nothing was bought: what was held under an id is free again."""
    if hold not in account.held:
        return account
    return msgspec.structs.replace(account, held={k: v for k, v in account.held.items() if k != hold})


def frozen_nodes(nodes: Sequence[Node], frozen: Mapping[str, bool]) -> tuple[Node, ...]:
    """The nodes as they will be once those that are frozen are cordoned, and those thawed are not. By instance."""
    return tuple(
        n if (cold := frozen.get(n.instance or n.name)) is None else msgspec.structs.replace(n, schedulable=not cold)
        for n in nodes
    )
