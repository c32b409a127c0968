"""Alerts on the terminal, or wherever the process's error stream goes."""

import sys
from typing import TextIO

from pilotlight.facts.messages import Alert


class ConsoleChannel:
    """A line for what happened, and one each for cost, why, what happens next, how to act, links and fingerprint."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def deliver(self, alert: Alert) -> str:
        # An alert that was told costs a cold start nothing of this.
        from pilotlight.codec.alert_text import alert_parts, clean, links

        said = alert_parts(alert)
        level, _, what = said.title.partition(": ")
        about = ", ".join(part for part in (alert.team, alert.subject) if part and part not in what)
        lines = [f"{level} {alert.cluster}: {what}" + (f" ({about})" if about else "")]
        for name in ("cost", "why", "next", "how"):
            if text := getattr(said, name):
                lines.append(f"    {name}: {text}".replace("\n", "\n      "))
        lines += [f"    {name}: {url}" for name, url in links(alert)]
        lines.append(f"    alert: {clean(alert.fingerprint)}")
        stream = self._stream or sys.stderr
        stream.write("\n".join(lines) + "\n")
        stream.flush()
        return ""
