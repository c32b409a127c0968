"""One-line mutants of functions: a comparison's boundary, a condition, a term, a constant, a call, made wrong.

Few operators, chosen so that few mutants are the same program. Words, logs, annotations and asserts are left alone;
so is the boundary of a comparison with the moment of a look: clocks tell microseconds, and no dollar and no pod is
decided by two of them that are equal.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

SWAPPED = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "is": "is not", "is not": "is",
    "in": "not in", "not in": "in", "and": "or", "or": "and", "+": "-", "-": "+", "*": "/", "/": "*", "//": "/",
    "min": "max", "max": "min", "any": "all", "all": "any", "True": "False", "False": "True",
}  # fmt: skip
EMPTY = {"bool": "not ({})", "str": '""', "list": "[]", "tuple": "()", "dict": "{{}}", "set": "set()"}
OPERATORS = re.compile(r"is not|not in|is|in|and|or|<=|>=|==|!=|//|[<>*/+-]")
ORDERED = ast.Lt | ast.LtE | ast.Gt | ast.GtE
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


class Mutant(NamedTuple):
    """A change of one place, from byte ``begin`` to ``end`` of a file, in a function (the outermost) by its name."""

    file: str
    function: str
    operator: str
    line: int
    begin: int
    end: int
    new: str
    text: str
    """The line as it is, without its indentation."""

    @property
    def place(self) -> str:
        """Name that outlives a move: module, function and the line itself."""
        return f"{self.file}:{self.function}:{self.text}"

    def applied(self, source: bytes) -> bytes:
        """The file with this change; no line moves."""
        return source[: self.begin] + self.new.encode() + source[self.end :]

    def line_in(self, source: bytes) -> str:
        """The line with this change."""
        return self.applied(source).splitlines()[self.line - 1].decode().strip()


class Module:
    """A file's functions and what could be wrong in each."""

    def __init__(self, file: str, root: Path) -> None:
        self.file, self.source = file, (root / file).read_bytes()
        self.tree = ast.parse(self.source)
        self.lines = self.source.splitlines(keepends=True)

    @cached_property
    def starts(self) -> list[int]:
        """The byte that each line begins with."""
        out = [0]
        for line in self.lines:
            out.append(out[-1] + len(line))
        return out

    def functions(self, tree: ast.Module | None = None) -> Iterator[tuple[str, FUNCTIONS]]:
        """Outermost functions and methods, by their qualified names; of another ``tree`` of the same source."""

        def within(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, FUNCTIONS]]:
            for node in body:
                if isinstance(node, FUNCTIONS):
                    yield prefix + node.name, node
                elif isinstance(node, ast.ClassDef):
                    yield from within(node.body, f"{prefix}{node.name}.")

        yield from within((tree or self.tree).body, "")

    def mutants(self) -> Iterator[Mutant]:
        """Every mutant. A few do not compile."""
        for name, function in self.functions():
            for node, begin, end, new, operator in _Changes(self, function).all():
                line = node.lineno + self.source[:begin].count(b"\n", self.starts[node.lineno - 1])
                text = self.lines[line - 1].decode().strip()
                yield Mutant(self.file, name, operator, line, begin, end, new, text)


Change = tuple[ast.expr | ast.stmt, int, int, str, str]


