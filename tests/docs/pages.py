"""README, the guides and how it decides as blocks: what a reader would type, what is shown, and what it needs.

A fence's information says its kind and, after ``needs:``, what a reader must have that is not on every machine; an
HTML comment on the line above (``<!-- needs: a cluster -->``) says the same. ``<!-- run by: .ci/run -->`` names who
runs a block that takes long. A block of commands is walked here, behind KUBECONFIG, or named with why it cannot be.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from guide import Said

ROOT = Path(__file__).resolve().parents[2]
_GUIDES = ("*.md", "docs/*.md", "docs/guides/*.md", "events/*.md", "examples/**/*.md", "infra/**/*.md")
PAGES = [page for pattern in _GUIDES for page in sorted(ROOT.glob(pattern)) if page.name != "CHANGELOG.md"]
"""All that a reader may type from: not the changelog, decisions (docs/adr) and what commands write (docs/reference)."""

SHELL = ("", "sh", "console")
PROGRAMS = {"prometheus": ("prometheus", "promtool"), "gcloud's emulators": ("gcloud", "java")}
"""Programs that a block may need: it is walked here where they are found."""
CLUSTERS = {
    "a cluster": "an API server",
    "a cluster with Karpenter": "an API server with the CRDs of karpenter.sh/v1",
}
"""What is walked behind KUBECONFIG (test_guide_live.py)."""
CANNOT = {
    "a bucket": "a bucket of Amazon S3 or Cloud Storage, with the right to write there",
    "aws": "an account of Amazon Web Services",
    "az": "an account of Azure",
    "civo": "an account of Civo",
    "docker": "a daemon of Docker, and a registry",
    "gcloud": "an account of Google Cloud",
    "helm": "Helm, and an image that Docker builds in a registry which the cluster reaches",
    "hours": "a control plane for hours, of which bench/ says the commands and docs/agreement.md the outcome",
    "a trace": "a recorded trace that lies beside the repository, not in it",
}
"""What a block may need that no machine of ours has: it is parsed alone, and this says why."""
_FENCE = re.compile(
    r"(?:^<!-- (needs|run by): ([^\n]+?) -->\n)?^```([a-z]*)(?: needs: ([^\n]+))?\n(.*?)^```$", re.M | re.S
)
_INNER = re.compile(r"\$\([^()]*\)")
_INLINE = re.compile(r"`(pilotlight(?: [^`]+)?)`")
_NAMES = "".join(f"(?<!{word} )" for word in ("install", "upgrade", "rollback", "status", "-n", "--namespace"))
"""What stands before a release or a namespace of that name."""
_RUNS = re.compile(rf"(?:^|[\s;|&(`]|-- ){_NAMES}(?:\S*/)?pilotlight(?= [a-z])([^;|&)`#\n]*)")


class Block(NamedTuple):
    """A fenced block. ``needs`` is empty where it can be run anywhere; ``ran_by`` names who runs it instead."""

    page: Path
    line: int
    kind: str
    needs: str
    ran_by: str
    text: str

    @property
    def way(self) -> str:
        """How it is walked: "here", "behind KUBECONFIG" or "not"; empty where nobody has said."""
        if self.needs in CANNOT or self.ran_by:
            return "not"
        if self.needs in CLUSTERS:
            return "behind KUBECONFIG"
        return "here" if not self.needs or self.needs in PROGRAMS else ""

    @property
    def where(self) -> str:
        """For people: its page and line."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    text = page.read_text("utf-8")
    found = []
    for match in _FENCE.finditer(text):
        mark, what, kind, needs, body = match.groups()
        line = text.count("\n", 0, match.start()) + 1
        needs = needs or (what if mark == "needs" else "") or ""
        found.append(Block(page, line, kind, needs, what if mark == "run by" else "", body))
    return found


def typed(block: Block) -> Iterator[Said]:
    """The commands of a block, with the lines that are shown below each: none where the block only has commands."""
    if block.kind == "console":
        for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
            command, *lines = part.rstrip("\n").split("\n")
            yield Said(_bare(command), tuple(lines))
        return
    for line in block.text.replace("\\\n", " ").splitlines():
        if command := _bare(line):
            yield Said(command, None)


def _bare(line: str) -> str:
    """A line without the remark at its end, which begins outside quotes."""
    for match in re.finditer(r"(?:^|\s)#", line):
        before = line[: match.start()]
        if before.count("'") % 2 == before.count('"') % 2 == 0:
            return before.strip()
    return line.strip()


def calls(text: str) -> Iterator[list[str]]:
    """The words of every ``pilotlight COMMAND ...`` in a text."""
    for match in _RUNS.finditer(_INNER.sub("X", text.replace("\\\n", " "))):
        yield _words(match[1])


def told(page: Path) -> Iterator[list[str]]:
    """The words of every ``pilotlight COMMAND ...`` that a page's prose names between backticks."""
    text = re.sub(r"\n +", " ", _FENCE.sub("", page.read_text("utf-8")))
    for match in _INLINE.finditer(text.replace("\n", " ")):
        yield _words(match[1].removeprefix("pilotlight").partition(" | ")[0])


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # What stands between quotes goes on beyond.
        return text.split()
