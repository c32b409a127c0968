"""Taking pools over and giving them back: write down, then change, a setting at a time; each said as it was done.

What fails half-way is gone on with by running it again: every setting may be written twice.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from pilotlight.errors import BadInput, Busy
from pilotlight.facts.limits.pool_handover import Taken
from pilotlight.facts.policy import PoolPolicy
from pilotlight.tools.install import handover_steps as rules
from pilotlight.tools.install.handover import Change, GroupState, Handover
from pilotlight.units import count_of

if TYPE_CHECKING:
    from pilotlight.adapters.cluster.kubernetes.transport import Api
    from pilotlight.ports.state import State


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one setting of a pool, or of the pool itself where ``setting`` is empty."""

    pool: str
    verb: Literal["set", "would set", "kept", "nothing to do"]
    setting: str = ""
    was: str = ""
    now: str = ""
    why: str = ""
    passes: bool = False

    @property
    def line(self) -> str:
        """As people read it: "a10g: max 4 -> 10"."""
        if not self.setting:
            return f"{self.pool}: {self.why}"
        if self.verb == "kept":
            return f"{self.pool}: {self.setting} is left at {self.now or 'nothing'}: {self.why}"
        return f"{self.pool}: {self.verb} {self.setting} {self.was or '(none)'} -> {self.now or '(none)'}"


class Book(NamedTuple):
    """Where what is changed is written down: the cluster, and the state where there is one."""

    api: "Api"
    cluster: str = ""
    state: "State | None" = None

    def read(self) -> tuple[Mapping[str, Taken], tuple[str, ...]]:
        """The pools that were taken over; what only the state knows counts too."""
        from pilotlight.state_schema.cluster_records import TAKEN
        from pilotlight.tools.install import takeover_records

        found = takeover_records.read(self.api)
        mine = TAKEN.scan(self.state, f"{self.cluster}/") if self.state is not None else ()
        return {each.value.pool: each.value for each in mine} | dict(found.taken), found.unread

    def write(self, taken: Taken) -> None:
        """Write one down, in the cluster first."""
        from pilotlight.state_schema.cluster_records import TAKEN
        from pilotlight.tools.install import takeover_records

        takeover_records.write(self.api, taken)
        if self.state is not None:
            TAKEN.put(self.state, f"{self.cluster}/{taken.pool}", taken)


Opener = Callable[[Taken], "Handover | None"]
"""Opens the cloud that a record names."""


class Cloud(NamedTuple):
    """The cloud of the pools: its address, whom it is asked as, and the way that its groups are changed."""

    pools: str
    role: str
    handover: "Handover"


def take_over(
    pool: str, rule: PoolPolicy, cloud: Cloud, state: GroupState, book: Book, now: datetime, dry: bool, stands: bool
) -> Iterator[Told]:
    """Make a pool ours; ``stands``: its nodes may stand by. Raises ``Busy`` where its nodes are being replaced."""
    if state.never:
        raise BadInput(f"pool {pool}: {state.never}")
    if state.busy:
        raise Busy(f"pool {pool}: {state.busy}; take it over again when that is over")
    earlier = book.read()[0].get(pool)
    taken = rules.take(pool, rule, state, cloud.pools, earlier, now, stands)
    taken = msgspec.structs.replace(taken, role=cloud.role)
    changes = rules.forth(taken, state)
    if not dry:
        book.write(taken)
    yield from _change(pool, state, changes, cloud.handover, dry)
    most = rule.max
    if state.nodes > most:
        why = f"it has {count_of(state.nodes, 'node')}: its max is set to that, and not to {most}; take it over again "
        why += "when there are fewer"
        yield Told(pool=pool, verb="kept", setting="max", now=str(state.nodes), why=why, passes=True)
    if stands and state.managed and "warm" not in {one.name for one in taken.settings}:
        yield Told(pool=pool, verb="nothing to do", why=f"its nodes are ended, not stopped: {rules.WARM_BY_EKS}")
    if not changes:
        yield Told(pool=pool, verb="nothing to do", why="is Pilotlight's already")


def hand_back(taken: Taken, open_: Opener, book: Book, now: datetime, dry: bool) -> Iterator[Told]:
    """Give a pool back to whoever kept it before."""
    handover = open_(taken)
    if handover is None:
        raise BadInput(f"pool {taken.pool}: {taken.pools!r} is no address of a cloud whose pools can be given back")
    state = handover.read().get(taken.pool)
    if state is None:
        yield Told(pool=taken.pool, verb="nothing to do", why=f"its group {taken.group} is gone")
        return
    changes, kept = rules.back(taken, state, now)
    yield from _change(taken.pool, state, changes, handover, dry)
    for one in kept:
        is_ = state.settings.get(one.name, "")
        yield Told(pool=taken.pool, verb="kept", setting=one.name, now=is_, why=one.why, passes=one.passes)
    if not changes and not kept:
        yield Told(pool=taken.pool, verb="nothing to do", why="is given back already")
    if why := rules.goes_on(taken, state):
        yield Told(pool=taken.pool, verb="nothing to do", why=why)
    if not dry and taken.handed_back is None and not any(one.passes for one in kept):
        book.write(rules.given_back(taken, now))


def _change(pool: str, state: GroupState, changes: Sequence[Change], handover: "Handover", dry: bool) -> Iterator[Told]:
    for change in changes:
        was = state.settings.get(change.name, "")
        if not dry:
            handover.put(state.group, change.name, change.to)
        yield Told(pool=pool, verb="would set" if dry else "set", setting=change.name, was=was, now=change.to)
