"""Which cluster a command asks: the one that is set up, else the one of a ``pilotlight serve`` over the same state.

``serve`` leaves its address and settings in a file beside its SQLite state; the file holds no secret.
"""

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from pilotlight import typed_json
from pilotlight.settings import Settings, environment

SHARED = tuple(
    f"PILOTLIGHT_{name}"
    for name in (
        *("POLICY", "CATALOG", "CLUSTER", "API", "POOLS", "CLUSTERS", "WORLD"),
        *("ALERTS", "OUTBOX", "MODE", "TELEMETRY", "BILLS"),
    )
)
"""Settings that a command takes over from serve; none of them holds a secret."""
FILES = ("PILOTLIGHT_POLICY", "PILOTLIGHT_CATALOG")
CONNECT_S = 0.5


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """A serve that runs, its process, and the settings that it was started with."""

    url: str
    pid: int
    settings: dict[str, str] = {}


def set_up(settings: Settings) -> bool:
    """Whether a cluster is named, or a world outside this process."""
    return bool(settings.cluster or settings.api or settings.clusters or settings.world)


def leave(settings: Settings, url: str) -> None:
    """Write where serve answers, for the commands of whoever shares its state."""
    if path := _place(settings):
        own = {name: settings.environ[name] for name in SHARED if settings.environ.get(name)}
        own |= {name: str(Path(own[name]).resolve()) for name in FILES if Path(own.get(name, "")).is_file()}
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(msgspec.json.encode(Served(url=url, pid=os.getpid(), settings=own)))


def forget(settings: Settings) -> None:
    """Take the file away, as serve ends; one that stays is known by its process, which is gone."""
    if path := _place(settings):
        with suppress(OSError):
            path.unlink()


def running_serve(settings: Settings) -> Served | None:
    """The serve that runs over this state, where one does and answers."""
    path = _place(settings)
    if path is None or not path.exists():
        return None
    try:
        found = typed_json.decode(path.read_bytes(), Served)
        os.kill(found.pid, 0)
        where = urlsplit(found.url)
        socket.create_connection((where.hostname or "", where.port or 80), CONNECT_S).close()
    except (OSError, ValueError, msgspec.MsgspecError):
        return None
    return found


def serve_beside(settings: Settings) -> Served | None:
    """The serve that runs over this state, where nothing is set up here."""
    return None if set_up(settings) else running_serve(settings)


def settings_of(found: Served | None, settings: Settings) -> dict[str, str]:
    """Settings of that serve, but for those that are said here."""
    given = found.settings if found is not None else {}
    return {name: value for name, value in given.items() if name in SHARED and not settings.environ.get(name)}


@contextmanager
def lend(values: Mapping[str, str]) -> Iterator[None]:
    """Have variables of this process say something else, and afterwards what they said before."""
    environ = environment()
    before = dict(environ)
    environ.update(values)
    try:
        yield
    finally:
        environ.clear()
        environ.update(before)


def header(settings: Settings, state: str, here: bool = False) -> str:
    """The line that every answer begins with: the cluster, where it is, and the state's address. An answer that is
    given ``here`` comes from no serve, though one may run.
    """
    serve = None if here else running_serve(settings)
    if settings.clusters:
        which = f"clusters {', '.join(settings.clusters)}"
    else:
        where = f" at {settings.api}" if settings.api else ""
        which = f"cluster {settings.cluster_name}{where}"
        if not settings.api:
            which += f", a world at {settings.world}" if settings.world else ", a pretend world"
            which += "" if set_up(settings) else " (no cluster is set up)"
    return f"{which}; {f'served at {serve.url}; ' if serve is not None else ''}state {state}"


def nothing_set_up(settings: Settings, state: str, holds: bool = False) -> str:
    """One line where no cluster is named and no serve runs; else nothing. ``holds``: the state has records all the
    same.
    """
    if set_up(settings):
        return ""
    kept = ", which holds what a pretend world left: pilotlight why and report show it" if holds else ""
    return (
        f"nothing is set up here: no cluster is named, and no pilotlight serve runs over {state}{kept}; "
        "next: pilotlight plan --sample, pilotlight init --context CONTEXT, pilotlight serve, or --state ADDRESS"
    )


def _place(settings: Settings) -> Path | None:
    kind, _, where = settings.state.partition(":")
    return Path(f"{where}.serve") if kind == "sqlite" and where else None
