"""Random shapes against the real scheduler: pods, nodes, claims and rules, drawn by hypothesis, many at a time.

``KUBECONFIG=... python bench/scheduler/agreement_random.py --count 1000`` draws shapes (``agreement_drawn.py``), plans
for each of them alone, makes the nodes as they would be bought, and looks where the scheduler binds. What a
disagreement is stands in ``agreement.py``. Each is shrunk: parts of its shape are left out, one after the other, as
long as it stays one. ``--case JSON`` tries one shape again; ``--batch`` is how many are tried at a time.
``AGREEMENT_THROWAWAY=1`` is for a cluster that goes afterwards: only what binds is taken away between batches.
``--homes`` gives each bought node the home of its pods, as Pilotlight in act does; without it nodes are open to all.

Fifty shapes at a time keep the cluster busy: a DaemonSet's pod may come to a node after the plan has read it. A pod
that was refused, and bound after such a pod came, is asked again alone (``agreement_races.py``). A shape that agrees
each time is told as a race of the cluster and is no disagreement; all else counts.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec

sys.path.insert(0, str(Path(__file__).parent))

from agreement import PLACED, UNTOLD, _costs, _named, _put
from agreement_bed import ANY, CATALOG, MARK, POOLS, Bed, api_of, offered
from agreement_claims import slices_of
from agreement_drawn import Case, drawn, shape_of, smaller
from agreement_objects import ZONE
from agreement_races import ALONE, Seen, is_race, late_daemons, refused_alone
from pilotlight.adapters.cluster.kubernetes.reads import Found, Reads
from pilotlight.codec.kubernetes.view import view_of
from pilotlight.codec.policy_file import read_policy
from pilotlight.decide.demand.classify import classify
from pilotlight.decide.plan import plan_cluster
from pilotlight.decide.work import Look
from pilotlight.errors import PilotlightError, Unavailable
from pilotlight.facts.decisions import Plan
from pilotlight.facts.memory import Memory
from pilotlight.facts.place.homes import BIRTH_TAINT, home_id
from pilotlight.facts.policy import Policy

T = TypeVar("T")
ROUNDS, ABREAST = 3, 8
SPEEDS = {name: {"T4": 1.0, "A100": 1.0} for name in ("training", "serving", "batch")}
"""Any model will do: where the scheduler binds is the question, not what a team would wait for."""
STILL_S, LONGEST_S = 12.0, 45.0
THROWAWAY = bool(os.environ.get("AGREEMENT_THROWAWAY"))
"""The cluster is thrown away afterwards: little is taken away between batches."""
FIRST_ALONE = 1_000_000
"""Number of the first shape that is asked again alone: namespaces stay, so no name comes twice."""
SHRINKS = 12
"""So many steps a disagreement is shrunk by at most."""


class Part(Bed):
    """A shape's part of a cluster that is thrown away: what goes again is pods, DaemonSets and nodes."""

    def _daemons_there(self, node: str) -> None:
        zone = next(found["metadata"]["labels"].get(ZONE) for path, found in self.made if path.endswith(f"/{node}"))
        sets = (found["spec"]["template"]["spec"] for _, found in self.made if found["kind"] == "DaemonSet")
        if any(spec.get("nodeSelector", {}).get(ZONE, zone) == zone for spec in sets):
            super()._daemons_there(node)

    def clear(self) -> None:
        """Take away what binds, and what is bound to."""
        sets = any(found["kind"] == "DaemonSet" for _, found in self.made)
        where = f"{{}}/namespaces/{self.space}/{{}}"
        for path in (where.format("/apis/apps/v1", "daemonsets"), where.format("/api/v1", "pods"))[not sets :]:
            self._delete(path)
        for path, found in self.made:
            if found["kind"] in ("Node", "ResourceSlice"):
                self._delete(path)


