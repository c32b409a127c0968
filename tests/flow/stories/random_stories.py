"""Random stories of a cluster: hours with jobs, people, notices, faults, deaths and late workers, drawn by a seed.

What a story comes to is told line by line: what each look did, the alerts, what happened in the world; and at the end
of a minute a digest of all words, figures and records that changed. So whatever a flow does otherwise shows as another
line. All of it in full, with the folder ``tests/flow``, this one, ``tests/stand_ins`` and ``shared`` in PYTHONPATH:
``python tests/flow/stories/random_stories.py 7``.
"""

import hashlib
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import msgspec
from stage import MINUTE, START, Stage
from state_tables import minutes
from story_happenings import HAPPENINGS
from story_homes import AT_HOMES
from story_lines import BEGIN, alert_line, lines_of
from story_ports import Cloud, Cluster, Died, Fate, Store

from pilotlight.decide.money import budget_balance as moves
from pilotlight.errors import PilotlightError
from pilotlight.facts.messages import Alert, Tick
from pilotlight.facts.money.money_policy import ApproveOver, Budget, BudgetScope, Caps, LadderStep, Limits
from pilotlight.facts.place.homes import BIRTH_TAINT
from pilotlight.facts.policy import ClassPolicy, PoolPolicy, RenewPolicy, SparePolicy
from pilotlight.facts.workload import PodDemand
from pilotlight.flow.answer import Answer
from pilotlight.flow.billing.billing_tick import billing
from pilotlight.flow.interruption.drain_all import go_on
from pilotlight.flow.records import flight_log
from pilotlight.units import HOUR
from pilotlight.world.faults import Faults

Rules = dict[str, Any]
PLAIN = 30
"""So many seeds tell of pools whose nodes are open to all; in those after them, most nodes take their own pods only."""


