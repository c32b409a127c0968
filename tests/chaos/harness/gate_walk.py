"""A gate over a Karpenter that overshoots: one kind of fault a walk, as its seed chooses, among everyday events.

Sources of the faults: kubernetes-sigs/karpenter, ``pkg/controllers/state`` (what is marked for deletion is uncounted,
an initialised node counts what it shows, a claim what it says), ``disruption`` (replacements run beside),
``nodeclaim/expiration``; claims of a NodePool go with it by their owner references; Kubernetes, "Server-Side Apply".
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from api_server import ApiServer, Asked, api_server
from api_store import Json
from gated_site import GATED, NODE, GatedSite
from karpenter import GPU

from harness.judges.gate_judge import GateJudge
from pilotlight.errors import PilotlightError
from pilotlight.facts.limits.brakes import Pause
from pilotlight.facts.money.money_policy import Budget
from pilotlight.facts.policy import PoolPolicy
from pilotlight.state_schema.cluster_records import PAUSE

FAULTS = (
    "drains uncounted",
    "drift",
    "consolidation",
    "expiry",
    "shows no GPU",
    "GitOps",
    "made anew",
    "stale read",
    "409",
    "lost answer",
    "planned before",
    "says fewer",
)
STEPS = 40
MOST = 99
"""More machines than any walk has dollars for: a pool that is refused opens none."""
LIMITS = "PATCH .*/nodepools/gpu"


@dataclass
class CachedApi(ApiServer):
    """An API server that may answer lists of claims as they were."""

    old: Json | None = None

    def answer(self, asked: Asked) -> tuple[int, Json]:
        """A stale list, while one is set."""
        if self.old is not None and asked.method == "GET" and asked.path.endswith("/nodeclaims"):
            return 200, self.old
        return super().answer(asked)

    def claims_now(self) -> Json:
        """The list as it is."""
        path = "/apis/karpenter.sh/v1/nodeclaims"
        return super().answer(Asked(method="GET", path=path, query={}, body=b"", headers={}))[1]


@dataclass
class GateWalk:
    """One walk. ``judge`` has an account of its own; ``found`` is what it saw."""

    server: CachedApi
    seed: int
    did: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = Random(f"gate/{self.seed}")
        self.fault = FAULTS[self.seed % len(FAULTS)]
        nodes = self.chance.randint(2, 6)
        pools = {"gpu": GATED, "own": PoolPolicy(instance_type="one", max=60)}
        dollars = nodes * NODE + 5
        budget = Budget(name="all", usd=dollars, period="month")
        self.site = GatedSite(self.server, nodes, pools=pools, budgets=(budget,))
        self.karpenter = self.site.karpenter
        self.judge = GateJudge(dollars)
        self.pods = self.amid = 0
        self.told: set[str] = set()
        self.owner = self.chance.choice(("400", "24"))
        surge = self.chance.choice(("1", "2", "50%")) if self.fault in ("drift", "consolidation") else "0"
        reason = {"drift": "Drifted", "consolidation": "Underutilized"}.get(self.fault, "Empty")
        others = [{"nodes": "0", "reasons": [r]} for r in ("Drifted", "Underutilized") if r != reason]
        mine = {"nodes": surge, "reasons": [reason]}
        self.surge, self.spec = surge, {"disruption": {"budgets": [mine, *others]}}
        self.make()
        self.look()

    def make(self) -> None:
        """The NodePool as its owner writes it."""
        self.karpenter.pool("gpu", "eight", limit=self.owner, spec=self.spec)
        if self.fault == "expiry":
            pool = self.server.store.get("nodepools", "gpu")
            pool["spec"]["template"]["spec"]["expireAfter"] = "10m"
            self.server.store.write(self.server.store.resource("nodepools"), pool)

    def walk(self) -> list[str]:
        """All of it, then calm; what the judge saw."""
        own = {
            "drains uncounted": self.lose,
            "drift": self.replace,
            "consolidation": self.replace,
            "expiry": self.look,
            "shows no GPU": self.blink,
            "GitOps": self.git,
            "made anew": self.anew,
            "stale read": self.stale,
            "409": self.conflicts,
            "lost answer": self.lost,
            "planned before": self.plan,
            "says fewer": self.fewer,
        }[self.fault]
        for _ in range(STEPS):
            does = self.chance.choice((*self.everyday(), own, own))
            does()
            self.expire()
            self.did.append(f"{does.__name__}: {self.karpenter.machines('gpu')} of {self.karpenter.limit('gpu')}")
            self.judge.sees(self.machines(), self.now(), len(self.site.stage.world.nodes), self.did)
        return self.calm()

    def everyday(self) -> tuple[Callable[[], None], ...]:
        """What happens anywhere."""
        return self.buy, self.buy, self.join, self.gone, self.own, self.own, self.look, self.look

    def calm(self) -> list[str]:
        """What drains goes, nothing fails, and looks come: what there are dollars for is open again.

        ``amid`` are the machines launched before.
        """
        self.amid = self.judge.launched
        for _ in self.unmarked() if self.fault == "expiry" else ():
            self.karpenter.drain("gpu")
        for _ in range(4):
            self.retire()
            self.gone()
            self.show(self.karpenter.gpus)
            self.look()
            self.judge.sees(self.machines(), self.now(), len(self.site.stage.world.nodes), self.did)
        limit = int(self.karpenter.limit("gpu") or 0)
        free = (min(limit, 400) - self.karpenter.counts("gpu")) // 8
        most = (int(self.owner) - self.karpenter.counts("gpu")) // 8
        kept_free = 0 if self.surge == "0" else 3
        self.judge.ends(free, most, MOST if self.fault == "says fewer" else kept_free, self.did)
        if self.server.lines("DELETE .*/nodeclaims"):
            self.judge.found.append("a claim of Karpenter's was deleted by us")
        return self.judge.found

    def now(self) -> datetime:
        """By the world's clock."""
        return self.site.stage.world.clock.now()

    def machines(self) -> dict[str, bool]:
        """Machines that the cloud bills, and whether each is a node."""
        claims = self.karpenter.claims("gpu")
        return {claim["metadata"]["name"]: bool(claim["status"].get("nodeName")) for claim in claims}

    def buy(self) -> None:
        """Karpenter has pods for some machines."""
        if self.server.store.has(self.server.store.resource("nodepools"), ("", "gpu")):
            self.karpenter.launch("gpu", self.chance.randint(1, 4))

    def join(self) -> None:
        """Machines become nodes; where GPUs are shared by DRA or MIG they show none."""
        zero = self.fault == "shows no GPU" and self.chance.random() < 0.5
        if zero and any(not claim["status"].get("nodeName") for claim in self.karpenter.claims("gpu")):
            self.judge.opens("a node shows no GPU")
        self.karpenter.register("gpu", shows=0 if zero else None)

    def gone(self) -> None:
        """What drains is gone."""
        self.karpenter.end("gpu")

    def own(self) -> None:
        """A pod comes for the pool that we buy for."""
        self.pods += 1
        self.site.pod(f"p{self.pods}")

    def look(self, *, sees: bool = True) -> None:
        """The schedule ticks; a look that was disturbed closes no gap."""
        with suppress(PilotlightError):
            self.site.tick()
        self.server._faults.clear()
        self.server.old = None
        if sees:
            self.judge.looked()

    def lose(self) -> None:
        """A claim is deleted unforeseen: its machine drains and bills, and Karpenter counts it no more."""
        if self.unmarked():
            self.karpenter.drain("gpu")
            self.judge.lost(1)

    def unmarked(self) -> list[Json]:
        """Claims that Karpenter counts."""
        return [claim for claim in self.karpenter.claims("gpu") if not self.karpenter._marked(claim)]

    def replace(self) -> None:
        """One node is replaced beside others, as far as the NodePool's budget lets it; old ones go in the end."""
        if self.chance.random() < 0.4:
            self.retire()
            return
        claims = [claim for claim in self.karpenter.claims("gpu") if claim["status"].get("nodeName")]
        marked = len(self.karpenter.claims("gpu")) - len(self.unmarked())
        allowed = -(-len(claims) // 2) if self.surge == "50%" else int(self.surge)
        if marked < allowed and self.unmarked() and self.unmarked()[0]["status"].get("nodeName"):
            self.karpenter.replace("gpu")

    def retire(self) -> None:
        """What is marked is deleted."""
        counted = {claim["metadata"]["name"] for claim in self.unmarked()}
        for claim in self.karpenter.claims("gpu"):
            if claim["metadata"]["name"] not in counted and "deletionTimestamp" not in claim["metadata"]:
                claim["metadata"]["deletionTimestamp"] = self.stamp()
                self.server.store.write(self.server.store.resource("nodeclaims"), claim)

    def expire(self) -> None:
        """A claim at its end is deleted at once, and its pods ask for another machine."""
        for claim in self.unmarked() if self.fault == "expiry" else ():
            made = datetime.fromisoformat(claim["metadata"]["creationTimestamp"])
            if self.now() >= made.astimezone(UTC) + timedelta(minutes=10):
                claim["metadata"]["deletionTimestamp"] = self.stamp()
                self.server.store.write(self.server.store.resource("nodeclaims"), claim)
                self.karpenter.launch("gpu")

    def blink(self) -> None:
        """The device plugin of a node starts anew, or shows all again."""
        shows = self.chance.choice((0, self.karpenter.gpus))
        if not shows and any(claim["status"].get("nodeName") for claim in self.karpenter.claims("gpu")):
            self.judge.opens("a node shows no GPU")
        self.show(shows)

    def show(self, gpus: int) -> None:
        """Every node shows so many GPUs."""
        for claim in self.karpenter.claims("gpu"):
            if name := claim["status"].get("nodeName"):
                node = self.server.store.get("nodes", name)
                for part in ("capacity", "allocatable"):
                    node["status"][part] = {**node["status"][part], GPU: str(gpus)}
                self.server.store.write(self.server.store.resource("nodes"), node)

    def git(self) -> None:
        """A tool writes its own value, and Karpenter buys by it before the next look."""
        self.patch({"spec": {"limits": {GPU: "400"}}})
        self.judge.opens("another hand's value stands")

    def anew(self) -> None:
        """The NodePool is deleted, its claims drain, and its owner makes it anew without a note of ours."""
        for claim in self.karpenter.claims("gpu"):
            if "deletionTimestamp" not in claim["metadata"]:
                claim["metadata"]["deletionTimestamp"] = self.stamp()
                self.server.store.write(self.server.store.resource("nodeclaims"), claim)
        self.server.store.drop(self.server.store.resource("nodepools"), ("", "gpu"))
        if self.chance.random() < 0.3:
            self.look(sees=False)
        self.make()
        self.judge.opens("a NodePool was made anew")

    def stale(self) -> None:
        """A look reads claims as they were some moments ago."""
        self.server.old = self.server.claims_now()
        for does in self.chance.choices((self.buy, self.join, self.lose, self.gone), k=2):
            does()
            self.judge.sees(self.machines(), self.now(), len(self.site.stage.world.nodes), self.did)
        self.judge.opens("a look read what was")
        self.look(sees=False)

    def conflicts(self) -> None:
        """The API server answers writes of the limit with 409, some or all of them."""
        times = self.chance.choice((1, 2, 9))
        if self.chance.random() < 0.5:
            self.lose()
        self.server.fail(409, on=LIMITS, times=times)
        self.look(sees=times < 3)

    def lost(self) -> None:
        """The answer to a write of the limit is lost, or its request; some raise it again after a pause, while pods of
        ours wait for the same dollars."""
        if self.chance.random() < 0.5:
            self.lose()
        elif self.chance.random() < 0.3:
            PAUSE.put(self.site.deps.state, "c/gpu", Pause(reason="maintenance", at=self.now()))
            self.look()
            PAUSE.delete(self.site.deps.state, "c/gpu")
            for _ in range(self.chance.randint(1, 40)):
                self.own()
        self.server.fail(self.chance.choice(("cut", "reset", 503)), on=LIMITS, times=9)
        self.look(sees=False)
        self.buy()

    def plan(self) -> None:
        """Karpenter decides on machines by the limit that stands, and makes them after a look."""
        pool, before = self.karpenter, self.machines()
        may = pool.launch("gpu", self.chance.randint(1, 2))
        made = [claim for claim in pool.claims("gpu") if claim["metadata"]["name"] not in before]
        for claim in made:
            self.server.store.remove("nodeclaims", claim["metadata"]["name"])
        if self.chance.random() < 0.5:
            self.lose()
        self.look(sees=False)
        self.judge.lost(may)
        for claim in made:
            self.server.add({**claim, "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim"})

    def fewer(self) -> None:
        """A NodeOverlay says one GPU of what is launched, until that is a node."""
        before = self.machines()
        self.karpenter.gpus, gpus = 1, self.karpenter.gpus
        bought = self.karpenter.launch("gpu", self.chance.randint(1, 9))
        self.karpenter.gpus = gpus
        if bought and not self.told.intersection(before):
            self.judge.opens("claims say fewer GPUs than they have")
        self.told |= self.machines().keys() - before.keys()

    def patch(self, change: dict[str, Any]) -> None:
        """Another hand writes the NodePool."""
        self.server.store.patch(self.server.store.resource("nodepools"), ("", "gpu"), change)

    def stamp(self) -> str:
        """Now, as objects write it."""
        return self.now().strftime("%Y-%m-%dT%H:%M:%SZ")


def walked(seed: int) -> tuple[list[str], GateWalk]:
    """What the judge saw of a seed's walk."""
    with api_server(CachedApi()) as server:
        assert isinstance(server, CachedApi)
        walk = GateWalk(server, seed)
        return walk.walk(), walk
