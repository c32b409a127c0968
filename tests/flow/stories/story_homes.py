"""What may happen beside all else on the stage of a story whose pools have homes."""

from collections.abc import Callable
from typing import Any

from story_happenings import HAPPENINGS

from pilotlight.errors import Conflict, Denied, Retry, Unavailable
from pilotlight.facts.messages import NodeJoined
from pilotlight.flow.provision import provision


def _untaint(on: Any) -> None:
    """Somebody takes our taint off a node, or writes another home into it."""
    joined = [name for name in sorted(on.world.nodes) if on.world.nodes[name].joined]
    if joined:
        on.world.set_home(on.draw.choice(joined), on.draw.choice(("", "", "new", "a-hand")))


def _node_joins(on: Any) -> None:
    """The event of a node that joined."""
    joined = [name for name in sorted(on.world.nodes) if on.world.nodes[name].joined]
    if joined:
        name, now = on.draw.choice(joined), on.world.clock.now()
        on._count += 1
        said = NodeJoined(cluster="c", name=name, uid=f"uid-{name}", identity=f"{name}/{on._count}", at=now)
        on.look(f"joined {name}", lambda: provision(on.deps, said))


def _patch_refused(on: Any) -> None:
    call = on.draw.choice(("name_home", "tolerate", "tolerate", "open"))
    for _ in range(on.draw.choice((1, 2, 5))):
        on.fail(call, on.draw.choice((Denied, Conflict, Unavailable, Retry))("it says no"))


def _bears_home(on: Any) -> None:
    """A job that tolerates somebody's home by itself."""
    HAPPENINGS["job"](on)
    homes = [node.home for node in on.world.nodes.values() if node.home]
    if homes and on.known and on.known[-1].uid in on.world.pending:
        on.world.tolerate(on.known[-1].uid, on.draw.choice(homes))


AT_HOMES: dict[str, Callable[[Any], None]] = {
    "untaint": _untaint,
    "node joins": _node_joins,
    "node joins again": _node_joins,
    "patch refused": _patch_refused,
    "bears a home": _bears_home,
}
"""Those that come to pools with homes beside the others."""