class Story(Stage):
    """A stage on which whatever a seed says happens, and what is told of it; ``whole``: with each record's lines."""

    def __init__(self, seed: int, *, whole: bool = False) -> None:
        self.draw, self.whole = Random(seed), whole
        self.lines = [f"seed {seed}"]
        self._ids: dict[str, str] = {}
        self._told = self._logged = self._count = 0
        self._stood: Counter[str] = Counter()
        self._shown: dict[str, tuple[int, list[str]]] = {}
        self._said = ""
        self._fine: list[str] = []
        self._was_fine: list[str] = []
        self.fate = Fate()
        rules = _rules(self.draw)
        self.happenings = HAPPENINGS
        spread: Rules = {}
        if seed >= PLAIN:
            self.happenings = HAPPENINGS | AT_HOMES
            rules |= _with_homes(self.draw, rules["pools"])
            spread = {
                name: self.draw.choice((0.0, 20.0, 90.0)) for name in ("registered_s", "join_spread_s", "untaint_s")
            }
        faults = Faults(
            boot_s=self.draw.choice((60.0, 180.0, 500.0)),
            shortage=self.draw.choice((0.0, 0.0, 0.3)),
            quota_nodes=self.draw.choice((None, None, 3)),
            notice_s=120.0,
            replace_lost=self.draw.random() < 0.3,
            bind_s=self.draw.choice((0.0, 0.0, 3.0)),
            checkpoint_s=600.0,
            **spread,
        )
        super().__init__(faults=faults, boot_s=faults.boot_s or 0, **rules)
        self.world.advance((BEGIN - START).total_seconds())
        self.store = Store(self.world.clock, self.fate)
        self.cloud = Cloud(self.world, self.fate, self.say)
        self.cloud.silent = self.draw.random() < 0.25
        self.deps = replace(self.deps, cluster=Cluster(self.world, self.fate), pools=self.cloud, state=self.store)
        self.backups = [self.store.backup()]
        likely = self.draw.sample(sorted(self.happenings), 8)
        self.weights = [1.0 if name in likely else 0.1 for name in sorted(self.happenings)]
        self.known: list[PodDemand] = []

    def say(self, line: str) -> None:
        """One more line; the names of decisions in it in short."""
        self.lines.append(self._short(line))

    def _short(self, line: str) -> str:
        return re.sub(r"\d{14}-[0-9a-f]{8}", lambda m: self._ids.setdefault(m[0], f"D{len(self._ids)}"), line)

    def play(self, hours: int) -> list[str]:
        """The story: so many hours with happenings, and one in which it settles down."""
        for minute in range(60 * hours):
            for _ in range(self.draw.choice((0, 1, 1, 2)) if minute % 2 == 0 else 0):
                self._happen(self.draw.choices(sorted(self.happenings), self.weights)[0])
            if minute % 20 == 0:
                self._happen("job")
            self._minute(minute)
        self.say("it settles down")
        self.cloud.lost.clear()
        self.world._errors.clear()
        for minute in range(60):
            self._minute(minute)
        cost, runs = self.world.cost(), self.world
        self.say(f"${cost:.4f}, {runs.launches} launches, {len(runs.finished)} jobs, {runs.interruptions} interrupted")
        return self.lines

    def _happen(self, name: str) -> None:
        self.fate.plan(0, Fate.nothing)
        self.say(f"{self._clock()} {name}")
        self.happenings[name](self)

    def _minute(self, minute: int) -> None:
        self.wait(MINUTE)
        self.look("tick", self.tick)
        if minute % 4 == 1:
            self.look("rescue", lambda: go_on(self.deps))
        if minute % 30 == 29:
            self.look("billing", lambda: billing(self.deps, Tick(cluster="c", what="billing")))
        self.tell()

    def look(self, name: str, look: Callable[[], Answer]) -> None:
        """One look and its answer, or what kept it from ending."""
        try:
            answer = look()
        except Died:
            said = "died"
        except PilotlightError as error:
            said = type(error).__name__
            self._fine.append(f"{name} {error}")
        else:
            said = " ".join([answer.outcome, *answer.did])
            self._fine.append(f"{name} {answer.why}; again {minutes(answer.look_again_at, BEGIN)}")
        self.fate.plan(0, Fate.nothing)
        said = f"{name}: {said}"
        if said != self._said:
            self.say(f"{self._clock()} {said}")
        self._said = said

    def _clock(self) -> str:
        return minutes(self.world.clock.now(), BEGIN)

    def tell(self) -> None:
        """What happened since: in the world, to people, and in the records."""
        for record in self.log[self._logged :]:
            rest = " ".join(f"{value}" for name, value in record.items() if name not in ("t", "placement"))
            self.say(f"  world {(record['t'] - (BEGIN - START).total_seconds()) / 60:g}: {rest}")
        self._logged = len(self.log)
        for message in self.outbox.sent[self._told :]:
            if message.topic == "alerts":
                alert = msgspec.json.decode(message.data, type=Alert)
                self.say(f"  alert {alert.kind} {alert.severity}{' over' if alert.resolved else ''} {alert.subject}")
                if alert.kind != "audit-anchor":  # It tells a digest of records, in which sets have no order.
                    self._fine.append(alert_line(alert))
        self._told = len(self.outbox.sent)
        standing = self._standing()
        self._fine += [f"now {line}" for line in sorted((standing - self._stood).elements())]
        self._fine += [f"no more {line}" for line in sorted((self._stood - standing).elements())]
        fine = list(map(self._short, self._fine))
        if self.whole:
            self.lines += [f"  {line}" for line in fine]
        elif fine != self._was_fine:
            self.lines[-1] += f" #{hashlib.blake2b(repr(fine).encode(), digest_size=2).hexdigest()}"
        self._stood, self._fine, self._was_fine = standing, [], fine

    def _standing(self) -> Counter[str]:
        """Lines of all records; those of one that is as it was are made once."""
        out = Counter[str]()
        for key, entry in self.store._entries.items():
            version, lines = self._shown.get(key, (0, list[str]()))
            if version != entry.stored.version:
                lines = lines_of(key, entry.stored.value)
                self._shown[key] = entry.stored.version, lines
            out.update(lines)
        out.update(f"home {name}: {node.home}" for name, node in self.world.nodes.items() if node.home)
        waits = (pod for job in self.world.pending.values() for pod in job.demands if pod.homes)
        out.update(f"home of {pod.uid}: {' '.join(pod.homes)}" for pod in waits)
        return out


