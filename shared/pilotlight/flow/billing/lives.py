"""Lives of instances that are known to have stopped: so the meter knows to the second when, also of one it never saw.

Keys: ``life/<cluster>/<instance>``. An instance that stops by itself and is told of by nobody is over at the first
look that misses it.
"""

from pilotlight.codec.records import Format
from pilotlight.decide.money.holds import lit
from pilotlight.facts.bill import Life
from pilotlight.facts.capacity import Booting
from pilotlight.facts.decisions import Record
from pilotlight.flow.deps import Deps
from pilotlight.flow.sight import Sight
from pilotlight.units import HOUR

KEEP_LIVES_S = 48 * HOUR
"""Longer than a node object outlives its instance, and than the meter may stand still."""

LIFE = Format(Life)


def ended(deps: Deps, life: Life) -> None:
    """Note that an instance has stopped."""
    deps.state.put(f"life/{deps.name}/{life.instance}", LIFE.write(life), ttl_s=KEEP_LIVES_S)


def released(deps: Deps, sight: Sight, record: Record) -> None:
    """Note the instances that a decision has just given back."""
    releases = zip(record.plan.releases, record.effects[len(record.plan.buys) :], strict=False)
    gone = [node for node, effect in releases if effect.outcome == "done"]
    if not gone:
        return
    now = deps.clock.now()
    since = {one.instance: one.since for one in lit(sight.view.nodes, sight.pools)}
    for node in gone:
        instance = node.instance or node.node
        if instance in since:
            one = Life(instance=instance, node=node.node, pool=node.pool, since=since[instance], ended_at=now)
            ended(deps, one)


def given_back(deps: Deps, pool: str, booting: Booting) -> None:
    """Note an instance that was given back before it became a node."""
    name, now = booting.instance, deps.clock.now()
    ended(deps, Life(instance=name, node=name, pool=pool, since=booting.requested_at, ended_at=now))


def over(deps: Deps) -> list[Life]:
    """The lives that ended lately."""
    found: list[Life] = []
    after = ""
    while True:
        page = deps.state.scan(f"life/{deps.name}/", after=after)
        found += [LIFE.read(key, stored.value) for key, stored in page.items]
        if not page.next:
            return found
        after = page.next
