"""Checks prose that people read: sentences of at most 30 words, the thing first, the field's words, and proselint.

It reads README, the pages of docs/ but ADRs, and every text of several words in the package: errors, reasons, alerts,
help, web pages. Code, addresses and tables stay out, but for the tables of docs/reference. prose_words.yaml lists the
words.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml
from proselint.checks import __register__
from proselint.config import DEFAULT
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

ROOT = Path(__file__).resolve().parents[1]
GUIDES, REFERENCE = "docs/guides/*.md", "docs/reference/*.md"
PAGES = ("README.md", "CONTRIBUTING.md", "SCOPE.md", "SECURITY.md", "docs/*.md", GUIDES, REFERENCE)
WORDS = ROOT / "scripts" / "prose_words.yaml"
LONGEST = 30
SUBJECT = re.compile(r"(What|Whatever|Whoever|Who|Those (that|who|of|which|in)|Whose|Whichever)\b[^?]*$")
END = re.compile(r"(?<=[.!?])[\"')\]*_]*\s+(?=[\"'(\[*_]*[A-Z0-9`~-])")
SPAN = re.compile(r"``.+?``|`[^`]*`|\0")
ITEM = re.compile(r"([-*]|\d+\.) ")
# Five words in a row are told to people, but not markup, a query, a script or a command.
SAID = re.compile(r"(?:[A-Za-z',\0]+[:;]? ){4}[A-Za-z\0]+")
NOT_SAID = re.compile(r"</|/>|\{\{|\bSELECT\b|=>|\$\{|;\n|^kubectl |^[a-z ]*_[a-z_ ]*$")
STYLE, SCRIPT = re.compile(r"<style>.*?</style>", re.S), re.compile(r"<script>.*?</script>", re.S)
BETWEEN, QUOTED = re.compile(r">(?P<text>[^<>]+)<"), re.compile(r"([\"`])(?P<text>(?:(?!\1)[^\n]){20,}?)\1")
# Its typography is not Markdown's; "allocatable" is Kubernetes' own word, "Underutilized" Karpenter's.
LEFT_OUT = ("typography", "spelling.able_atable", "misc.greylist")
CheckRegistry().register_many(__register__)


class Passage(NamedTuple):
    """A paragraph, an item or a text, with the line it begins on."""

    path: str
    line: int
    text: str


class Flaw(NamedTuple):
    """A sentence that a rule refuses."""

    path: str
    line: int
    told: str


class Counted:
    """Words that stand for code, each another, so that two are no doubled word."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, _: re.Match[str]) -> str:
        """The next word."""
        self.count += 1
        return f"Code{self.count}"


def read_page(path: str, text: str) -> Iterator[Passage]:
    """The passages of a Markdown page: paragraphs, items, headings; cells of the last column in docs/reference."""
    lines: list[str] = []
    start, fenced = 1, False
    text = re.sub(r"<!--.*?-->", lambda found: "\n" * found.group().count("\n"), text, flags=re.S)
    for number, line in enumerate([*text.splitlines(), ""], 1):
        bare = line.strip()
        item = ITEM.match(bare)
        if lines and (fenced or item or not bare or bare.startswith(("```", "|", "#", "<", ">"))):
            yield Passage(path, start, _plain(" ".join(lines)))
            lines = []
        if bare.startswith("```"):
            fenced = not fenced
        elif fenced or not bare or bare.startswith("<"):
            continue
        elif bare.startswith("|"):
            if path.startswith("docs/reference/") and not set(bare) <= set("|- "):
                yield Passage(path, number, _plain(bare.strip("|").split("|")[-1].strip()))
        elif bare.startswith("#"):
            yield Passage(path, number, _plain(bare.lstrip("# ")))
        else:
            start = start if lines else number
            lines.append(bare[item.end() :] if item else bare.lstrip("> "))


