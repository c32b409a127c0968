"""A worker's life as a value: a delivery is a function of what its calls answered, and so is the call that comes next.

A worker runs on a thread (the harness's baton) and stands before each call. It is kept while it may go on; where the
same life goes on with another answer, a new worker is brought to the same point by the answers that it had.
"""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Any

from harness.faults.baton import Worker
from harness.setting import HEADERS

from orders.moments import LANDS, Whole, Worlds, ask
from orders.ports import app_of
from orders.scenes import Request, Scene, Script
from orders.store import Raised, mark
from pilotlight.adapters.logs import LOGGER
from pilotlight.flow.interruption import verify_notice
from pilotlight.state_schema.table import Format

KEPT = 60
"""Workers that are kept where they stand."""


class Unsteady(BaseException):
    """A worker did otherwise on the same answers: it is no function of them, and no search of it is exhaustive."""


class AtOnce:
    """A thread whose work is done when it begins: a question to the cloud is a call like every other."""

    def __init__(self, target: Callable[[], None], name: str, daemon: bool) -> None:
        self.start = target

    def join(self, timeout: float) -> None:
        """It is over."""

    def is_alive(self) -> bool:
        """It is over."""
        return False


WRITE = Format.write


def hush() -> None:
    """Retries are what is provoked here; a worker is one thread; and workers are processes: each decodes what another
    wrote."""
    logging.getLogger(LOGGER).setLevel(logging.CRITICAL + 1)
    setattr(verify_notice, "Thread", AtOnce)  # noqa: B010
    setattr(Format, "write", lambda kind, value, key="", **how: WRITE(kind, value, **how))  # noqa: B010


class Life:
    """A delivery up to a call, or to its end: ``request`` is None there, and ``status`` and ``said`` the answer."""

    __slots__ = ("answer", "clock", "id", "lands", "next", "parent", "request", "said", "script", "status")

    def __init__(
        self,
        id: int,
        script: Script,
        parent: "Life | None",
        answer: Any,
        request: Request | None,
        status: int,
        said: str,
    ) -> None:
        self.id, self.script, self.parent, self.answer = id, script, parent, answer
        self.request, self.status, self.said = request, status, said
        self.clock = request is not None and request[1] == "now"
        self.lands = request is not None and request[1] in LANDS
        self.next: dict[int, Life] = {}

    @property
    def over(self) -> bool:
        """Whether it has come to its end."""
        return self.request is None

    def told(self) -> list[tuple[Request, Any]]:
        """Its calls so far, and what they answered."""
        out: list[tuple[Request, Any]] = []
        life = self
        while life.parent is not None:
            out.append((life.parent.request or (), life.answer))
            life = life.parent
        return out[::-1]


class Lives:
    """All lives that were met, of one scene."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._made = 0
        self._standing: OrderedDict[int, _Run] = OrderedDict()
        self.replays = 0

    def begin(self, script: Script) -> Life:
        """A delivery that has not begun."""
        return self._kept(_Run(self._scene, script, ()), script, None, None)

    def go_on(self, life: Life, answer: Any) -> Life:
        """The same life after its call was answered so."""
        key = mark(answer)
        found = life.next.get(key)
        if found is None:
            run = self._standing.pop(life.id, None)
            if run is None:
                self.replays += 1
                run = _Run(self._scene, life.script, life.told())
            run.go_on(answer)
            found = life.next[key] = self._kept(run, life.script, life, answer)
        return found

    def end(self) -> None:
        """End every worker."""
        while self._standing:
            self._standing.popitem()[1].end()

    def _kept(self, run: "_Run", script: Script, parent: Life | None, answer: Any) -> Life:
        life = Life(self._made, script, parent, answer, run.request, run.status, run.said)
        self._made += 1
        if life.over:
            run.end()
        else:
            self._standing[life.id] = run
            if len(self._standing) > KEPT:
                self._standing.popitem(last=False)[1].end()
        return life


class _Run:
    """A worker at its delivery, on a thread; it stands before a call."""

    def __init__(self, scene: Scene, script: Script, told: Iterable[tuple[Request, Any]]) -> None:
        self.request: Request | None = None
        self.status, self.said = 0, ""
        self._scene, self._script = scene, script
        self._told = deque(told)
        self._worker = Worker("worker")
        self._worker.start(self._handle)

    def go_on(self, answer: Any) -> None:
        """To the next call, or the end."""
        self._told.append((self.request or (), answer))
        self.request = None
        self._worker.resume()

    def end(self) -> None:
        """Be no more."""
        self._worker.end()

    def _ask(self, request: Request) -> Any:
        if not self._told:
            self.request = request
            self._worker.pause("call")
        before, answer = self._told.popleft()
        if before != request:
            raise Unsteady(f"{self._script.name} makes the call {request} where it made {before}")
        return given(answer)

    def _handle(self) -> None:
        for change in self._script.before:
            self._ask(change)
        answer = app_of(self._scene, self._ask).receive(self._script.function, self._script.body, HEADERS)
        self.request, self.status = None, answer.status
        self.said = str(answer.body.get("why") or answer.body)


class Direct:
    """A worker that nobody disturbs, on a whole of its own that changes with its calls."""

    def __init__(self, worlds: Worlds, whole: Whole) -> None:
        self.worlds, self.whole = worlds, whole
        self._app = app_of(worlds.scene, self.ask)

    def ask(self, request: Request) -> Any:
        """A call, at once."""
        answer, self.whole = ask(self.worlds, self.whole, request)
        return given(answer)

    def do(self, script: Script) -> tuple[int, str]:
        """A delivery from its beginning to its end: its status and what it says."""
        for change in script.before:
            self.ask(change)
        answer = self._app.receive(script.function, script.body, HEADERS)
        return answer.status, str(answer.body.get("why") or answer.body)


def given(answer: Any) -> Any:
    """An answer, or the error that it is."""
    if isinstance(answer, Raised):
        raise answer.again()
    return answer
