"""Which cluster a command asks: the one that is set up, else the one of a ``pilotlight serve`` over the same state.

``serve`` leaves its address and settings in a file beside its SQLite state; the file holds no secret. A lock on another
keeps every further serve out while it lives.
"""

import fcntl
import os
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from pilotlight import typed_json
from pilotlight.errors import BadInput
from pilotlight.settings import Settings, environment

SHARED = tuple(
    f"PILOTLIGHT_{name}"
    for name in (
        *("POLICY", "CATALOG", "CLUSTER", "API", "POOLS", "CLUSTERS", "WORLD"),
        *("ALERTS", "OUTBOX", "MODE", "TELEMETRY", "BILLS"),
    )
)
"""Settings that a command takes over from serve; none of them holds a secret."""
PLACES = tuple(f"PILOTLIGHT_{name}" for name in ("CLUSTER", "API", "CLUSTERS", "WORLD"))
"""Those that name a cluster, or a world in its place."""
FILES = ("PILOTLIGHT_POLICY", "PILOTLIGHT_CATALOG")
BUILT_IN = "pools of the built-in policy, to try it with: name yours by --policy"
CONNECT_S = 0.5
ORPHANS_S = 15.0
"""Seconds that workers of a killed serve may take to see it, and to answer what they began."""


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """A serve that runs, its process, and the settings that it was started with."""

    url: str
    pid: int
    settings: dict[str, str] = {}


def set_up(settings: Settings) -> bool:
    """Whether a cluster is named, or a world outside this process."""
    return bool(settings.cluster or settings.api or settings.clusters or settings.world)


@contextmanager
def alone_over(settings: Settings, url: str) -> Iterator[None]:
    """Hold a SQLite state for one serve and its workers as long as one of them lives: the system lets go as they end,
    however they do. Raises ``BadInput`` where another holds it. Stores that functions share are held by none.
    """
    with ExitStack() as held:
        if (place := _place(settings)) is not None:
            with suppress(OSError):  # A folder that nobody may write: the store itself says so.
                place.parent.mkdir(parents=True, exist_ok=True)
                lock = held.enter_context(place.with_suffix(".serve-lock").open("a+b", buffering=0))
                _take(lock.fileno(), settings)
                lock.truncate(0)
                lock.write(msgspec.json.encode(Served(url=url, pid=os.getpid())))
        yield


def refuse_second(settings: Settings) -> None:
    """The same refusal, before anything is written or listened at."""
    if (place := _place(settings)) is not None:
        with suppress(OSError), place.with_suffix(".serve-lock").open("r+b") as lock:
            _take(lock.fileno(), settings)


def _take(lock: int, settings: Settings) -> None:
    """Lock the file, waiting for workers that outlive their serve for a moment."""
    until = time.monotonic() + ORPHANS_S
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held_by = _held_by(lock)
        if (held_by is not None and _lives(held_by.pid)) or time.monotonic() > until:
            where, process = (f" at {held_by.url}", f" (process {held_by.pid})") if held_by is not None else ("", "")
            raise BadInput(
                f"a pilotlight serve runs{where} over {settings.state} already: end it{process}, "
                "or name another state: --state sqlite:PATH"
            )
        time.sleep(0.1)


def _held_by(lock: int) -> Served | None:
    """The serve that holds the lock, once it has written which it is."""
    with suppress(msgspec.MsgspecError):
        return typed_json.decode(os.pread(lock, 4096, 0), Served)
    return None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # Of another user.
    return True


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
    """The serve that runs over this state, where nothing is set up here, or nothing but what it was started with."""
    found = running_serve(settings)
    return found if found is not None and _is_of(found, settings) else None


def _is_of(found: Served, settings: Settings) -> bool:
    """Whether every cluster or world that is named here is that serve's."""
    named = {name: value for name in PLACES if (value := settings.environ.get(name))}
    return all(found.settings.get(name) == value for name, value in named.items())


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
    given ``here`` comes from no serve, though one may run. Of a real cluster it says where its pools are pretended.
    """
    serve = None if here else serve_beside(settings)
    if settings.clusters:
        which = f"clusters {', '.join(settings.clusters)}"
    else:
        where = f" at {settings.api}" if settings.api else ""
        which = f"cluster {settings.cluster_name}{where}"
        if not settings.api:
            which += f", a pretend world{f' at {settings.world}' if settings.world else ''} with pretend dollars"
            which += "" if set_up(settings) else " (no cluster is set up)"
    real = settings.api or settings.clusters
    pretended = "" if settings.policy or not real else f"; {BUILT_IN}"
    return f"{which}; {f'served at {serve.url}; ' if serve is not None else ''}state {state}{pretended}"


def nothing_set_up(settings: Settings, state: str, held: Sequence[str] = ()) -> str:
    """One line where no cluster is named and no serve runs; else nothing. ``held``: clusters of which the state has
    records all the same.
    """
    if set_up(settings):
        return ""
    kept = ""
    if real := [name for name in held if name not in ("", settings.cluster_name)]:
        kept = f", which holds records of cluster {', '.join(real)}: PILOTLIGHT_CLUSTER={real[0]} pilotlight why"
    elif held:
        kept = ", which holds what a pretend world left: pilotlight why and report show it"
    from pilotlight.tools.cli.real_cluster import current_context

    context = current_context(settings)
    unread = f" (your kubeconfig's context {context} is read where --context names it)" if context else ""
    first = f"pilotlight plan --context {context}" if context else "pilotlight plan --sample"
    return (
        f"nothing is set up here: no cluster is named{unread}, and no pilotlight serve runs over {state}{kept}; next: "
        f"{first}, pilotlight init --context {context or 'CONTEXT'}, pilotlight serve, or --state ADDRESS"
    )


def _place(settings: Settings) -> Path | None:
    kind, _, where = settings.state.partition(":")
    return Path(f"{where}.serve") if kind == "sqlite" and where else None