def read_module(path: str, text: str) -> Iterator[Passage]:
    """The texts of several words in a module: its strings, docstrings left out, a field of an f-string one word."""
    seen: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr):
            seen.add(id(node.value))
        if id(node) in seen:
            continue
        if isinstance(node, ast.JoinedStr):
            seen.update(id(each) for each in ast.walk(node))
            told = "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            told = node.value
        else:
            continue
        if SAID.search(told) and not NOT_SAID.search(told):
            yield from (Passage(path, node.lineno, _plain(part)) for part in re.split(r"\n\s*\n|\n\s*[-*] ", told))


def read_html(path: str, text: str) -> Iterator[Passage]:
    """The texts of several words of a page: between its tags, and the strings of its script."""
    text = STYLE.sub(lambda found: "\n" * found.group().count("\n"), text)
    for script, found in [(False, each) for each in BETWEEN.finditer(SCRIPT.sub(_blank, text))] + [
        (True, each) for part in SCRIPT.finditer(text) for each in QUOTED.finditer(text, part.start(), part.end())
    ]:
        told = re.sub(r"\$\{[^{}]*(\{[^{}]*\}[^{}]*)*\}", "\0", found.group("text"))
        if SAID.search(told) and not (script and NOT_SAID.search(told)):
            yield Passage(path, text.count("\n", 0, found.start()) + 1, _plain(told))


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found.group())


def _plain(text: str) -> str:
    """The text without marks: a span of code, a field or an address is one word."""
    text = SPAN.sub(Counted(), text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\*\*|https?://\S+", "", text)


def flaws(passages: Sequence[Passage], words: Mapping[str, str]) -> Iterator[Flaw]:
    """The faults of the passages by our own rules."""
    refused = {re.compile(rf"\b(?:{word})\b", re.I): instead for word, instead in words.items()}
    for path, line, text in passages:
        for sentence in END.split(" ".join(text.split())):
            count = sum(1 for word in sentence.split() if re.search(r"\w", word))
            shown = f'"{sentence[:70]}{"..." * (len(sentence) > 70)}"'
            if count > LONGEST:
                yield Flaw(path, line, f"{count} words, {LONGEST} at most, one idea a sentence: {shown}")
            if SUBJECT.match(sentence):
                yield Flaw(path, line, f"name the thing first, not what, who or those that: {shown}")
            for word, instead in refused.items():
                if found := word.search(sentence):
                    yield Flaw(path, line, f'"{found.group()}": say {instead}: {shown}')


def linted(path: str, passages: Sequence[Passage]) -> Iterator[Flaw]:
    """The faults that proselint finds in the passages of one file."""
    text = "\n.\n".join(" ".join(passage.text.split()) for passage in passages)
    for result in LintFile(path, text).lint(DEFAULT):
        check = result.check_result
        if not check.check_path.startswith(LEFT_OUT):
            yield Flaw(path, passages[(result.pos[0] - 1) // 2].line, f"{check.check_path}: {check.message}")


READ: Mapping[str, Callable[[str, str], Iterator[Passage]]] = {
    ".md": read_page,
    ".py": read_module,
    ".html": read_html,
}


def listed() -> dict[str, str]:
    """The words to say instead, by the words that our prose does not use."""
    return {each["word"]: f"{each['say']} ({each['why']})" for each in yaml.safe_load(WORDS.read_text("utf-8"))}


def main() -> int:
    """Print every flaw; 1 where there is one."""
    pages = [path for glob in PAGES for path in sorted(ROOT.glob(glob)) if path.name != "rooms.md"]
    own = ROOT / "shared" / "pilotlight"
    paths = [*pages, *sorted(own.rglob("*.py")), *sorted(own.rglob("*.html"))]
    words, found, count = listed(), list[Flaw](), 0
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        if passages := list(READ[path.suffix](name, path.read_text("utf-8"))):
            count += len(passages)
            found += [*flaws(passages, words), *linted(name, passages)]
    for flaw in found:
        print(f"{flaw.path}:{flaw.line}: {flaw.told}")
    print(f"prose: {count:,} passages of {len(paths)} files, {len(found)} flaws")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
