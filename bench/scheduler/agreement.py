"""Where the plan and the real scheduler differ: hard pod shapes on a real API server, planned for, bought and bound.

``KUBECONFIG=... python bench/scheduler/agreement.py`` makes each shape in a namespace of its own, asks for the plan as
``pilotlight plan`` does, makes the nodes as they would be bought (predicted allocatable, labels, taints, zone), and
looks where the scheduler binds. A node that stays without a pod of the shape, a pod that was told it has a place and
stays unbound, and a pod that was refused and would bind on a node that can be bought are disagreements. It takes away
what it made. ``--only WORDS`` takes the shapes whose name has these words; ``--json`` prints all of it.
"""

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from copy import deepcopy
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from agreement_bed import CATALOG, MARK, Bed, Object, bed, offered
from agreement_claims import slices_of
from agreement_objects import Shape
from agreement_shapes import every
from pilotlight.errors import PilotlightError

PLACED = ("fits", "booting", "bought")
UNTOLD = ("claim-unknown", "claim-selector")
"""Findings that say that it cannot be told whether a node would do."""
CODE = re.compile(r"[a-z]+(-[a-z]+)*")
ABREAST = 6
"""So many shapes are tried at a time: each has nodes of its own, and most of the time is the scheduler's."""
ROUNDS = 3
"""So often the plan is asked again: what one purchase makes possible, the next may buy."""


class Result(NamedTuple):
    """Outcome of one shape. ``costs`` are nodes bought for nothing, or refused though they would do."""

    family: str
    name: str
    pods: int
    bought: int
    bound: int
    refused: str
    costs: tuple[str, ...]


