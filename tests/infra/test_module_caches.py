"""Caches belong to the look that made them: a process keeps only those of this list, each with its reason."""

import ast
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "shared" / "pilotlight"

ALLOWED = {
    # Pure functions of small values, bounded, keyed by the values themselves.
    "codec/kubernetes/pods/requests.py:known_quantity": "a quantity's text, of which a cluster has few",
    "codec/kubernetes/pods/pods.py:image_name": "an image's text, the same for many pods of a look",
    "codec/kubernetes/pods/requests.py:_requests_of": "what pods that ask alike ask for, up to 1,024 such",
    "codec/kubernetes/nodes/node_room.py:_alike": "what nodes of one type offer, up to 1,024 such",
    "codec/kubernetes/nodes/gpu_models.py:gpu_model": "a product's name, of which a cluster has few",
    "facts/workload.py:is_gpu": "the name of a resource, read for every pod and node",
    "decide/demand/classify.py:_by_name": "the beginning of what a template's pods run, which takes long to read",
    "decide/fit/cel.py:_compiled": "a selector's text, which takes long to read",
    "decide/job_deadlines/job_deadlines.py:_plan": "five figures of a job, whose table takes long to work out",
    "decide/nodes/spares/spare_nodes.py:_sums": "four figures of an offering",
    "facts/capacity.py:run_kind": "one text for the pods of a kind, however many nodes tell it",
    "tools/replay/cover.py:connected_unions": "a set of whole numbers, asked again and again by a bound",
    "typed_json.py:_work_out": "a type of the source, worked out once",
    "tools/replay/world_jobs.py:_shape": "one shape for the jobs of a trace that are alike",
    # One of the process, or one for each of a few words of the source.
    "adapters/channels/apprise.py:_look_at_connections": "an audit hook is added once and stays",
    "adapters/channels/apprise.py:_watch": "the call of this thread that the hook looks at",
    "adapters/http.py:_tls": "the certificate authorities of this machine",
    "adapters/prometheus_api.py:_google": "the token of this process, with or without a file",
    "adapters/queues/pubsub.py:_token": "the token of this process, with or without a file",
    "codec/kubernetes/pages.py:_KNOWN": "a decoder for each kind of object that the source names",
    "decide/fit/fit.py:NOBODY": "no rules, so nothing is ever counted in it",
    "tools/serve/live/live_page.py:page": "files of the package",
    "tools/glance/gpu_rows.py:parts": "a field of a row, not of the module",
    "tools/lint/policy_keys.py:_comments": "comments of types of the source",
    "tools/cli/terminal.py:teach_rich": "done once in a process",
    "wiring.py:_deployed": "the app of this process",
}
"""By file and name, and the reason why it may outlive a look."""

ALLOWED_CLASSES = {"Format": "the last records read of a table, so many: a record is known again by its bytes"}
"""Classes with an object in each of many modules."""

