"""Ctrl-C and SIGTERM for a command that has something to give back: they end its steps, never what cleans up."""

import os
import signal
from collections.abc import Callable
from types import TracebackType

ENDS = (signal.SIGINT, signal.SIGTERM)


class CutShort(BaseException):
    """A person ended the steps."""


class InOrder:
    """While it is entered a signal is heard here; what is over is answered as ever once it is left::

    with InOrder("stopping: what was bought is given back first") as order:
        order.steps(buy)
        give_back()
    """

    def __init__(self, said: str) -> None:
        self._said = said
        self._came: list[int] = []
        self._open = False

    def steps(self, run: Callable[[], object]) -> None:
        """Run what may be cut short."""
        try:
            try:
                self._open = not self._came
                if self._open:
                    run()
            finally:
                self._open = False
        except CutShort:
            pass

    def __enter__(self) -> "InOrder":
        self._before = {number: signal.signal(number, self._hear) for number in ENDS}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        if self._came:
            signal.raise_signal(self._came[0])

    def _hear(self, number: int, _: object) -> None:
        self._came.append(number)
        if self._open:
            self._open = False
            os.write(2, f"{self._said}\n".encode())
            raise CutShort
