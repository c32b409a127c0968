"""Steps of taking a pool over and giving it back: what is set, in which order, and what is left so that no job ends.

Nothing here lowers a size below what runs, lets a group end nodes to spread them, or ends what waits for a hook. What
somebody set otherwise since is theirs. ADR 24.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec.structs import replace

from pilotlight.facts.labels import HANDED_BACK
from pilotlight.facts.limits.pool_handover import Setting, Taken
from pilotlight.facts.policy import PoolPolicy
from pilotlight.tools.install.handover import KEPT, Change, GroupState, Kept
from pilotlight.units import Seconds, count_of

AUTOSCALER = "k8s.io/cluster-autoscaler/"
"""So begin the tags by which cluster-autoscaler finds its groups, where no further "/" comes."""
MARK = f"tag {HANDED_BACK}"
SCALER = "autoscaling"
"""The bounds by which a cloud's own autoscaler sizes a group, as its cloud's JSON; empty where none does."""

WARM_BY_EKS = (
    "EKS keeps the warm pool of a node group, and changes it in minutes; give the pool a plain Auto Scaling group, or "
    "set its spares.stopped to 0"
)
BY_ITSELF = {
    "capacity-rebalance": "false",
    "max-lifetime": "0",
    "repairs": "false",
    "alarms": "false",
    "schedules": "false",
}
"""What a group of ours does not do by itself, where it could: replace spot nodes that EC2 warns of, end old nodes,
replace sick ones, follow scaling policies, follow a calendar."""
_FORTH = ("protects-new", "rebalances", *BY_ITSELF, "min", "max", "warm", "hook")
"""The order of taking over; then the autoscaler's tags go, and our mark last."""
_BACK = ("warm", "max", "min", "protects-new", "rebalances", *BY_ITSELF, "hook")
"""The order of giving back, after our mark is on; the autoscaler's tags come last. No min is ever over its max, and a
node that comes late is protected from a lower max."""


def take(
    pool: str,
    rules: PoolPolicy,
    state: GroupState,
    pools: str,
    earlier: Taken | None,
    now: datetime,
    stands: bool = False,
) -> Taken:
    """The record to write down before anything is changed. What an earlier taking over found is not forgotten.

    ``stands``: its nodes may stand by.
    """
    before = {s.name: s for s in earlier.settings} if earlier is not None and earlier.group == state.group else {}
    made: list[Setting] = []
    for name, wanted in _wanted(rules, state, before, stands):
        was = before.get(name)
        is_ = state.settings.get(name, "")
        if was is not None and is_ in (was.now, was.was):
            made.append(Setting(name=name, was=was.was, now=wanted))
        elif is_ != wanted or name == "hook":
            made.append(Setting(name=name, was="" if name == "hook" else is_, now=wanted))
    return Taken(
        pool=pool, group=state.group, pools=pools, on_silence=rules.on_silence, at=now, settings=tuple(made)
    )  # fmt: skip


def _wanted(
    rules: PoolPolicy, state: GroupState, before: dict[str, Setting], stands: bool
) -> Iterator[tuple[str, str]]:
    """Settings that a pool of ours gets. No max is lower than what runs."""
    for name, size in (("min", "0"), ("max", str(max(rules.max, state.nodes))), ("protects-new", "true")):
        if name in state.settings:
            yield name, size
    if SCALER in state.settings:
        yield SCALER, ""
    if state.zones > 1:
        yield "rebalances", "false"
    for name, still in BY_ITSELF.items():
        if name in state.settings:
            yield name, still
    if (stands and not state.managed) or "warm" in before:
        yield "warm", KEPT
    hook = state.settings.get("hook", "") or (before["hook"].now if "hook" in before else "")
    if hook:
        yield "hook", hook
    for name in sorted({*state.settings, *before}):
        if claims(name):
            yield name, ""


