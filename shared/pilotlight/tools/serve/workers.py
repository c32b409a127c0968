"""Worker processes on one listening socket: each may die at any moment, and is then started again.

They share the state and a world that is a process of its own. gunicorn keeps them, as it does in a deployed function.
"""

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from socket import socket
from typing import TYPE_CHECKING, Any, NamedTuple

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.workers.base import Worker

from pilotlight.errors import BadInput, Failed
from pilotlight.settings import Settings
from pilotlight.tools.cli.stop_at_once import EXIT_STOPPED
from pilotlight.tools.serve.http_server import HttpServer

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

CTRL_C_S = 1
"""Seconds that requests may take to end after Ctrl-C."""

CLI = "from pilotlight.tools.cli.entry import run; run()"
"""Runs the command line in a Python of its own: the console script may not be in PATH."""


def serve(
    listener: socket,
    site: "WSGIApplication",
    workers: int,
    *,
    on_start: Callable[[], None],
) -> None:
    """Serve ``site`` until told to stop. Each worker calls ``on_start`` as it begins.

    ``site`` is made before the workers are: it may hold no connection and no thread. Ends the process.
    """
    options = {
        "bind": f"fd://{listener.fileno()}",
        "workers": workers,
        "worker_class": _Worker,
        "preload_app": True,
        "loglevel": "warning",
        "graceful_timeout": 5,
        "control_socket_disable": True,
        "post_worker_init": lambda worker: on_start(),
    }
    _Workers(options, site).run()


class _Workers(BaseApplication):  # type: ignore[misc]
    """gunicorn with options given as values."""

    def __init__(self, options: Mapping[str, Any], site: "WSGIApplication") -> None:
        self._options, self._site = options, site
        super().__init__()

    def load_config(self) -> None:
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> "WSGIApplication":
        return self._site

    def run(self) -> None:
        _Arbiter(self).run()


class _Worker(Worker):  # type: ignore[misc]
    """One process that serves until its arbiter, or whoever keeps that, is gone."""

    def run(self) -> None:
        HttpServer(self.wsgi, self.sockets[0].sock).serve(self._goes_on, ends_within_s=self.cfg.graceful_timeout)

    def _goes_on(self) -> bool:
        self.notify()
        return bool(self.alive) and self.ppid == os.getppid()


class _Arbiter(Arbiter):  # type: ignore[misc]
    """gunicorn's, but that Ctrl-C ends it as it ends every command: one line, 130, soon."""

    def handle_int(self) -> None:
        os.write(2, b"stopped\n")
        self.log.error_log.setLevel(logging.CRITICAL)  # A worker that must be killed is no news.
        self.cfg.set("graceful_timeout", CTRL_C_S)
        self.stop()
        sys.exit(EXIT_STOPPED)


class OwnWorld(NamedTuple):
    """A world that was started here. It ends when nobody holds its ``process`` any more, however they went."""

    url: str
    process: subprocess.Popen[str]


def own_world(settings: Settings) -> OwnWorld:
    """Start a world with the settings' policy and catalogue. Raises ``BadInput`` for wrong ones, else ``Failed``."""
    words = ["world", "--while-stdin", "--port", "0"]
    for option, value in (("--policy", settings.policy), ("--catalog", settings.catalog)):
        words += [option, value] if value else []
    pipe = subprocess.PIPE
    # In a group of its own, for Ctrl-C is its holder's to answer.
    process = subprocess.Popen([sys.executable, "-c", CLI, *words], stdin=pipe, stdout=pipe, text=True, process_group=0)
    line = process.stdout.readline() if process.stdout else ""
    if not line.startswith("world http"):
        raise (BadInput if process.wait() == 2 else Failed)("the world did not start; its own error is above")
    return OwnWorld(line.split()[1], process)
