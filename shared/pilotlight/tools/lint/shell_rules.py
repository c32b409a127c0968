"""Rules on clouds' commands in shell scripts: pools that begin or stay above zero, zones given as regions."""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pilotlight.tools.lint.fault import Lint
from pilotlight.units import count_of

_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-f]")
_TOOLS = {"gcloud": ("container",), "civo": ("kubernetes", "k8s", "k3s"), "eksctl": ("create", "scale")}


class _Command(NamedTuple):
    """A command of a cloud's tool, and where it begins."""

    where: str
    words: list[str]
    options: dict[str, str]

    @property
    def of_gcloud(self) -> bool:
        return self.words[0] == "gcloud"


def shell_rules(file: str, text: str) -> Iterator[Lint]:
    """Faults of the commands of one script."""
    clusters: list[str] = []
    for number, words in _commands(text):
        command = _Command(f"{file}:{number}", words, _options(words))
        yield from _zone(command)
        yield from _minimum(command)
        yield from _count(command)
        if command.of_gcloud and "clusters" in words and "create" in words:
            clusters.append(words[words.index("create") + 1])
        yield from _cluster(command, clusters)


def _zone(command: _Command) -> Iterator[Lint]:
    region = command.options.get("region", "")
    if command.of_gcloud and _ZONE.fullmatch(region):
        yield Lint(rule="zone", level="fault", where=command.where, what=f"--region={region} is a zone",
                   fix=f"write --zone={region}, or --region={region.rpartition('-')[0]}")  # fmt: skip


def _minimum(command: _Command) -> Iterator[Lint]:
    gpu = "accelerator" in command.options or "gpu" in " ".join(command.words).lower()
    if not gpu or not {"create", "add"} & set(command.words):
        return
    for name in ("min-nodes", "nodes-min", "num-nodes", "nodes", "count", "n"):
        least = command.options.get(name, "")
        if least.isdigit() and int(least) > 0:
            what = f"a GPU pool that begins with or keeps {count_of(int(least), 'node')} is paid for from its first day"
            fix = f"set it to 0 ({name})"
            yield Lint(rule="pool-minimum", level="warning", where=command.where, what=what, fix=fix)


def _count(command: _Command) -> Iterator[Lint]:
    if "count" in command.options and command.words[0] == "civo":
        what, fix = "civo's pools have no --count", "write -n or --nodes"
        yield Lint(rule="civo-count", level="fault", where=command.where, what=what, fix=fix)


def _cluster(command: _Command, made: Sequence[str]) -> Iterator[Lint]:
    """A pool's cluster is one of those ``made`` so far, where the script makes any."""
    named = command.options.get("cluster", "")
    if command.of_gcloud and made and named and named not in made:
        what = f"the pool is made on cluster {named}, and this script makes {', '.join(dict.fromkeys(made))}"
        yield Lint(rule="cluster-name", level="fault", where=command.where, what=what, fix="name the same cluster")


def _commands(text: str) -> Iterator[tuple[int, list[str]]]:
    """Commands of the clouds' tools, each with its first line; a backslash goes on to the next."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        first, line = at + 1, lines[at]
        while line.endswith("\\") and at + 1 < len(lines):
            at += 1
            line = line[:-1] + " " + lines[at]
        at += 1
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue
        if len(words) > 1 and words[1] in _TOOLS.get(words[0], ()):
            yield first, words


def _options(words: list[str]) -> dict[str, str]:
    """Options by name, with the value after ``=`` or the next word."""
    found: dict[str, str] = {}
    for n, word in enumerate(words):
        if word.startswith("-"):
            name, equals, value = word.lstrip("-").partition("=")
            found[name] = value if equals else (words[n + 1] if n + 1 < len(words) else "")
    return found
