"""Finds code that decides by what a sentence says: comparisons and searches of why, note, summary and what was done."""

import ast
from collections.abc import Iterator

NAMES = frozenset({"why", "note", "summary", "did"})
"""Names that hold words for people, as attributes or by themselves."""
ATTRIBUTES = NAMES | {"message"}
"""A ``message`` by itself is an event of ours; one of something else is words."""
ASKS = frozenset({"startswith", "endswith", "find", "index", "count"})
SEARCHES = frozenset({"match", "search", "fullmatch", "findall", "finditer"})
_KEEPS = frozenset(
    {"str", "repr", "tuple", "list", "set", "frozenset", "sorted", "reversed", "iter", "next", "filter", "enumerate"}
)
_COMPARES = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn)


def offences(source: str) -> list[tuple[int, str]]:
    """The lines that decide by words, with the code."""
    tree = ast.parse(source)
    found = {(node.lineno, ast.unparse(node)) for scope in _scopes(tree) for node in _decided(scope)}
    return sorted(found)


def _scopes(tree: ast.Module) -> Iterator[ast.AST]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    yield ast.Module(body=[each for each in tree.body if not isinstance(each, functions)], type_ignores=[])
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _decided(scope: ast.AST) -> Iterator[ast.expr]:
    bound = _bound(scope)
    for node in ast.walk(scope):
        if isinstance(node, ast.Compare) and any(isinstance(op, _COMPARES) for op in node.ops):
            if any(_is_text(side, bound) for side in (node.left, *node.comparators)):
                yield node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asked = node.func.attr in ASKS and _is_text(node.func.value, bound)
            sought = node.func.attr in SEARCHES and any(_is_text(each, bound) for each in (node.func.value, *node.args))
            looked_up = node.func.attr == "get" and any(_is_text(each, bound) for each in node.args[:1])
            if asked or sought or looked_up:
                yield node
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_text(node.slice, bound):
            yield node
        elif isinstance(node, ast.Match) and _is_text(node.subject, bound):
            yield node.subject
        elif isinstance(node, ast.MatchClass):
            yield from (
                part.value
                for attr, part in zip(node.kwd_attrs, node.kwd_patterns, strict=True)
                if attr in ATTRIBUTES and isinstance(part, ast.MatchValue)
            )


def _bound(scope: ast.AST) -> frozenset[str]:
    """Local names that hold such words, or some of them."""
    names: frozenset[str] = frozenset()
    while True:
        more = names | {name for node in ast.walk(scope) for name in _binds(node, names)}
        if more == names:
            return names
        names = frozenset(more)


def _binds(node: ast.AST, bound: frozenset[str]) -> Iterator[str]:
    match node:
        case ast.Assign(targets=targets, value=value) if _is_text(value, bound):
            yield from (name for target in targets for name in _names(target, value, bound))
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if _is_text(value, bound):
            yield name
        case ast.NamedExpr(target=ast.Name(id=name), value=value) if _is_text(value, bound):
            yield name
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value) if _is_text(
            value, bound
        ):
            yield from _names(target, value, bound)


def _names(target: ast.expr, value: ast.expr, bound: frozenset[str]) -> Iterator[str]:
    """The names that take the words; of a tuple only those whose own part is words."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Call):
        parts = target.elts[1:] if isinstance(value.func, ast.Name) else target.elts  # Of an enumerate, not the number.
        yield from (one.id for one in parts if isinstance(one, ast.Name))
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, part in zip(target.elts, value.elts, strict=False):
            if isinstance(one, ast.Name) and _is_text(part, bound):
                yield one.id


def _is_text(node: ast.expr, bound: frozenset[str]) -> bool:
    match node:
        case ast.Attribute(attr=attr):
            return attr in ATTRIBUTES
        case ast.Name(id=name):
            return name in NAMES or name in bound
        case ast.Call(func=ast.Attribute(value=of)) if _is_text(of, bound):
            return True
        case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=attr), *_]):
            return attr in ATTRIBUTES
        case ast.Call(func=ast.Name(id=name), args=args) if name in _KEEPS:
            return any(_is_text(each, bound) for each in args)
        case ast.Call(func=ast.Attribute(attr="join"), args=args):
            return any(_is_text(each, bound) for each in args)
        case ast.Subscript(value=of) | ast.Starred(value=of) | ast.FormattedValue(value=of) | ast.NamedExpr(value=of):
            return _is_text(of, bound)
        case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.JoinedStr(values=parts) | ast.List(elts=parts):
            return any(_is_text(each, bound) for each in parts)
        case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
            return _is_text(left, bound) or _is_text(right, bound)
        case ast.GeneratorExp(elt=elt) | ast.ListComp(elt=elt) | ast.SetComp(elt=elt):
            return _is_text(elt, bound)
    return False
