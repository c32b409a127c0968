"""Steps of a new node until a pod works there, in words."""

from collections.abc import Iterable

from pilotlight.facts.nodes.first_work import NewNodeStep
from pilotlight.units import Seconds, human

WORDS: dict[NewNodeStep, str] = {"boot": "boot", "plugin": "device plugin", "pull": "image pull", "start": "start"}


def steps_line(pool: str, steps: Iterable[tuple[NewNodeStep, Seconds]]) -> str:
    """One line: "a new node of t4 works after: boot 95 s, device plugin 20 s, image pull 3 min, start 5 s"."""
    return f"a new node of {pool} works after: {', '.join(f'{WORDS[name]} {human(each)}' for name, each in steps)}"
