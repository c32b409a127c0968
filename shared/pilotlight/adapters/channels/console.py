"""Alerts on the terminal, or wherever the process's error stream goes."""

import sys
from typing import TextIO

from pilotlight.facts.messages import Alert


class ConsoleChannel:
    """One line for what happened, and one each for why and what to do next."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def deliver(self, alert: Alert) -> None:
        stream = self._stream or sys.stderr
        stream.write(f"{alert.severity.upper()} {alert.cluster}: {alert.what}\n")
        for name, text in (("why", alert.why), ("next", alert.next), ("how", alert.how)):
            if text:
                stream.write(f"    {name}: {text}\n")
        stream.flush()