WRAPPERS = {"cache", "lru_cache"}
CONTAINERS = {"dict", "list", "set", "defaultdict", "Counter", "OrderedDict", "deque", "WeakValueDictionary", "WeakSet"}
CHANGES = {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"}
WRITTEN = ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp


def called(node: ast.AST | None) -> str:
    """Name of a class or function that is called or stands as a decorator, without its types."""
    match node:
        case ast.Call(func=inner) | ast.Subscript(value=inner):
            return called(inner)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def assigned(body: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """Names, and attributes of self, that statements assign to, with their values."""
    for node in body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield ast.unparse(target), node.value


def changed(body: Iterable[ast.AST]) -> Iterator[str]:
    """What statements put something in, or take something from, up to its first key."""
    for node in (inner for outer in body for inner in ast.walk(outer)):
        match node:
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
                yield ast.unparse(value).partition("[")[0]
            case ast.Call(func=ast.Attribute(value=value, attr=change)) if change in CHANGES:
                yield ast.unparse(value).partition("[")[0]


def is_container(value: ast.AST) -> bool:
    """True for a dict, list or set, written out or made by a call."""
    return isinstance(value, WRITTEN) or (isinstance(value, ast.Call) and called(value) in CONTAINERS)


def keepers(tree: ast.AST) -> Iterator[str]:
    """Classes whose objects have a container that their methods change, or differ by thread."""
    for one in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        made = {name for name, value in assigned(ast.walk(one)) if name.startswith("self.") and is_container(value)}
        later = [each for each in one.body if getattr(each, "name", "") != "__init__"]
        if made & set(changed(later)) or any(called(base) == "local" for base in one.bases):
            yield one.name


def caches(source: str, known: Collection[str] | None = None) -> Iterator[str]:
    """Names of a module, and of its classes, that keep answers between calls. ``known`` are classes that keep some."""
    tree = ast.parse(source)
    keeping, filled = WRAPPERS.union(keepers(tree) if known is None else known), set(changed([tree]))
    scopes: list[ast.Module | ast.ClassDef] = [tree, *(node for node in tree.body if isinstance(node, ast.ClassDef))]
    for scope in scopes:
        for node in scope.body:
            if WRAPPERS.intersection(map(called, getattr(node, "decorator_list", ()))):
                yield str(getattr(node, "name", ""))
        for name, value in assigned(scope.body):
            calls = {called(inner) for inner in ast.walk(value) if isinstance(inner, ast.Call)}
            if calls & keeping or (is_container(value) and filled & {name, f"cls.{name}", f"self.{name}"}):
                yield name
    for inner in ast.walk(tree):
        if isinstance(inner, ast.Global):
            yield from inner.names


KEEPER = """
class Memo:
    def __init__(self):
        self.x: dict[int, int] = {}
    def f(self):
        self.x[1] = 2
"""

PLANTED = {
    "a cached function": "@cache\ndef found(x): ...",
    "a bounded one": "@functools.lru_cache(maxsize=9)\ndef found(x): ...",
    "a cached method": "class A:\n    @lru_cache\n    def found(self): ...",
    "a wrapped function": "found = lru_cache(maxsize=9)(slow)",
    "a dict that a function fills": "found = {}\ndef f(x):\n    found[id(x)] = x",
    "a typed dict that a function asks": "found: dict[int, str] = {}\ndef f(x):\n    return found.setdefault(x, '')",
    "a dict in a dict": "found = {'a': {}}\ndef f(x):\n    found['a'][x] = x",
    "a dict of a class": "class A:\n    found = {}\n    def f(self, x):\n        self.found[x] = x",
    "a weak dict": "found = WeakValueDictionary()\ndef f(x):\n    found[1] = x",
    "an object that keeps answers": f"{KEEPER}found = Memo()",
    "one with types": f"{KEEPER}found: Memo[int] = Memo[int]()",
    "a thread's own": "class A(local):\n    x = 1\nfound = A()",
    "a name that a function sets": "def f(x):\n    global found\n    found = x",
}


@pytest.mark.parametrize("source", PLANTED.values(), ids=PLANTED)
def test_every_kind_of_cache_is_seen(source: str) -> None:
    """A planted one is found by its name."""
    assert list(caches(source)) == ["found"]


def test_tables_and_caches_of_an_object_are_none() -> None:
    """A table that nobody changes, a property that its object keeps, and a dict of a call pass."""
    table = "TABLE = {'a': 1}\nX = TABLE['a']\ndef f():\n    own = {}\n    own['a'] = 1\n    return own"
    kept = "class A:\n    x: dict = {}\n    @cached_property\n    def b(self): ..."
    assert [*caches(table), *caches(kept), *caches(KEEPER)] == []


def test_a_process_keeps_only_what_is_listed() -> None:
    """Every cache of a module is on the list, and everything on the list is there."""
    sources = {path: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}
    known = frozenset(name for source in sources.values() for name in keepers(ast.parse(source)))
    assert known >= ALLOWED_CLASSES.keys()
    keeps = known - ALLOWED_CLASSES.keys()
    found = {
        f"{path.relative_to(PACKAGE)}:{name}" for path, source in sources.items() for name in caches(source, keeps)
    }
    assert found == ALLOWED.keys()