def claims(name: str) -> bool:
    """True where a setting is a tag that gives its group to cluster-autoscaler."""
    kind, _, key = name.partition(" ")
    return kind.endswith("tag") and key.startswith(AUTOSCALER) and "/" not in key.removeprefix(AUTOSCALER)


def forth(taken: Taken, state: GroupState) -> Sequence[Change]:
    """The changes that make a pool ours, in order; none where it is."""
    by_name = {s.name: s for s in taken.settings}
    tags = [name for name in by_name if name not in _FORTH]
    made = [
        Change(name=name, to=by_name[name].now)
        for name in (*_FORTH, *tags)
        if name in by_name and state.settings.get(name, "") != by_name[name].now
    ]
    return [*made, *([Change(name=MARK, to="")] if state.settings.get(MARK) else [])]


def back(taken: Taken, state: GroupState, now: datetime) -> tuple[Sequence[Change], Sequence[Kept]]:
    """The changes that give a pool back, in order, and what is kept for now, or for good, with the reason."""
    by_name = {s.name: s for s in taken.settings}
    tags = [name for name in by_name if name not in _BACK]
    changes = [] if state.settings.get(MARK) or not state.marks else [Change(name=MARK, to=f"{now:%Y-%m-%dT%H:%M:%SZ}")]
    kept: list[Kept] = []
    for name in (*(n for n in _BACK if n in by_name), *tags):
        setting, is_ = by_name[name], state.settings.get(name, "")
        if is_ == setting.was:
            continue
        if is_ != setting.now:
            why = f"somebody set it to {is_ or 'nothing'} since; it was {setting.was or 'not there'}"
            kept.append(Kept(name=name, why=why, passes=False))
        elif why := _stays(setting, state):
            kept.append(Kept(name=name, why=why, passes=True))
        else:
            changes.append(Change(name=name, to=setting.was))
    return changes, kept


def _stays(setting: Setting, state: GroupState) -> str:
    """Why giving a setting back would end a node now; empty where it would not."""
    if setting.name == "max" and int(setting.was) < state.nodes:
        return f"it has {count_of(state.nodes, 'node')}, and a max of {setting.was} would end some"
    if setting.name == "rebalances" and setting.was == "true" and state.nodes:
        return f"it has {count_of(state.nodes, 'node')}, and spreading them over zones would end some"
    if setting.name == "max-lifetime" and setting.was != "0" and state.nodes:
        return f"it has {count_of(state.nodes, 'node')}, and a longest life of {setting.was} s would end some"
    if setting.name == "hook" and state.waiting:
        waits = "waits" if state.waiting == 1 else "wait"
        return f"{count_of(state.waiting, 'node')} {waits} for its answer, and would end at once"
    return ""


def goes_on(taken: Taken, state: GroupState) -> str:
    """Why a pool that was given back is still bought for: no mark and no other scaler says that it is another's."""
    if state.marks or any(one.name == SCALER and one.was for one in taken.settings):
        return ""
    pool = taken.pool
    return f"no autoscaler kept it before: set pools.{pool}.mode to advise, or run pilotlight pause --pool {pool}"


def silent_for(taken: Taken, renewed: datetime | None, now: datetime) -> Seconds:
    """Seconds since Pilotlight was last heard of: since its Lease was renewed, or since the pool was taken over."""
    return (now - max(renewed or taken.at, taken.at)).total_seconds()


def falls_back(taken: Taken, renewed: datetime | None, now: datetime, after_s: Seconds) -> bool:
    """True where silence gives a pool back. What was given back whole is its owner's, however long the silence lasts.

    A renewal dated as far ahead, by a clock that was wrong, is no sign of life.
    """
    asked = taken.on_silence == "hand-back" and taken.handed_back is None
    heard = None if renewed is not None and (renewed - now).total_seconds() >= after_s else renewed
    return asked and silent_for(taken, heard, now) >= after_s


def given_back(taken: Taken, now: datetime) -> Taken:
    """The record of a pool that was given back."""
    return replace(taken, handed_back=now)
