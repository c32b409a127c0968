"""Workers that run one at a time, each until it is about to call a port: the director says who goes on and who dies."""

from collections.abc import Callable
from threading import Lock, Thread


class Died(BaseException):
    """The process is gone. No ``except Exception`` sees it, and nothing done after it has any effect."""


class Worker:
    """A process that handles one delivery after another, on a thread of its own.

    All but ``pause`` are the director's. ``at`` is the call it stands before; empty when it has nothing to do.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.at = ""
        self._task: Callable[[], None] | None = None
        self._broke: BaseException | None = None
        self._dying = False
        self._go, self._back = Lock(), Lock()
        self._go.acquire()
        self._back.acquire()
        self._thread = Thread(target=self._live, name=name, daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        """Whether it is in the middle of a delivery."""
        return bool(self.at)

    def start(self, task: Callable[[], None]) -> None:
        """Begin a delivery; it stops before its first call."""
        self._task, self.at = task, "begin"
        self.resume()

    def resume(self) -> None:
        """Go on through the call it stands before, up to the next one or to the end."""
        self._go.release()
        self._back.acquire()
        if self._broke is not None:
            raise self._broke

    def kill(self) -> None:
        """Die before the call it stands before; the next delivery finds a new process."""
        self._dying = True
        self.resume()

    def end(self) -> None:
        """Be no more. Whatever it was doing dies with it."""
        if self.busy:
            self.kill()
        self._task = None
        self._go.release()
        self._thread.join()

    def pause(self, call: str) -> None:
        """Stand before a call until told to go on. Raises ``Died``, then and at every later call of that life."""
        if not self._dying:
            self.at = call
            self._back.release()
            self._go.acquire()
        if self._dying:
            raise Died

    def _live(self) -> None:
        while True:
            self._go.acquire()
            if self._task is None:
                return
            try:
                self._task()
            except Died:
                self._dying = False
            except BaseException as error:  # The harness itself is wrong: the director must hear of it.
                self._broke = error
            self.at = ""
            self._back.release()
