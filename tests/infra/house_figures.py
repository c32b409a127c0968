"""Figures of the house: sizes, names, first lines, rooms and structs without a word, circles of imports."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "shared" / "pilotlight"
WINGS = (PACKAGE, ROOT / "tests", ROOT / "bench", ROOT / "scripts")

_BARE = """about above after among and as at before begun below beneath beside between beyond both bought bound broken
brought built by chosen done drawn due during each for forgotten found from given gone got grown heard held here
hidden how in into kept known laid left lent lit lost made meant met none of off on onto out over paid per said
seen sent shown since so sold some spent spoken stood taken then there thrown to told torn under understood
until what when where whether which who whose why with within without worn worth written
"""
BARE = frozenset(_BARE.split())
"""Participles and prepositions that say nothing when they stand alone; regular participles are known by their end."""
NOUNS = frozenset(
    {"bed", "embed", "exceed", "feed", "indeed", "need", "proceed", "red", "seed", "shed", "speed", "succeed"}
)

_QUESTION = re.compile(r"(?:What|Whether|Who|How)\b")
_STRUCTS = frozenset({"Struct", "NamedTuple", "TypedDict"})


@dataclass(frozen=True)
class Figure:
    """A measure of the house: its sum, and each thing that adds to it, the worst first."""

    name: str
    total: float
    worst: Sequence[str]

    def shown(self, most: float) -> str:
        """The figure beside its bound, with its worst five."""
        return "\n".join(
            ("", f"{self.name}: {self.total:g} of at most {most:g}", *(f"    {at}" for at in self.worst[:5]))
        )


def name_of(path: Path) -> str:
    """The name of a file or folder from the repository's root."""
    return str(path.relative_to(ROOT))


@cache
def modules() -> dict[Path, ast.Module]:
    """Every file of the package, parsed."""
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def folder_sizes() -> Figure:
    """Python files of the fullest folder."""
    sizes = Counter(path.parent for wing in WINGS for path in wing.rglob("*.py"))
    return Figure("files in a folder", max(sizes.values()), _ranked({name_of(p): n for p, n in sizes.items()}))


def file_lengths() -> Figure:
    """Lines of the package's longest file."""
    lengths = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in modules()}
    return Figure("lines in a file", max(lengths.values()), _ranked(lengths))


def repeated_names() -> Figure:
    """File names that several files of the package bear."""
    borne = Counter(path.name for path in modules() if path.name != "__init__.py")
    twice = {name: n for name, n in borne.items() if n > 1}
    return Figure("file names borne twice", len(twice), _ranked(twice))


def question_lines() -> Figure:
    """Share of docstrings in percent that begin with What, Whether, Who or How."""
    said = [(path, node, ast.get_docstring(node)) for path, tree in modules().items() for node in _documented(tree)]
    asked = Counter(name_of(path.parent) for path, _, text in said if text and _QUESTION.match(text))
    share = 100 * sum(asked.values()) / sum(text is not None for *_, text in said)
    return Figure("first lines that are questions, in %", round(share, 2), _ranked(asked))


def bare_names() -> Figure:
    """Public functions and methods whose name is a participle or a preposition alone; properties are no functions."""
    found = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path, tree in modules().items()
        for body in (tree.body, *(each.body for each in tree.body if isinstance(each, ast.ClassDef)))
        for node in body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _bare(node.name)
        if not any("property" in ast.unparse(each) for each in node.decorator_list)
    ]
    counted = Counter(place.rpartition(" ")[2] for place in found)
    return Figure(
        "functions named by a bare participle", len(found), sorted(found, key=lambda at: -counted[at.split()[-1]])
    )


def silent_rooms() -> Figure:
    """Folders of the package whose ``__init__`` has no paragraph about them."""
    said = {path.parent: ast.get_docstring(tree) or "" for path, tree in modules().items() if path.stem == "__init__"}
    silent = {name_of(room) for room in {path.parent for path in modules()} if len(said.get(room, "").splitlines()) < 3}
    return Figure("rooms without a paragraph", len(silent), sorted(silent))


def undocumented_fields() -> Figure:
    """Fields of structs of more than ten that neither a comment nor a line of text explains."""
    bare = Counter(
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and _is_struct(node) and len(_fields(node)) > 10
        for field in _fields(node)
        if not _explained(field, node, path.read_text("utf-8").splitlines())
    )
    return Figure("fields of large structs that say nothing", sum(bare.values()), _ranked(bare))


def import_circles() -> Figure:
    """Circles of modules that import each other, imports inside functions counted, those for types alone not."""
    graph = grimp.build_graph("pilotlight", exclude_type_checking_imports=True, cache_dir=None)
    edges = {module: graph.find_modules_directly_imported_by(module) for module in sorted(graph.modules)}
    circles: list[str] = []
    while True:
        try:
            TopologicalSorter(edges).prepare()
        except CycleError as found:
            circle: list[str] = found.args[1]
            circles.append(" -> ".join(module.removeprefix("pilotlight.") for module in circle))
            edges[circle[1]] = edges[circle[1]] - {circle[0]}
        else:
            return Figure("circles of imports", len(circles), circles)


def _ranked(sizes: dict[str, int]) -> list[str]:
    return [f"{size} {name}" for name, size in sorted(sizes.items(), key=lambda each: (-each[1], each[0]))]


def _documented(tree: ast.Module) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _bare(name: str) -> bool:
    word = name.rstrip("_")
    return name[0] != "_" and (word in BARE or (word.isalpha() and word.endswith("ed") and word not in NOUNS))


def _is_struct(node: ast.ClassDef) -> bool:
    names = {ast.unparse(each).partition("(")[0].rpartition(".")[2] for each in (*node.bases, *node.decorator_list)}
    return bool(names & {*_STRUCTS, "dataclass"})


def _fields(node: ast.ClassDef) -> list[ast.AnnAssign]:
    return [
        each for each in node.body if isinstance(each, ast.AnnAssign) and "ClassVar" not in ast.unparse(each.annotation)
    ]


def _explained(field: ast.AnnAssign, node: ast.ClassDef, lines: list[str]) -> bool:
    """True where a comment stands over a field or behind it, or a line of text or a comment under it."""
    after = node.body[node.body.index(field) + 1 :][:1]
    text = any(isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in after)
    here = lines[field.lineno - 1 : field.end_lineno]
    return text or any("#" in line for line in here) or lines[field.lineno - 2].lstrip().startswith("#")
