"""Verification of a notice by its node and by its cloud: no rescue waits long for that."""

from contextlib import suppress
from datetime import datetime, timedelta
from threading import Thread

import msgspec

from pilotlight.decide.interruption.drain_plan import begin_of
from pilotlight.decide.interruption.verify_notice import judge
from pilotlight.errors import PilotlightError
from pilotlight.facts.capacity import Node
from pilotlight.facts.interruption.interruption import Confirmed, Interruption
from pilotlight.facts.nodes.pool_state import InstanceState
from pilotlight.flow.deps import Deps
from pilotlight.units import Seconds, moment_of

PATIENCE_S: Seconds = 2.0
"""No answer within this is none: what is not verified by then counts as not verified."""

ASK_AGAIN = timedelta(seconds=15)
"""A cloud is asked so often at most whether what it does not say yet has become true."""


class Questions:
    """One look's questions to a cloud about instances. Where it does not answer once, it is asked no more in this look:
    a hundred rescues wait no longer for it than one.
    """

    def __init__(self, deps: Deps, patience_s: Seconds = PATIENCE_S) -> None:
        self._deps, self._patience_s = deps, patience_s
        self._hangs = False

    def verify(self, found: Interruption, node: Node, now: datetime) -> Interruption:
        """The interruption with what is known of its notice by now. Its deadline is the cloud's, if that tells one."""
        asked_at, said = found.asked_cloud_at, None
        if asked_at is None or now - asked_at >= ASK_AGAIN:
            said, asked_at = self.ask(found.pool, found.instance), now
        truth, proof, deadline = judge(found, node, said, now, self._deps.pools.cloud)
        found = msgspec.structs.replace(found, asked_cloud_at=asked_at)
        if found.confirmed and truth != "unverified":
            return _settled(found, found.confirmed, deadline, now)
        deadline = (deadline or found.deadline) if found.deadline else None
        return msgspec.structs.replace(found, truth=truth, proof=proof, deadline=deadline)

    def still_boots(self, found: Interruption, now: datetime) -> bool:
        """True while an instance that never was a node is there; where its cloud does not say, until it is to go."""
        if found.node:
            return False
        said, ends = self.ask(found.pool, found.instance), found.deadline or found.until
        return said.there if said is not None else ends is not None and now < ends

    def ask(self, pool: str, instance: str) -> InstanceState | None:
        """The cloud's word on an instance; None where it cannot be asked, does not know, or takes too long.

        Asked on a thread of its own: a call that hangs ends by its own deadline, and nobody waits for it.
        """
        if self._hangs:
            return None
        answers: list[InstanceState | None] = []

        def question() -> None:
            with suppress(PilotlightError):
                answers.append(self._deps.pools.instance(pool, instance))

        thread = Thread(target=question, name=f"ask-{instance}", daemon=True)
        thread.start()
        thread.join(self._patience_s)
        self._hangs = thread.is_alive()
        return answers[0] if answers else None


def _settled(found: Interruption, before: Confirmed, of_cloud: datetime | None, now: datetime) -> Interruption:
    """Of two ends the one that is true: the cloud's own, else the one that was verified first. Pods that were asked to
    save for the other are asked again when it is time: they leave no sooner for it.
    """
    deadline = of_cloud or before.deadline
    later = found.deadline is not None and deadline > found.deadline
    return msgspec.structs.replace(
        found,
        truth="verified",
        proof=f"it goes at {moment_of(deadline, now)}",
        deadline=deadline,
        begin=begin_of(deadline, now),
        confirmed=None,
        asked=before.asked if later else found.asked,
    )