class _Changes:
    def __init__(self, module: Module, function: FUNCTIONS) -> None:
        self.module, self.function = module, function
        self.names = {arg.arg for arg in ast.walk(function.args) if isinstance(arg, ast.arg)}

    def all(self) -> Iterator[Change]:
        for statement in self.function.body:
            yield from self._of(statement, nested=False, returns=self.function.returns)

    def _of(self, node: ast.AST, *, nested: bool, returns: ast.expr | None) -> Iterator[Change]:
        if isinstance(node, ast.keyword) and node.arg == "strict":  # Of a zip: it asserts, like an assert.
            return
        if isinstance(node, ast.JoinedStr | ast.Assert | ast.Raise) or (isinstance(node, ast.Expr) and _says(node)):
            if isinstance(node, ast.Raise) and nested:
                yield self._whole(node, "pass", "not raised")
            return
        if isinstance(node, FUNCTIONS | ast.Lambda):
            inner: Sequence[ast.AST] = node.body if isinstance(node.body, list) else [node.body]
            for child in inner:
                yield from self._of(child, nested=False, returns=getattr(node, "returns", None))
            return
        yield from self._here(node, nested, returns)
        deeper = isinstance(node, ast.If | ast.For | ast.While | ast.Try | ast.With | ast.match_case)
        skipped = node.annotation if isinstance(node, ast.AnnAssign) else None
        for child in ast.iter_child_nodes(node):
            if child is not skipped:
                yield from self._of(child, nested=nested or deeper, returns=returns)

    def _here(self, node: ast.AST, nested: bool, returns: ast.expr | None) -> Iterator[Change]:
        match node:
            case ast.Compare():
                for left, op, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                    if not (isinstance(op, ORDERED) and (_is_now(left) or _is_now(right))):
                        yield from self._between(node, left, right, "comparison")
            case ast.BoolOp():
                for left, right in zip(node.values, node.values[1:], strict=False):
                    yield from self._between(node, left, right, "and, or")
                    yield node, self._begin(left), self._begin(right), "", "dropped term"
                yield node, self._end(node.values[-2]), self._end(node.values[-1]), "", "dropped term"
            case ast.BinOp() if not any(map(_is_words, (node.left, node.right))):
                yield from self._between(node, node.left, node.right, "arithmetic")
                if isinstance(node.op, ast.Add | ast.Sub):
                    yield node, self._end(node.left), self._end(node.right), "", "dropped term"
            case ast.UnaryOp(op=ast.Not()):
                yield node, self._begin(node), self._begin(node.operand), "", "dropped not"
            case ast.Constant(value=bool() | int() | float()):
                yield self._whole(node, _other(node.value), "constant")  # type: ignore[arg-type]
            case ast.Call(func=ast.Name(id="min" | "max" | "any" | "all") as named):
                yield self._whole(named, SWAPPED[named.id], "min, max")
            case ast.If() | ast.While() | ast.IfExp():
                yield from self._negated(node.test)
            case ast.comprehension():
                yield from (change for test in node.ifs for change in self._negated(test))
            case ast.Return(value=value):
                if nested and not self._ends_alike(node):
                    yield self._whole(node, "pass", "no return")
                if value is not None and (new := self._returned(value, returns)):
                    yield self._whole(value, new, "returned")
            case ast.Expr() | ast.AugAssign() | ast.Continue() | ast.Break():
                yield self._whole(node, "pass", "dropped")
            case ast.Assign(targets=[target]):
                again = isinstance(target, ast.Name) and target.id in self.names
                if again or isinstance(target, ast.Attribute | ast.Subscript):
                    yield self._whole(node, "pass", "dropped")
                self.names |= {target.id} if isinstance(target, ast.Name) else set()

    def _ends_alike(self, node: ast.Return) -> bool:
        """True where nothing comes after it, and what it returns is as false as nothing."""
        said = node.value.value if isinstance(node.value, ast.Constant) else node.value
        return not said and node.end_lineno == self.function.end_lineno

    def _negated(self, test: ast.expr) -> Iterator[Change]:
        """Not where another operator makes the same of it."""
        if isinstance(test, ast.UnaryOp) or (isinstance(test, ast.Compare) and not isinstance(test.ops[0], ORDERED)):
            return
        begin, end = self._begin(test), self._end(test)
        yield test, begin, end, f"not ({self.module.source[begin:end].decode()})", "negated"

    def _returned(self, value: ast.expr, returns: ast.expr | None) -> str:
        said = ast.unparse(returns) if returns is not None else ""
        if said.endswith("| None"):
            return "" if isinstance(value, ast.Constant) else "None"
        new = EMPTY.get(said.partition("[")[0], "")
        source = self.module.source[self._begin(value) : self._end(value)].decode()
        return "" if isinstance(value, ast.Constant) or new == source else new.format(source)

    def _between(self, node: ast.expr, left: ast.expr, right: ast.expr, operator: str) -> Iterator[Change]:
        begin, end = self._end(left), self._begin(right)
        found = OPERATORS.search(self.module.source[begin:end].decode())
        if found and found[0] in SWAPPED:
            yield node, begin + found.start(), begin + found.end(), SWAPPED[found[0]], operator

    def _whole(self, node: ast.expr | ast.stmt, new: str, operator: str) -> Change:
        """As many lines as before."""
        begin, end = self._begin(node), self._end(node)
        more = self.module.source[begin:end].count(b"\n")
        return node, begin, end, new + "\n" * more, operator

    def _begin(self, node: ast.expr | ast.stmt) -> int:
        return self.module.starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.module.starts[node.end_lineno - 1] + node.end_col_offset


def _says(node: ast.Expr) -> bool:
    """A docstring, or a line of a log."""
    called = ast.unparse(node.value)
    return isinstance(node.value, ast.Constant) or called.startswith(("log.", "_log.", "logger.", "LOGGER."))


def _is_now(node: ast.expr) -> bool:
    """The moment of a look, by itself."""
    return "now" in (getattr(node, "id", ""), getattr(node, "attr", ""))


def _is_words(node: ast.expr) -> bool:
    literal = ast.List | ast.Tuple | ast.Set | ast.Dict | ast.JoinedStr
    return isinstance(node, literal) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _other(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return str(not value)
    return str(value + 1 if isinstance(value, int) else 2 * value or 1.0)


def named(module: Module, function: str, old: str, new: str) -> Mutant:
    """The mutant that a table names: ``old`` is in the source of the function once, and ``new`` takes its place."""
    node = dict(module.functions()).get(function)
    assert node is not None, f"{module.file} has no {function}: plant it where it would be now"
    assert node.end_lineno is not None
    first, last = module.starts[node.lineno - 1], module.starts[node.end_lineno]
    found = module.source.count(old.encode(), first, last)
    assert found == 1, f"{module.file}:{function} has {old!r} {found} times: plant it where it would be now"
    begin = module.source.index(old.encode(), first, last)
    line = module.source.count(b"\n", 0, begin) + 1
    text = module.lines[line - 1].decode().strip()
    return Mutant(module.file, function, "named", line, begin, begin + len(old.encode()), new, text)
