"""A check-up as people read it: one line a check, with its fix."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.text import Text

from pilotlight.facts.limits.checks import Check, Level

_MARKS: dict[Level, tuple[str, str]] = {
    "ok": ("ok     ", "green"),
    "warning": ("warning", "yellow"),
    "fault": ("FAULT  ", "bold red"),
    "unknown": ("unseen ", "dim"),
}


def lines(cluster: str, checks: Sequence[Check]) -> Iterator[Text]:
    """The checks of one cluster, and how many of each kind there are."""
    yield Text(cluster, style="bold")
    for check in checks:
        line = Text.assemble("  ", _MARKS[check.verdict], f"  {check.subject}: {check.what}")
        yield line.append("; fix: ", style="dim").append(check.fix) if check.fix else line
    counts = Counter(check.verdict for check in checks)
    names: dict[Level, str] = {"fault": "at fault", "warning": "to look at", "unknown": "unseen", "ok": "well"}
    told = ", ".join(f"{counts[verdict]} {name}" for verdict, name in names.items() if counts[verdict])
    yield Text(f"  {told}", style="bold")
