"""Rules on clouds' commands in shell scripts: pools that begin or stay above zero, zones given as regions."""

import re
import shlex
from collections.abc import Iterator

from pilotlight.tools.lint.fault import Lint

_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-f]")
_TOOLS = {"gcloud": ("container",), "civo": ("kubernetes", "k8s", "k3s"), "eksctl": ("create", "scale")}


def shell_rules(file: str, text: str) -> Iterator[Lint]:
    """Faults of the commands of one script."""
    clusters: dict[str, int] = {}
    for number, words in _commands(text):
        where = f"{file}:{number}"
        options = _options(words)
        region = options.get("region", "")
        if words[0] == "gcloud" and _ZONE.fullmatch(region):
            yield Lint(rule="zone", level="fault", where=where, what=f"--region={region} is a zone",
                       fix=f"write --zone={region}, or --region={region.rpartition('-')[0]}")  # fmt: skip
        gpu = "accelerator" in options or "gpu" in " ".join(words).lower()
        for name in ("min-nodes", "nodes-min", "num-nodes", "nodes", "count", "n"):
            least = options.get(name, "")
            if gpu and least.isdigit() and int(least) > 0 and {"create", "add"} & set(words):
                what = f"a GPU pool that begins with or keeps {least} nodes is paid for from its first day"
                yield Lint(rule="pool-minimum", level="warning", where=where, what=what, fix=f"set it to 0 ({name})")
        if "count" in options and words[0] == "civo":
            fix = "write -n or --nodes"
            yield Lint(rule="civo-count", level="fault", where=where, what="civo's pools have no --count", fix=fix)
        if words[0] == "gcloud" and "clusters" in words and "create" in words:
            clusters[words[words.index("create") + 1]] = number
        named = options.get("cluster", "")
        if words[0] == "gcloud" and clusters and named and named not in clusters:
            what = f"the pool is made on cluster {named}, and this script makes {', '.join(clusters)}"
            yield Lint(rule="cluster-name", level="fault", where=where, what=what, fix="name the same cluster")


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