class Trial:
    """One drawn shape on the cluster."""

    def __init__(self, case: Case, kubeconfig: str, name: str, folder: Path, *, homes: bool = False) -> None:
        self.case, self.shape, self.homes = case, shape_of(case), homes
        self.bed = (Part if THROWAWAY else Bed)(api_of(kubeconfig), kubeconfig, name, folder)
        self.names = [pod["metadata"]["name"] for pod in self.shape.pods]
        self.publish = slices_of if self.shape.claims else None
        self.told: dict[str, str] = {}
        self.bought: list[str] = []
        self.where: dict[str, str] = {}
        self.costs: list[str] = []
        self.late: list[str] = []
        self.seen = Seen(frozenset(), frozenset())
        self.pods: dict[str, Any] = {}
        self.policy: Policy
        self.new = True

    def begin(self) -> None:
        """Make its objects, and its pods last."""
        self.bed.make({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.bed.space}})
        born = [msgspec.to_builtins(BIRTH_TAINT)] if self.homes else []
        pools = {name: {**pool, "taints": [*pool.get("taints", []), *born]} for name, pool in self.shape.pools.items()}
        _, self.policy = self.bed.policy(pools)
        for found in self.shape.there:
            _put(self.bed, _named(found, self.bed))
        self.bed.claims_bound()
        for pod in self.shape.pods:
            waiting = _named(pod, self.bed)
            waiting["spec"].setdefault("nodeSelector", {})[MARK] = self.bed.name
            self.bed.make(waiting)

    def plan(self, found: Found) -> None:
        """Buy what a plan of its pods alone would."""
        pods = [p for p in found.pods if p.metadata.namespace == self.bed.space]
        now = datetime.now(UTC)
        own = [node for node in found.nodes if node.metadata.labels.get(MARK) == self.bed.name]
        bound = frozenset(pod.metadata.uid for pod in pods if pod.spec.node_name)
        self.seen = Seen(frozenset(node.metadata.name for node in own), bound)
        view = view_of(pods, own, found.objects, policy=self.policy, classify=classify, now=now)
        sold = offered(self.policy)
        plan = plan_cluster(Look(view, (), tuple(sold.values()), self.policy, Memory(), now, throughput=SPEEDS))
        self.told |= _told(plan, self.bed.space)
        self.new = bool(plan.buys)
        names = {pod.metadata.uid: pod.metadata.name for pod in pods}
        for name in plan.homes.open:
            self.bed.open(name)
        for given in plan.homes.tolerate:
            self.bed.tolerate(given.pod, given.home)
        for step, buy in enumerate(plan.buys):
            round_ = f"{self.bed.name}-{len(self.bought)}"
            for uid, number in zip(buy.demands, buy.homes, strict=False):
                self.bed.tolerate(names[uid], home_id(round_, step, number))
            taken = set(buy.homes)
            self.bought += [
                self.bed.buy(
                    sold[buy.offering], self.policy, self.publish, home_id(round_, step, n) if n in taken else ""
                )
                for n in range(buy.count)
            ]

    @property
    def placed(self) -> list[str]:
        """Pods that were told of a place."""
        return [name for name in self.names if self.told.get(name, "").startswith(PLACED)]

    def judge(self) -> bool:
        """Count the costs; true where refused pods are left to be tried."""
        self.costs = _costs(self.names, self.told, self.where, self.bought)
        return not self.costs and any(not self.where.get(name) for name in self.names)

    def buy_all(self) -> None:
        """One of all that could be bought, for pods that were refused."""
        for offering in offered(self.policy).values():
            self.bed.buy(offering, self.policy, self.publish)

    def judge_refused(self, before: dict[str, str]) -> None:
        """Pods that were refused and bind after all."""
        told = [name for name in self.names if not self.told.get(name, "").startswith(UNTOLD)]
        after_all = [name for name in told if self.where.get(name) and not before.get(name)]
        self.costs += [refused_alone(name, self.told.get(name, "nothing"), self.where[name]) for name in after_all]
        self.late = late_daemons(self.seen, self.pods, after_all)


def _told(plan: Plan, space: str) -> dict[str, str]:
    told = {
        f.subject.partition("/")[2]: f"{f.code}: {f.message}"
        for f in plan.findings
        if f.subject.startswith(f"{space}/")
    }
    for group in plan.pods:
        for name in group.pods:
            if name.startswith(f"{space}/"):
                told.setdefault(name.partition("/")[2], f"{group.verdict} {group.code}: {group.why}")
    return told