def main(words: Sequence[str] | None = None) -> int:
    """Try the shapes; 1 where a disagreement costs a node."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--json", action="store_true", help="all results as JSON")
    options.add_argument("--only", default="", help="shapes whose family and name contain this")
    options.add_argument("--markdown", action="store_true", help="the table of docs/agreement.md")
    asked = options.parse_args(words)
    kubeconfig = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    if not kubeconfig:
        print(
            "agreement: KUBECONFIG names no API server: point it at a cluster that may be written to", file=sys.stderr
        )
        return 2
    chosen = [(n, s) for n, s in enumerate(every()) if asked.only in f"{s.family}: {s.name}"]
    found: dict[int, Result | None] = {}
    with ProcessPoolExecutor(ABREAST, mp_context=get_context("spawn")) as crowd:
        running = {crowd.submit(tried, n, kubeconfig): n for n, shape in chosen if not shape.alone}
        for future in as_completed(running):
            found[running[future]] = future.result()
            _progress(len(found), len(chosen))
    for n, shape in chosen:
        if shape.alone:
            found[n] = tried(n, kubeconfig)
            _progress(len(found), len(chosen))
    results = [result for n, _ in chosen if (result := found[n]) is not None]
    costly = [r for r in results if r.costs]
    if asked.json:
        print(json.dumps([r._asdict() for r in results], indent=1))
    else:
        _table(results, markdown=asked.markdown)
        print(f"\n{len(results)} shapes, {len(costly)} disagreements that cost a node")
    return 1 if costly else 0


def _progress(done: int, of: int) -> None:
    print(f"\r\033[K{done} of {of} shapes tried" if done < of else "\r\033[K", end="", file=sys.stderr, flush=True)


def tried(n: int, kubeconfig: str) -> Result | None:
    """Outcome of the shape of this number; None where it could not be made."""
    shape = every()[n]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "catalog.yaml").write_text(CATALOG)
        try:
            with bed(kubeconfig, f"{os.getpid()}-{n}", Path(folder)) as made:
                return _try(shape, made)
        except PilotlightError as problem:
            print(f"\n{shape.family}: {shape.name}: not tried: {problem}", file=sys.stderr)
            return None


def _try(shape: Shape, made: Bed) -> Result:
    path, policy = made.policy(shape.pools)
    for found in shape.there:
        _put(made, _named(found, made))
    made.claims_bound()
    names = [pod["metadata"]["name"] for pod in shape.pods]
    publish = slices_of if shape.claims else None
    for pod in shape.pods:
        waiting = _named(pod, made)
        waiting["spec"].setdefault("nodeSelector", {})[MARK] = made.name
        made.make(waiting)
    made.looked_at(names)
    time.sleep(0.7)
    told: dict[str, str] = {}
    bought: list[str] = []
    for _ in range(ROUNDS):
        plan = made.plan(path)
        told |= _told(plan, made.space)
        new = [(buy["offering"], buy["count"]) for buy in plan["buys"]]
        sold = offered(policy)
        bought += [made.buy(sold[name], policy, publish) for name, count in new for _ in range(count)]
        where = made.settled([name for name in names if told.get(name, "").startswith(PLACED)])
        if not new:
            break
    costs = _costs(names, told, where, bought)
    refused = sorted({words for name in names if not (words := told.get(name, "nothing")).startswith(PLACED)})
    if not costs and any(not where.get(name) for name in names):
        costs = _would_have(names, told, made, policy, publish)
    bound = sum(1 for name in names if where.get(name))
    return Result(shape.family, shape.name, len(names), len(bought), bound, "; ".join(refused), tuple(costs))


def _named(found: Object, made: Bed) -> Object:
    """The object with what it cannot know before: the shape's namespace, and names that are the bed's own."""
    text = (
        json.dumps(deepcopy(found))
        .replace('"agreement-', f'"agr{made.name}-')
        .replace("kubernetes.io/agreement-", f"kubernetes.io/agr{made.name}-")
        .replace('"SPACE"', f'"{made.space}"')
        .replace('"SHAPE"', f'"{made.name}"')
    )
    named: Object = json.loads(text)
    return named


def _put(made: Bed, found: Object) -> None:
    if found["kind"] == "Node":
        meta: Any = found["metadata"]
        made.node(meta["name"], meta["labels"], found["room"], found["taints"])
    else:
        if found["kind"] == "DaemonSet":
            found["spec"]["template"]["spec"].setdefault("nodeSelector", {})[MARK] = made.name
        made.make(found)


def _told(plan: Object, space: str) -> dict[str, str]:
    """The plan's word on each pod of a namespace: a verdict, or a finding's code and words."""
    told = {}
    for finding in plan["findings"]:
        if finding["subject"].startswith(f"{space}/"):
            told[finding["subject"].partition("/")[2]] = f"{finding['code']}: {finding['message']}"
    for group in plan["pods"]:
        for name in group["pods"]:
            if name.startswith(f"{space}/") and name.partition("/")[2] not in told:
                told[name.partition("/")[2]] = f"{group['verdict']} {group['code']}: {group['why']}"
    return told


def _costs(names: Sequence[str], told: dict[str, str], where: dict[str, str], bought: Sequence[str]) -> list[str]:
    costs = [f"{node} was bought and no pod is bound to it" for node in bought if node not in where.values()]
    for name in names:
        placed = told.get(name, "").startswith(PLACED)
        if placed and not where.get(name):
            costs.append(f"{name} has a place ({told[name]}) and is not bound")
    return costs


def _would_have(names: Sequence[str], told: dict[str, str], made: Bed, policy: Any, publish: Any) -> list[str]:
    """Pods that were refused and bind after all, with a node of everything that could be bought."""
    before = made.bound_pods()
    for offering in offered(policy).values():
        made.buy(offering, policy, publish)
    where = made.settled(names, 5.0)
    names = [name for name in names if not told.get(name, "").startswith(UNTOLD)]
    return [
        f"{name} was refused and binds to {where[name]}" for name in names if where.get(name) and not before.get(name)
    ]


def _table(results: Sequence[Result], *, markdown: bool) -> None:
    """A row a shape; in markdown a refusal is said by its codes."""
    if markdown:
        print("| shape | pods | nodes bought | bound | told of the others |\n|---|--:|--:|--:|---|")
    for r in results:
        name, told = f"{r.family}: {r.name}", f"DISAGREES: {'; '.join(r.costs)}" if r.costs else r.refused
        if markdown:
            said = (words.partition(": ") for words in r.refused.split("; "))
            codes = sorted({code for code, colon, _ in said if colon and CODE.fullmatch(code)})
            print(f"| {name} | {r.pods} | {r.bought} | {r.bound} | {told if r.costs else ', '.join(codes)} |")
        else:
            print(f"{name:62} {r.pods:3} pods {r.bought:3} bought {r.bound:3} bound  {told[:110]}")


if __name__ == "__main__":
    sys.exit(main())
