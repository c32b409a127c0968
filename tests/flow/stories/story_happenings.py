"""What may happen on a random story's stage: each takes the story, and does one thing before its next look."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import msgspec

from pilotlight.decide.money import budget_balance as moves
from pilotlight.errors import (
    BadRequest,
    Busy,
    Conflict,
    Denied,
    LastNode,
    NoCapacity,
    PilotlightError,
    QuotaExceeded,
    Retry,
    Throttled,
    Unavailable,
)
from pilotlight.facts.limits.isolated_objects import SetApart
from pilotlight.facts.messages import CapacityFailed, InterruptionNotice
from pilotlight.facts.workload import Due, GpuRequest, PodDemand, Toleration, shape
from pilotlight.flow.interruption.drain_all import go_on
from pilotlight.flow.interruption.interrupt import interrupt
from pilotlight.flow.records import brake_records, flight_log, ledger
from pilotlight.flow.refusal import refusal
from pilotlight.state_schema.billing_records import HOLD
from pilotlight.state_schema.instance_records import RESCUE
from pilotlight.world.residents import Resident

CLASSES: tuple[Any, ...] = ("batch", "training", "serving")
KINDS: tuple[Any, ...] = (
    "spot-interruption",
    "spot-interruption",
    "rebalance",
    "capacity-reservation",
    "scheduled-change",
    "lifecycle",
    "state-change",
    "preempted",
)
CALLS = ("describe", "instance", "grow", "release", "observe", "cordon", "uncordon", "bound", "drain", "evict", "tell")
SAID: tuple[Callable[[str], PilotlightError], ...] = (
    Unavailable, Throttled, Busy, Denied, BadRequest, NoCapacity, QuotaExceeded, LastNode,
)  # fmt: skip
EVERYTHING = (Toleration(operator="Exists"),)

Rules = dict[str, Any]


def _job(on: Any, gang: int = 0) -> None:
    on._count += 1
    traits: Rules = {"team": on.draw.choice(("", "red", "blue")), "workload_class": on.draw.choice(CLASSES)}
    traits |= {"max_run_s": on.draw.choice((0.0, 0.0, 600.0, 5400.0)), "priority": on.draw.choice((0, 0, 10))}
    traits |= {"tolerations": EVERYTHING} if on.draw.random() < 0.1 else {}
    run_s = on.draw.choice((120.0, 900.0, 2400.0, 9000.0))
    if gang:
        traits |= {"workload_class": "training"}
        pods = on.submit_gang(f"g{on._count}", gang, run_s, gpus=on.draw.choice((1, 1, 8)), **traits)
        on.look("event", lambda: on.event(pods[0]))
        return
    if on.draw.random() < 0.15:
        by = on.world.clock.now() + timedelta(seconds=run_s * on.draw.choice((1.2, 1.6, 3)))
        traits["due"] = Due(job=f"j{on._count}", by=by, work_s=run_s)
        traits["workload_class"] = "training"
    gpus = on.draw.choice((1, 1, 1, 2, 8))
    made = shape(gpu=GpuRequest(count=gpus, milli=on.draw.choice((1000, 500)) if gpus == 1 else 1000), **traits)
    pod = PodDemand(
        uid=f"u{on._count}",
        namespace="ml",
        name=f"j{on._count}",
        shape=made,
        created_at=on.world.clock.now(),
        grace_s=on.draw.choice((30, 30, 300, 1200)),
        checkpoint_takes_s=on.draw.choice((0, 60, 200)),
    )
    on.world.submit(pod, run_s, ttl_s=on.draw.choice((None, 0)))
    on.known.append(pod)
    if on.draw.random() < 0.7:
        on.look("event", lambda: on.event(pod))


def _gang(on: Any) -> None:
    _job(on, on.draw.randint(2, 3))


def _vanish(on: Any) -> None:
    jobs = [*on.world.running.values(), *on.world.pending.values()]
    if jobs:
        on.world.delete(on.draw.choice(jobs))


def _resident(on: Any) -> None:
    if on.world.nodes:
        who = Resident(
            f"web{on._count}",
            on.draw.choice(("", "local storage")),
            guarded=on.draw.random() < 0.4,
            takes_s=on.draw.choice((0.0, 40.0, None)),
            returns=on.draw.random() < 0.2,
        )
        on.world.residents.put(_node(on), who)


def _node(on: Any) -> str:
    return str(on.draw.choice(sorted(on.world.nodes)))


def _notice(on: Any) -> None:
    """A word about a node: true or not, of now, late, or of an end that is moved."""
    if not on.world.nodes:
        return
    node, kind, now = _node(on), on.draw.choice(KINDS), on.world.clock.now()
    in_s = on.draw.choice((30.0, 120.0, 120.0, 900.0, 4000.0))
    deadline = now + timedelta(seconds=in_s) if kind not in ("rebalance", "state-change", "preempted") else None
    if on.draw.random() < 0.6:
        if kind == "rebalance":
            on.world.recommend(node)
        else:
            on.world.interrupt(node, in_s if deadline else 0)
    said = InterruptionNotice(
        cluster="c",
        instance=node,
        kind=kind,
        cloud=on.draw.choice(("world", "world", "aws", "node")),
        action=on.draw.choice(("terminate", "terminate", "terminate", "reboot")),
        at=on.draw.choice((now, now, now - timedelta(minutes=9), now + timedelta(minutes=20), None)),
        deadline=on.draw.choice((deadline, deadline, None)),
    )
    on.look(f"notice {kind} {node}", lambda: interrupt(on.deps, said, dry_run=on.draw.random() < 0.1))
    if on.draw.random() < 0.3:
        on.wait(on.draw.choice((1, 40)))
        on.look("again", lambda: interrupt(on.deps, said))


def _taken(on: Any) -> None:
    if on.world.nodes:
        on.world.interrupt(_node(on), 0)


def _refused(on: Any) -> None:
    call, said = on.draw.choice(CALLS), on.draw.choice(SAID)
    for _ in range(on.draw.choice((1, 1, 3))):
        on.fail(call, said("it says no"))


def _short(on: Any) -> None:
    for _ in range(on.draw.choice((1, 2, 4))):
        on.fail("grow", on.draw.choice((NoCapacity, NoCapacity, QuotaExceeded))("none is left"))


def _lost(on: Any) -> None:
    on.cloud.lost += [on.draw.random() < 0.5 for _ in range(on.draw.randint(1, 3))]


def _dies(on: Any) -> None:
    on.fate.plan(on.draw.randint(1, 60), on.fate.die)


def _stalls(on: Any) -> None:
    """The next worker stands still, while another looks in its place."""
    for_s, at = on.draw.choice((5.0, 30.0, 70.0, 300.0)), on.draw.randint(1, 60)

    def stand() -> None:
        on.wait(for_s)
        for _ in range(2):
            with suppress(Retry, Denied):
                on.tick()

    on.fate.plan(at, stand)


def _conflict(on: Any) -> None:
    def lose() -> None:
        raise on.draw.choice((Conflict, Unavailable))("somebody was faster")

    on.fate.plan(on.draw.randint(1, 60), lose)


def _person(on: Any) -> None:
    """Somebody closes or opens a node, pauses or resumes, or approves what waits for it."""
    act = on.draw.choice(("shut", "open", "open", "pause", "resume", "resume", "approve", "approve", "resize"))
    now = on.world.clock.now()
    if act in ("shut", "open") and on.world.nodes:
        joined = [name for name in sorted(on.world.nodes) if on.world.nodes[name].joined]
        for node in joined[: on.draw.randint(1, 3)]:
            if act == "shut":
                on.world.cordon_by_hand(node)
            else:
                on.world.open_by_hand(node)
    elif act == "pause":
        brake_records.pause(on.store, "c", on.draw.choice(("*", "one", "spot")), "a person said so", now)
    elif act == "resume":
        for pool in ("*", "one", "spot"):
            brake_records.resume(on.store, "c", pool)
    elif act == "approve":
        for record in ledger.filed_records(on.store, "c")[-3:]:
            asked = Counter[str]()
            for held in record.plan.held:
                if held.code == "approval":
                    asked[held.action.pool] += held.count
            if asked:
                with suppress(PilotlightError):
                    brake_records.approve(on.store, "c", record.id, dict(asked), now)
    elif act == "resize":
        with suppress(PilotlightError):
            on.world.launch(on.draw.choice(sorted(on.deps.policy.pools)))


def _edit(on: Any) -> None:
    """The policy or its prices are edited."""
    policy = on.deps.policy
    what = on.draw.choice(("limit", "limit", "period", "gone", "mode", "price", "price", "caps"))
    budgets = list(policy.budgets)
    if what == "price":
        times = on.draw.choice((Decimal("0.5"), Decimal(2)))
        on.deps = replace(
            on.deps,
            offerings=tuple(msgspec.structs.replace(o, usd_per_hour=o.usd_per_hour * times) for o in on.deps.offerings),
        )
    elif what == "mode":
        name = on.draw.choice(sorted(policy.pools))
        mode = on.draw.choice(("advise", "scale-up", "act", "act"))
        pools = policy.pools | {name: msgspec.structs.replace(policy.pools[name], mode=mode)}
        policy = msgspec.structs.replace(policy, pools=pools)
    elif what == "caps":
        policy = msgspec.structs.replace(
            policy,
            caps=msgspec.structs.replace(policy.caps, nodes=on.draw.choice((1, 5, None)), gpus=None, usd_per_hour=None),
        )
    elif budgets:
        n = on.draw.randrange(len(budgets))
        if what == "limit":
            names = ("usd", "gpu_hours")
            own = {m: getattr(budgets[n], m) * on.draw.choice((Decimal("0.3"), Decimal(2)))
                   for m in names if getattr(budgets[n], m) is not None}  # fmt: skip
            budgets[n] = msgspec.structs.replace(budgets[n], **own)
        elif what == "period":
            period: Any = on.draw.choice(("day", "week", "month"))
            if budgets[n].period != "hour":
                budgets[n] = msgspec.structs.replace(budgets[n], period=period)
        else:
            budgets.pop(n)
        policy = msgspec.structs.replace(policy, budgets=tuple(budgets))
    on.deps = replace(on.deps, policy=policy)


def _record_lost(on: Any) -> None:
    """A record is deleted by a hand."""
    holds = {f"hold/{entry.name}": entry for entry in HOLD.scan(on.store)}
    keys = [*holds, *(key for key in on.store._keys if key.startswith(("mark/", "inflight/", "rescue/")))]
    key = on.draw.choice(sorted(keys)) if keys else ""
    if key in holds:
        HOLD.put(on.store, holds[key].name, None, over=holds[key].was)
    elif key:
        on.store.delete(key)


def _restored(on: Any) -> None:
    """The store is restored from a backup, and one is made."""
    on.backups.append(on.store.backup())
    if on.draw.random() < 0.5:
        on.store.restore(on.backups[on.draw.randrange(len(on.backups))])


def _apart(on: Any) -> None:
    """Some hold or rescue cannot be judged for a while; or all can again."""
    holds = [entry.value.id for entry in HOLD.scan(on.store, "c/")]
    rescues = [entry.value.instance for entry in RESCUE.scan(on.store, "c/")]
    found: list[SetApart] = []
    for kind, names in (("hold", [*holds, *(f"seen.{n}" for n in on.world.nodes)]), ("rescue", rescues)):
        if names and on.draw.random() < 0.7:
            name = on.draw.choice(names)
            found.append(SetApart(kind=kind, name=name, called=name, error="E", where="w"))  # type: ignore[arg-type]
    on.deps = replace(on.deps, apart=tuple(found))


def _small_records(on: Any) -> None:
    """Records take few entries from now on, or many again."""
    moves.MOST_HELD = on.draw.choice((1, 2, 1500))
    flight_log.MOST_DEMANDS = on.draw.choice((1, 5000))


def _dry(on: Any) -> None:
    on.look("dry run", lambda: on.tick(dry_run=True))


def _told_late(on: Any) -> None:
    pool = on.draw.choice(sorted(on.deps.policy.pools))
    reason = on.draw.choice(("no-capacity", "quota", "other"))
    said = CapacityFailed(
        cluster="c", group=pool, reason=reason, message="not launched", identity=f"i{on._count}",
        at=on.world.clock.now(),
    )  # fmt: skip
    on.look("refusal", lambda: refusal(on.deps, said))


def _fast(on: Any) -> None:
    """Events and rescues come at odd seconds."""
    for _ in range(3):
        on.wait(on.draw.choice((1, 7, 13)))
        on.look("rescue", lambda: go_on(on.deps))
        if on.known:
            pod = on.draw.choice(on.known)
            on.look("event", lambda pod=pod: on.event(pod))


HAPPENINGS: dict[str, Callable[[Any], None]] = {
    "job": _job,
    "job again": _job,
    "one job more": _job,
    "gang": _gang,
    "vanish": _vanish,
    "resident": _resident,
    "notice": _notice,
    "taken": _taken,
    "refused": _refused,
    "short": _short,
    "lost answers": _lost,
    "dies": _dies,
    "stalls": _stalls,
    "conflict": _conflict,
    "person": _person,
    "edit": _edit,
    "record lost": _record_lost,
    "restored": _restored,
    "apart": _apart,
    "small records": _small_records,
    "dry run": _dry,
    "told late": _told_late,
    "fast": _fast,
}
"""By name."""
