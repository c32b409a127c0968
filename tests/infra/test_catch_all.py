"""Who catches what nobody foresaw: the front door alone, so that an error is set down to its object in one place."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "shared" / "pilotlight"
OUTSIDE = ("doorway/", "tools/", "chaos/")
"""The front door itself, and what people run at a desk."""
ALLOWED = {
    "flow/abreast.py": 1,  # A cluster's thread hands its error to the caller, who answers for it.
    "adapters/cluster/kubernetes/access/logins.py": 1,  # A login's thread hands its error to the caller.
    "adapters/tunnels.py": 1,  # A tunnel is closed, and the error goes on.
    "adapters/http.py": 3,  # A connection is closed, and the error goes on.
    "adapters/outbox/pubsub.py": 1,  # A message that is not taken is sent again.
}
BROAD = {"Exception", "BaseException"}


def _broad(path: Path) -> int:
    """How many handlers of a file catch every error."""
    handlers = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ExceptHandler)]
    return sum(each.type is None or bool(_caught(each.type) & BROAD) for each in handlers)


def _caught(type_: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(type_) if isinstance(node, ast.Name)}


def test_the_front_door_alone_catches_what_nobody_foresaw() -> None:
    """No file behind the door catches every error but those that are named here, each as often as it is said."""
    found = {str(path.relative_to(PACKAGE)): _broad(path) for path in sorted(PACKAGE.rglob("*.py"))}
    assert {name: count for name, count in found.items() if count and not name.startswith(OUTSIDE)} == ALLOWED


def test_no_decision_suppresses_every_error() -> None:
    """Nobody suppresses what nobody foresaw either."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "suppress":
                assert not {a.id for a in node.args if isinstance(a, ast.Name)} & BROAD, path
