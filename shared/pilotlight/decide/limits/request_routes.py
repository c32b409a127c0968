"""Routes of requests: those that a place has, the methods that each takes, and the refusal of all else."""

from typing import NamedTuple

from pilotlight.facts.limits.routes import DRY, ROUTES, Route, Where


class Refusal(NamedTuple):
    """Why it does not come in: a status and one line, which holds nothing of a token. ``allow`` goes with a 405."""

    status: int
    why: str
    allow: str = ""


def at_function(method: str, path: str) -> Refusal | None:
    """Refusal of a request to a function that a cloud runs, and has let it come so far."""
    return refuse_misplaced("function", method, path)


def refuse_misplaced(where: Where, method: str, path: str) -> Refusal | None:
    """Refusal of a path that is not there, or of a method that it does not take."""
    rows = routes_at(where, path)
    if not rows:
        there = sorted({door.path for door in ROUTES if door.where == where})
        return Refusal(404, f"nothing at {path}; there are {', '.join(there)}")
    fitting = taking_method(rows, path, method)
    return fitting if isinstance(fitting, Refusal) else None


def routes_at(where: Where, path: str, dry: bool = False) -> tuple[Route, ...]:
    """The rows of a path; those of a dry run where that is asked for and the path has them."""
    clean = "/" + path.strip("/")
    plain = tuple(door for door in ROUTES if door.where == where and _fits(door.path, clean))
    return (dry and tuple(door for door in ROUTES if door.where == where and door.path == clean + DRY)) or plain


def _fits(pattern: str, path: str) -> bool:
    """True for a path of a pattern: each part is the same, or stands where the pattern has a name."""
    if "{" not in pattern:
        return pattern == path
    wanted, parts = pattern.split("/"), path.split("/")
    return len(wanted) == len(parts) and all(
        w == p or (w.startswith("{") and p) for w, p in zip(wanted, parts, strict=True)
    )


def taking_method(rows: tuple[Route, ...], path: str, method: str) -> tuple[Route, ...] | Refusal:
    """The rows that take a method."""
    fitting = tuple(row for row in rows if row.method == method)
    if fitting:
        return fitting
    allow = ", ".join(sorted({row.method for row in rows}))
    return Refusal(405, f"{path} takes {allow}, not {method}", allow)
