"""Steps of a new node until a pod works there, in words."""

from pilotlight.facts.nodes.first_work import STEPS, NewNodeStep
from pilotlight.tools.glance.new_nodes import NewNode
from pilotlight.units import human

WORDS: dict[NewNodeStep, str] = {"boot": "boot", "plugin": "device plugin", "pull": "image pull", "start": "start"}


def steps_line(one: NewNode) -> str:
    """One line: "a new node of t4 works after: boot 95 s, device plugin 20 s, image pull 3 min, start 5 s"."""
    told = zip(STEPS, (one.boot_s, one.plugin_s, one.pull_s, one.start_s), strict=True)
    steps = (f"{WORDS[name]} {human(seconds)}" for name, seconds in told if seconds is not None)
    return f"a new node of {one.pool} works after: {', '.join(steps)}"