def _rules(draw: Random) -> Rules:
    """A policy: its pools, classes, budgets and brakes."""
    pools: Rules = {"one": PoolPolicy(instance_type="one", max=draw.choice((2, 4, 20)))}
    if draw.random() < 0.6:
        pools["eight"] = PoolPolicy(instance_type="eight", max=4, atomic=draw.random() < 0.3)
    kinds: tuple[Any, ...] = ("on-demand",)
    if draw.random() < 0.6:
        pools["spot"] = PoolPolicy(instance_type="one", capacity_type="spot", max=4)
        kinds = draw.choice((("on-demand", "spot"), ("spot",)))
    if draw.random() < 0.2:
        pools["one"] = msgspec.structs.replace(pools["one"], mode=draw.choice(("advise", "scale-up", "observe")))
    if draw.random() < 0.2:
        pools = {
            n: msgspec.structs.replace(p, renew=RenewPolicy(max_age=draw.choice((1800.0, 5400.0))))
            for n, p in pools.items()
        }
    if draw.random() < 0.2:
        pools["one"] = msgspec.structs.replace(
            pools["one"], min=draw.randint(0, 1), spares=SparePolicy(warm=draw.randint(0, 1))
        )
    stops = draw.random() < 0.6
    either = ClassPolicy(
        gpu_models="any",
        capacity_types=kinds,
        idle_timeout=draw.choice((120.0, 300.0, 900.0)),
        max_runtime=draw.choice((HOUR, 2 * HOUR, None)) if not stops else 2 * HOUR,
        hold=draw.choice((900.0, 1800.0, HOUR)),
        may_move=(*(("hard-cap",) if stops else ()), *draw.choice(((), ("max-age",)))),
    )
    moves = tuple(why for why in either.may_move if why != "hard-cap")
    keeps = msgspec.structs.replace(either, may_move=moves, capacity_types=("on-demand",), max_runtime=HOUR)
    rules: Rules = {"pools": pools, "classes": {"batch": either, "training": either, "serving": keeps}}
    if draw.random() < 0.75:
        rules["budgets"] = _budgets(draw)
        rules["default_team"] = draw.choice(("", "blue"))
    if draw.random() < 0.3:
        limits = Limits(nodes_added=draw.randint(1, 3), nodes_removed=draw.randint(1, 2))
        rules["caps"] = Caps(ten_minutes=limits)
    if draw.random() < 0.2:
        over = ApproveOver(nodes=draw.randint(0, 2))
        rules["caps"] = msgspec.structs.replace(rules.get("caps", Caps()), approve_over=over)
    if draw.random() < 0.3:
        most: Rules = {"nodes": draw.choice((None, 3)), "gpus": draw.choice((None, 9))}
        rules["caps"] = msgspec.structs.replace(rules.get("caps", Caps()), **most)
    if draw.random() < 0.2:
        rules["placement"] = "taint"
    rules["cooldown"] = draw.choice((0.0, 0.0, 300.0))
    rules["gpu_ready_deadline"] = draw.choice((400.0, 900.0))
    rules["value_of_wait"] = Decimal(draw.choice((0, 3)))
    return rules


def _with_homes(draw: Random, pools: Rules) -> Rules:
    """What differs where most pools are homed."""
    said: Rules = {}
    for name, pool in pools.items():
        own: Rules = {"taints": (BIRTH_TAINT,)} if draw.random() < 0.8 else {}
        own |= {"spares": msgspec.structs.replace(pool.spares, stopped=draw.choice((0, 1, "auto")))}
        own |= {"zones": ("a", "b")} if draw.random() < 0.2 else {}
        own |= {"renew": RenewPolicy(drifted=True, max_age=5400.0)} if draw.random() < 0.1 else {}
        own |= {"idle_timeout": draw.choice((60.0, 600.0))} if draw.random() < 0.3 else {}
        said[name] = msgspec.structs.replace(pool, **own)
    return {"pools": said, "value_of_wait": Decimal(draw.choice((0, 3, 30))), "placement": "homes"}


def _budgets(draw: Random) -> tuple[Budget, ...]:
    ladder = (LadderStep(at=Decimal("0.3"), do="notify"), LadderStep(at=Decimal("0.9"), do="no-new-buys"))
    made = []
    for n in range(draw.choice((1, 1, 2, 3))):
        measure = draw.choice(("usd", "usd", "usd", "gpu_hours", "usd_per_hour"))
        own: Rules = {measure: Decimal(draw.choice((3, 6, 12, 40)))}
        scope: Any = draw.choice(("all", "all", BudgetScope(team="red"), BudgetScope(pool="one")))
        hard, dry = draw.random() < 0.75, draw.random() < 0.5
        zone = draw.choice(("UTC", "UTC", "America/New_York"))
        period: Any = draw.choice(("day", "day", "week"))
        if measure == "usd_per_hour":
            own, period = {"usd": own[measure]}, "hour"
        made.append(
            Budget(
                name=f"b{n}",
                scope=scope,
                period=period,
                hard=hard,
                timezone=zone,
                ladder=ladder,
                ladder_dry_run=dry,
                **own,
            )
        )
    return tuple(made)


def story(seed: int, *, whole: bool = False) -> list[str]:
    """The lines of a seed's story."""
    kept = moves.MOST_HELD, flight_log.MOST_DEMANDS
    try:
        return Story(seed, whole=whole).play(2)
    finally:
        moves.MOST_HELD, flight_log.MOST_DEMANDS = kept


if __name__ == "__main__":
    sys.stdout.write("\n".join(story(int(sys.argv[1]), whole=True)) + "\n")
