"""Counts what must never happen, from what the world does and from what was recorded and published.

======================  ==============================================================================================
double_buys             a demand bought for again while all that was first bought for it still boots; or more nodes of
                        a pool boot than pods wait that could use them
cap_overruns            a launch that takes nodes, GPUs, dollars an hour or a pool's nodes above the policy's, or what
                        a budget's nodes have cost and will until their work ends above its limit; or a period in
                        which a hard budget's nodes really cost more, by the world's log and to the cent
killed_work             a node given back with a GPU pod on it that had bound before the node was closed, or two seconds
                        before the request was sent
false_evictions         a pod evicted by a notice that was not true, before the last moment at which a true one binds;
                        or stopped for its budgets before its whole run is over, or while they have room
lost_demands            a pod that some pool alone could hold never runs, though faults have stopped
leaked_holds            something still held when all is quiet: a node, capacity in flight, dollars, an open record;
                        or a budget charged otherwise than its nodes cost
late_jobs               a job with a deadline that ended after it, though on-demand could hold it and no budget ran out
stuck_gangs             a gang that never runs, or nodes bought for a part of one
lost_messages           a recorded message in no outbox, or a pool changed otherwise than the messages tell
doubled_effects         one fact under two ids, or one id with two contents: a consumer that drops repeats errs
miscounted_dollars      a node metered otherwise than it cost, or a day that says otherwise than its nodes
ladder_slips            a budget that stands higher or lower than is spent, goes back in its period, or is told twice
lost_alerts             an alert that was sent, and that neither the channel showed nor a dead letter names; or its end
doubled_alerts          an alert shown twice, though who told it first had its answer and lived to write that down
double_replacements     the same for pods whose node was taken, or will be
overlong_cordons        a node that takes no pods though nothing is done to it, or for longer than a cordon may last
internal_errors         an answer 500
ignored_people          a call sent some seconds after a person paused its pool; a node given back within the hour after
                        a person opened it; two decisions that bought by one approval
crossed_clusters        a record, a message, an alert or a call of another cluster than the one that is worked for
untold_lates            a node that came or went by a call that nobody could stop any more, unused and untold
broken_chains           a filed decision that the audit chain does not prove, or one that it proves and that is gone
ignored_refusals        an offering that is asked for at once again, and again, by looks that could see what was refused
======================  ==============================================================================================
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple, get_args

import msgspec

from harness.faults.forgeries import Forgeries
from harness.faults.luck import LEASE_S
from harness.judges.eviction_judge import EvictionJudge
from harness.judges.late_calls import LateCalls
from harness.judges.purchases import Purchases
from harness.judges.spend_invariants import SpendInvariants
from harness.judges.strangers_books import StrangersBooks
from harness.judges.tellings import Tellings
from harness.people import BIND_S, Orders
from pilotlight.decide.interruption.drain_plan import CORDON_S
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.decisions import Record
from pilotlight.facts.messages import TYPES, Alert, CapacityChanged, DeadLetter, Outgoing
from pilotlight.facts.policy import Policy
from pilotlight.units import Seconds
from pilotlight.world.simulation import World
from pilotlight.world.world_events import Change

Kind = Literal[
    "double_buys",
    "cap_overruns",
    "killed_work",
    "false_evictions",
    "lost_demands",
    "leaked_holds",
    "late_jobs",
    "stuck_gangs",
    "lost_messages",
    "doubled_effects",
    "miscounted_dollars",
    "ladder_slips",
    "lost_alerts",
    "doubled_alerts",
    "double_replacements",
    "overlong_cordons",
    "internal_errors",
    "ignored_people",
    "crossed_clusters",
    "untold_lates",
    "broken_chains",
    "ignored_refusals",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

Apart = Literal["late_launches", "late_releases", "late_kills", "late_binds"]
APART: tuple[Apart, ...] = get_args(Apart)
"""Counted, and no violations: what a request did whose worker stood still between its last check and the first byte,
and pods that bound to a node after the last look at it."""

_changed = msgspec.json.Decoder(CapacityChanged)
_alert = msgspec.json.Decoder(Alert)
_NAMES = {kind: name for name, kind in TYPES.items()}
_CHANGED, _ALERT, _LETTER = (_NAMES[kind] for kind in (CapacityChanged, Alert, DeadLetter))


class Violation(NamedTuple):
    """Something that must never happen, and when it did, in seconds of the world."""

    kind: Kind
    t: Seconds
    text: str


MENDED_S: Seconds = 600 + LEASE_S + 60
"""What a dead worker left behind is mended so soon: a mark of ours ends by itself, and the first tick after that may
still find a lease."""


class Invariants:
    """Looks on. Its methods are called by the ports, in the order of the effects; from many threads, one at a time."""

    def __init__(self, world: World, policy: Policy, books: StrangersBooks, cluster: str) -> None:
        self.violations: list[Violation] = []
        self.launched: Counter[str] = Counter()
        self.released: Counter[str] = Counter()
        self.books = books
        self.spend = SpendInvariants(books, policy.budgets)
        self.tellings = Tellings()
        self.late = LateCalls()
        self.forgeries = Forgeries(world, cluster)
        self.evictions = EvictionJudge(world, policy, books, self.forgeries, self.broke)
        self.purchases = Purchases(world, policy, books, self.broke)
        self.orders = Orders(world, self.purchases, self.broke)
        self.owed: Callable[[str], int] = lambda pool: 0
        """What a cloud that took a call for nodes has not launched yet."""
        self.vanished: Callable[[str], int] = lambda pool: 0
        """What it took on and dropped by itself: told as asked for, or seen by nobody."""
        self.on_sent: list[Callable[[Outgoing], None]] = []
        self._world = world
        self._policy = policy
        self._lock = world.lock
        self._outbox: dict[str, Outgoing] = {}
        self._cordons: dict[str, Seconds] = {}
        self._late: dict[str, str] = {}
        self._piecemeal: set[str] = set()
        self.amid = 0
        """Launches before the faults stopped."""
        self.apart: Counter[Apart] = Counter()
        """What requests did that no check could stop any more."""
        world.on_change.append(self._changed)

    def unguarded(self, worker: str, call: str) -> None:
        """A worker stands still after its last check and before the first byte: what that request does comes late."""
        with self._lock:
            self._late[worker] = call

    @contextmanager
    def piecemeal(self, worker: str) -> Iterator[None]:
        """Around a call of a worker that asks for each node by itself: where it comes late, all of it does."""
        with self._lock:
            self._piecemeal.add(worker)
        try:
            yield
        finally:
            with self._lock:
                self._piecemeal.discard(worker)
                self._late.pop(worker, None)

    @contextmanager
    def trying_again(self, worker: str) -> Iterator[None]:
        """Around what a group makes by itself of a worker's earlier request: that comes late."""
        with self._lock:
            on_its_way = self._late.pop(worker, None)
            self._late[worker] = "a group tries again"
            yield
            self._late.pop(worker, None)
            if on_its_way is not None:
                self._late[worker] = on_its_way

    def broke(self, kind: Kind, text: str) -> None:
        """Note a violation."""
        with self._lock:
            self.violations.append(Violation(kind, self._world.now_s, text))

    def wrote(self, worker: str, key: str, value: bytes) -> None:
        """A record was written."""
        with self._lock:
            match key.partition("/")[0]:
                case "open" | "decision":
                    self.purchases.recorded(worker, msgspec.json.decode(value, type=Record))
                case "hold":
                    self.books.wrote(key, value, self._world.now_s)
                    self.evictions.held()
                case "proof":
                    self.tellings.proven(value, self._world.now_s)
                case "ladder":
                    self._all("ladder_slips", self.spend.climbed(value, self._world.now_s))
                case "rescue":
                    self.evictions.rescue(value)

    def failed(self, key: str, value: bytes) -> None:
        """A proof could not be written."""
        with self._lock:
            self.tellings.failed(value)

    def deleted(self, key: str) -> None:
        """A hold was settled, or given back."""
        self.books.deleted(key, self._world.now_s)

    def died(self, worker: str) -> None:
        """A worker died."""
        with self._lock:
            self.tellings.died(worker)

    def observed(self, worker: str, view: ClusterView) -> None:
        """A worker looked at the cluster."""
        with self._lock:
            self.purchases.observed(worker, view.pending)

    @contextmanager
    def launching(self, worker: str, decision: str, pool: str, zone: str) -> Iterator[None]:
        """Around a call of a worker that may launch nodes, for what it had decided last when it made the call."""
        with self._lock:
            before = set(self._world.nodes)
            try:
                yield
            finally:
                nodes = tuple(node for id, node in self._world.nodes.items() if id not in before)
                late = self._late.get(worker, "") if worker in self._piecemeal else self._late.pop(worker, "")
                if nodes and late:
                    self.apart["late_launches"] += len(nodes)
                    self.purchases.came_late(pool, nodes)
                    self.late.came([node.id for node in nodes], self._world.now_s)
                elif late:  # Taken on without a node, as GKE does: nobody knows what was asked for.
                    self.purchases.lost.add(pool)
                elif nodes:
                    self.launched[pool] += len(nodes)
                    self.purchases.launched(worker, decision, pool, zone, nodes)

    def sent(self, worker: str, call: str, pool: str, instance: str = "") -> Seconds:
        """A request that changes a pool is let out; when that is."""
        with self._lock:
            if worker not in self._late:
                self.orders.sent(worker, call, pool, instance, self._world.now_s)
            return self._world.now_s

    def releasing(self, worker: str, pool: str, instance: str, sent_s: Seconds) -> None:
        """Before an instance is given back, by a request that was sent at a second of the world."""
        with self._lock:
            node, late = self._world.nodes.get(instance), self._late.pop(worker, "")
            if node is None or node.pool != pool:
                if late:  # A request that waited for its nodes, as GKE's queue has them: nobody knows that it went.
                    self.purchases.lost.add(pool)
                return
            if late:
                self.apart["late_releases"] += 1
                self.apart["late_kills"] += len(node.jobs)
                self.late.taken(instance, self._world.now_s)
                self.purchases.lost.add(pool)
                return
            self.released[pool] += 1
            seen_s = max(self._cordons.get(instance, sent_s), sent_s - BIND_S)
            known = [id for id, job in node.jobs.items() if job.start_s <= seen_s]
            if known and not node.doomed_s:
                self.broke("killed_work", f"{worker} gave {instance} back, on which {', '.join(known)} runs")
            elif node.jobs and not node.doomed_s:
                self.apart["late_binds"] += len(node.jobs)

    def evicting(self, uid: str) -> None:
        """Before a pod is made to leave."""
        with self._lock:
            self.evictions.evicting(uid)

    def cordoned(self, node: str) -> None:
        """A node takes no pods any more."""
        self._cordons.setdefault(node, self._world.now_s)

    def uncordoned(self, node: str) -> None:
        """A node takes pods again."""
        if node in self._world.nodes and not self._world.nodes[node].cordoned:
            self._cordons.pop(node, None)

    def shown(self, worker: str, alert: Alert) -> None:
        """A channel showed an alert."""
        with self._lock:
            self._all("doubled_alerts", self.tellings.shown(worker, alert, self._world.now_s))

    def unsure(self, alert: Alert) -> None:
        """The connection to a channel broke."""
        with self._lock:
            self.tellings.unsure(alert)

    def published(self, messages: Sequence[Outgoing]) -> None:
        """Messages have arrived."""
        with self._lock:
            for message in messages:
                first = self._outbox.setdefault(message.id, message)
                if first is message:
                    self._all("ladder_slips", self.tellings.sent(message))
                for listener in self.on_sent:
                    listener(message)
                if not _same(first, message):
                    self.broke("doubled_effects", f"message {message.id} was sent with two contents")

    def finish(self) -> None:
        """When all is quiet: what was recorded must be known, and known once."""
        for record in self.purchases.records.values():
            for message in record.messages:
                if message.id not in self._outbox:
                    self.broke(
                        "lost_messages", f"{message.type} {message.id} of a {record.status} record is in no outbox"
                    )
        self._told()
        self._all("lost_alerts", self.tellings.lost())
        records = self.purchases.records.values()
        self._all("untold_lates", self.late.untold(records, set(self._outbox), self.tellings.alerts))
        untold = sorted(self.spend.due - self.tellings.fingerprints)
        self._all("ladder_slips", (f"{step} was reached, and nobody was told" for step in untold))

    def look_around(self, rescued: Container[str]) -> None:
        """After a tick with nobody else at work: what stands, and ought not to. ``rescued`` nodes may be cordoned."""
        self._all("ladder_slips", self.spend.too_low(self._world.now_s))
        for node in self._world.nodes.values():
            since_s = self._cordons.get(node.id, self._world.now_s)
            stays = node.cordoned and not node.doomed_s and not self.books.entries[node.id].frozen
            if stays and self._world.now_s - since_s > (CORDON_S if node.id in rescued else MENDED_S):
                self.broke("overlong_cordons", f"{node.id} takes no pods since {since_s:.1f} s")

    def _all(self, kind: Kind, found: Iterable[str]) -> None:
        for text in found:
            self.broke(kind, text)

    def _changed(self, change: Change) -> None:
        # A node that took a lost one's place is of a pool that is here already.
        if change.what == "lost" and change.subject in self.purchases.ours:
            self.purchases.lost.add(self.purchases.ours[change.subject].pool)

    def _told(self) -> None:
        nodes: dict[tuple[str, str], int] = defaultdict(int)
        for message in self._outbox.values():
            if message.type != _CHANGED:
                continue
            change = _changed.decode(message.data)
            nodes[change.change, change.pool] += change.nodes
            record = self.purchases.records.get(change.decision)
            if record is None or message.id not in {m.id for m in record.messages}:
                self.broke("doubled_effects", f"message {message.id} is of no record: {change.change} {change.pool}")
        for pool in self._policy.pools:
            told, true = nodes["grow", pool] - nodes["release", pool], self.launched[pool] - self.released[pool]
            true += self.owed(pool)
            if not true <= told <= true + self.vanished(pool) and pool not in self.purchases.lost:
                self.broke("lost_messages", f"pool {pool} was changed by {true} nodes, and messages tell of {told}")


def _same(first: Outgoing, again: Outgoing) -> bool:
    """Whether one id has one content. When an alert was raised is no part of what it says, nor why a letter is dead."""
    if (first.type, again.type) == (_LETTER, _LETTER):
        ours, theirs = (msgspec.json.decode(message.data, type=DeadLetter) for message in (first, again))
        return (ours.function, ours.path, ours.body) == (theirs.function, theirs.path, theirs.body)
    if (first.type, again.type) != (_ALERT, _ALERT):
        return (first.type, first.data) == (again.type, again.data)
    alert, other = _alert.decode(first.data), _alert.decode(again.data)
    if alert.kind == "silent":  # Two workers may tell it, each by how long it was until then.
        other = msgspec.structs.replace(other, what=alert.what, why=alert.why)
    return alert == msgspec.structs.replace(other, at=alert.at)