def tried(cases: Sequence[Case], kubeconfig: str, first: int, *, homes: bool = False) -> list[Trial]:
    """The cases tried together, each among its own nodes."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(ABREAST) as crowd:
        (Path(folder) / "catalog.yaml").write_text(CATALOG)
        trials = [Trial(case, kubeconfig, f"r{first + n}", Path(folder), homes=homes) for n, case in enumerate(cases)]
        try:
            made = [trial for trial, fine in zip(trials, crowd.map(_made(Trial.begin), trials), strict=True) if fine]
            _looked_at(made)
            reads = Reads(api_of(kubeconfig), read_policy(json.dumps({"version": 1, "pools": POOLS}).encode(), "pools"))
            for _ in range(ROUNDS):
                found, buying = _patiently(reads.look), [trial for trial in made if trial.new]
                list(crowd.map(lambda trial: trial.plan(found), buying))  # noqa: B023 - it is used at once
                if not buying:
                    break
                _settled(made, lambda trial: trial.placed)
            left = [trial for trial in made if trial.judge()]
            before = {id(trial): dict(trial.where) for trial in left}
            list(crowd.map(Trial.buy_all, left))
            _settled(left, lambda trial: trial.names, 6.0)
            for trial in left:
                trial.judge_refused(before[id(trial)])
            return made
        finally:
            list(crowd.map(_made(lambda trial: trial.bed.clear()), trials))


def _made(call: Callable[[T], object]) -> Callable[[T], bool]:
    """A call that tells whether the API server took all of it."""

    def made(one: T) -> bool:
        try:
            call(one)
        except PilotlightError as problem:
            print(f"\nnot tried: {problem}", file=sys.stderr)
            return False
        return True

    return made


def _patiently(call: Callable[[], T]) -> T:
    """The answer of an API server that may be short of time."""
    for _ in range(5):
        with suppress(Unavailable):
            return call()
    return call()


def _pods(trials: Sequence[Trial]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {trial.bed.space: {} for trial in trials}
    for pod in _patiently(lambda: trials[0].bed.api.get("/api/v1/pods", ANY)["items"]) if trials else ():
        if pod["metadata"]["namespace"] in found:
            found[pod["metadata"]["namespace"]][pod["metadata"]["name"]] = pod
    return found


def _looked_at(trials: Sequence[Trial], longest_s: float = 40.0) -> None:
    """Wait until the scheduler has said something of every pod."""
    begun = time.monotonic()
    while time.monotonic() - begun < longest_s:
        pods = [p for of in _pods(trials).values() for p in of.values() if not p["spec"].get("nodeName")]
        if all(any(c["type"] == "PodScheduled" for c in p["status"].get("conditions", ())) for p in pods):
            return
        time.sleep(0.5)


def _settled(trials: Sequence[Trial], of: Callable[[Trial], Sequence[str]], still_s: float = STILL_S) -> None:
    """Wait until these pods are bound, or nothing moves any more."""
    begun = changed = time.monotonic()
    last: object = None
    while time.monotonic() - begun < LONGEST_S and time.monotonic() - changed < still_s:
        pods = _pods(trials)
        for trial in trials:
            trial.pods = pods[trial.bed.space]
            trial.where = {name: p["spec"].get("nodeName", "") for name, p in trial.pods.items()}
        if all(trial.where.get(name) for trial in trials for name in of(trial)):
            break
        if (now := [trial.where for trial in trials]) != last:
            last, changed = now, time.monotonic()
        time.sleep(0.5)


def shrunk(trial: Trial, kubeconfig: str, first: int) -> Trial:
    """The smallest disagreement that leaving out parts of this one leads to."""
    for step in range(SHRINKS):
        candidates = smaller(trial.case)
        found = (
            [one for one in tried(candidates, kubeconfig, first + 100 * step, homes=trial.homes) if one.costs]
            if candidates
            else []
        )
        found = [one for one in found if bool(one.late) == bool(trial.late)]
        if not found:
            break
        trial = min(found, key=lambda one: len(json.dumps(one.case)))
    return trial


def _alone(trial: Trial, kubeconfig: str, first: int, n: int) -> list[Trial]:
    """Its shape once more, with nothing beside it."""
    return tried([trial.case], kubeconfig, FIRST_ALONE + first + n, homes=trial.homes)


def main(words: Sequence[str] | None = None) -> int:
    """Try drawn shapes; 1 where a disagreement costs a node."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=1000, help="shapes drawn")
    options.add_argument("--batch", type=int, default=50, help="shapes tried at a time")
    options.add_argument("--seed", type=int, default=0, help="another seed draws other shapes")
    options.add_argument("--case", default="", help="one shape as JSON, instead of drawn ones")
    options.add_argument("--homes", action="store_true", help="nodes take only the pods that they were bought for")
    options.add_argument("--keep-going", action="store_true", help="shrink nothing")
    asked = options.parse_args(words)
    kubeconfig = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    if not kubeconfig:
        print("agreement_random: KUBECONFIG names no API server: point it at one that may be filled", file=sys.stderr)
        return 2
    cases: list[Case] = [json.loads(asked.case)] if asked.case else drawn(asked.count, asked.seed)
    apart: list[Trial] = []
    counts = {"shapes": 0, "pods": 0, "bought": 0, "bound": 0, "refused": 0}
    for first in range(0, len(cases), asked.batch):
        found = tried(cases[first : first + asked.batch], kubeconfig, first, homes=asked.homes)
        apart += [trial for trial in found if trial.costs]
        counts["shapes"] += len(found)
        counts["pods"] += sum(len(trial.names) for trial in found)
        counts["bought"] += sum(len(trial.bought) for trial in found)
        counts["bound"] += sum(1 for trial in found for name in trial.placed if trial.where.get(name))
        counts["refused"] += sum(len(trial.names) - len(trial.placed) for trial in found)
        for trial in (one for one in found if one.costs):
            print(json.dumps({"costs": trial.costs, "case": trial.case}), flush=True)
        print(f"{counts}, {len(apart)} apart", file=sys.stderr, flush=True)
    races = [trial for n, trial in enumerate(apart) if is_race(trial, partial(_alone, trial, kubeconfig, ALONE * n))]
    apart = [trial for trial in apart if trial not in races]
    for trial in races:
        print(json.dumps({"race": trial.costs, "late": trial.late, "case": trial.case}), flush=True)
    for n, trial in enumerate(() if asked.keep_going else apart):
        least = shrunk(trial, kubeconfig, 10_000 + 2_000 * n)
        print(json.dumps({"shrunk": least.costs, "case": least.case}), flush=True)
    drew = f"{counts['shapes']} shapes drawn with seed {asked.seed}"
    late = f"{len(races)} that a DaemonSet's late pod let bind and that agree alone"
    print(f"{drew}, {len(apart)} disagreements that cost a node, {late}: {counts}")
    return 1 if apart else 0


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
