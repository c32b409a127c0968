"""A worker at one piece of work, a call to the store at a time: it may stand still before each, or die there."""

from collections.abc import Callable
from datetime import datetime
from threading import Semaphore, Thread

from pilotlight.errors import Unavailable
from pilotlight.ports.state import Page, State, Stored


class Stalling:
    """A store before each call to which its worker stands still until it is let go on; ``dead`` fails every call."""

    def __init__(self, inner: State) -> None:
        self.inner, self.parked, self.go, self.dead = inner, Semaphore(0), Semaphore(0), False

    def _wait(self) -> State:
        self.parked.release()
        self.go.acquire()
        if self.dead:
            raise Unavailable("its worker died")
        return self.inner

    def now(self) -> datetime:
        """The store's time."""
        return self.inner.now()

    def get(self, key: str) -> Stored | None:
        """Read."""
        return self._wait().get(key)

    def put(self, key: str, value: bytes, *, if_version: int | None = None, ttl_s: float | None = None) -> int:
        """Write."""
        return self._wait().put(key, value, if_version=if_version, ttl_s=ttl_s)

    def delete(self, key: str, *, if_version: int | None = None) -> None:
        """Delete."""
        self._wait().delete(key, if_version=if_version)

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Page:
        """Read many."""
        return self._wait().scan(prefix, after=after, limit=limit)


class Worker:
    """One worker at one piece of work, a call to the store at a time."""

    def __init__(self, state: State, work: Callable[[State], object]) -> None:
        self.state, self.over = Stalling(state), False
        self.failed: BaseException | None = None
        self._thread = Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()
        self.state.parked.acquire()

    def _run(self, work: Callable[[State], object]) -> None:
        try:
            work(self.state)
        except Unavailable:
            pass
        except BaseException as error:
            self.failed = error
        self.over = True
        self.state.parked.release()

    def step(self) -> None:
        """One call."""
        if not self.over:
            self.state.go.release()
            self.state.parked.acquire()
        if self.failed is not None:
            raise self.failed

    def finish(self) -> None:
        """All calls that are left."""
        while not self.over:
            self.step()

    def die(self) -> None:
        """It makes no further call."""
        self.state.dead = True
        self.finish()
