"""The demo's story: every function at work for an hour and a half of the world, each step waited for and checked."""

import time
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

import msgspec

from pilotlight.errors import Failed
from pilotlight.facts.messages import Alert, InterruptionNotice, PodPending
from pilotlight.facts.money.budgets import Rung, Spent
from pilotlight.facts.utilisation.reclaim_steps import Reclaim
from pilotlight.facts.workload import GpuRequest, PodDemand, shape
from pilotlight.flow.billing import meter_nodes
from pilotlight.flow.billing.billing_tick import budget_standings
from pilotlight.flow.budgets import budget_holds
from pilotlight.state_schema.alert_records import RECLAIM
from pilotlight.tools.advice.money.month import Month, month
from pilotlight.tools.advice.money.month import cents as in_cents
from pilotlight.tools.cli.act import reclaim_by_hand
from pilotlight.tools.demo.demo_stage import Stage
from pilotlight.units import CENT, Seconds, Usd, cents

Found = TypeVar("Found")

POLL_S: Seconds = 0.05
SLACK_S: Seconds = 120.0
"""A busy machine may be so many seconds of the wall's clock late with a step."""

QUIET_S: Seconds = 2.5
"""So long no alert comes after the last: serve hands them on every second."""

MINUTE: Seconds = 60.0
SMALL_RUN_S, LONG_RUN_S = 2 * MINUTE, 52 * MINUTE
NOTEBOOK_RUN_S, BUSY_S, SNOOZE_S = 20 * MINUTE, MINUTE, 3 * MINUTE
NOTICE_S: Seconds = 120.0

EXPECTED = (
    ("capacity-grow", 5),
    ("capacity-release", 5),
    ("reclaim-idle", 1),
    ("reclaim-rested", 1),
    ("budget-spot-only", 1),
    ("interruption", 1),
    ("interruption, over", 1),
    ("finding-budget-hold", 1),
    ("budget-no-new-buys", 1),
    ("refused", 1),
)
"""What people are told in all, by kind."""

BESIDE = ("audit-anchor", "capacity-undone")
"""Kinds that are told beside the story."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A step that came: when in the world, what, in words, and what the cloud had charged by then."""

    at: datetime
    step: str
    text: str
    usd: Usd


class Story:
    """Plays once. ``tell`` hears each step as it comes, ``wait`` is called while nothing does."""

    def __init__(self, stage: Stage, tell: Callable[[Line], None], wait: Callable[["Story"], None]) -> None:
        self.stage, self._tell, self._wait = stage, tell, wait
        self.lines: list[Line] = []
        self._counted: int | None = None

    @property
    def told(self) -> list[Alert]:
        """Alerts that people were told of, up to those that the last step counts."""
        return self.stage.told[: self._counted]

    def play(self) -> None:
        """All of it. Raises ``Failed``, which names the step that did not come."""
        self._small_job()
        self._long_job()
        self._notice()
        self._refused()
        self._out()
        self._adds_up()
        self._told_once()

    def budget_spent(self) -> Spent:
        """Where the story's budget stands."""
        (found,) = budget_standings(self.stage.app.deps, self.stage.app.clock.now())
        return found

    def rung(self) -> Rung | None:
        """Its ladder's step."""
        return budget_holds.read_ladder(self.stage.app.state, "local")[0].rungs.get("research")

    def report(self) -> Month:
        """The report of the world's month, from the state alone."""
        state, today = self.stage.app.state, self.stage.app.clock.now().date()
        first = today.replace(day=1)
        return month(meter_nodes.days(state, "local", first, today), (), first, today)

    def _small_job(self) -> None:
        """One pod comes and goes: one node up, one down, and people hear of each once."""
        self._pod("vision", "thumbnails", SMALL_RUN_S)
        node = self._runs("vision/thumbnails")
        self._expect("idle", lambda: not self._on(node), SMALL_RUN_S + MINUTE, lambda _: f"nothing runs on {node}")
        self._released(node, 4 * MINUTE)
        self._expect("told", lambda: len(self._alerts()) >= 2, 2 * MINUTE, lambda _: "one up, one down, two alerts")
        kinds = self._alerts()
        if kinds != ["capacity-grow", "capacity-release"]:
            raise Failed(f"one pod that comes and goes is two alerts, not {', '.join(kinds)}")

    def _long_job(self) -> None:
        self._pod("research", "finetune", LONG_RUN_S, saves_s=20.0)
        self._runs("research/finetune")
        self._notebook()
        self._alert("warned", "budget-spot-only", 45 * MINUTE)

    def _notebook(self) -> None:
        """Beside it a notebook that nobody works with is noticed, snoozed, suspended, and woken."""
        self._pod("studio", "ada", NOTEBOOK_RUN_S, busy_s=BUSY_S)
        node = self._runs("studio/ada")
        self._alert("noticed", "reclaim-idle", 10 * MINUTE)
        (entry,) = RECLAIM.scan(self.stage.app.state, "local/")
        until = reclaim_by_hand.snooze(self.stage.app.deps, entry, SNOOZE_S, "ada")
        self._add("snoozed", f"ada keeps {entry.value.owner} until {until:%H:%M:%S}")
        alert = self._alert("suspended", "reclaim-rested", SNOOZE_S + 4 * MINUTE)
        if alert.at is None or alert.at < until:
            raise Failed(f"{entry.value.owner} was put to rest before its snooze was over")
        self._released(node, 4 * MINUTE)
        self._expect("rests", self._rests, MINUTE, lambda one: f"{one.owner} had {one.count}: that is kept")
        (entry,) = RECLAIM.scan(self.stage.app.state, "local/")
        count = reclaim_by_hand.wake(self.stage.app.deps, entry, "ada")
        self._add("woken", f"ada wakes {entry.value.owner} to {count}")
        node = self._runs("studio/ada")
        self._expect("idle", lambda: not self._on(node), NOTEBOOK_RUN_S, lambda _: f"nothing runs on {node}")
        self._released(node, 4 * MINUTE)

    def _rests(self) -> Reclaim | None:
        found = (entry.value for entry in RECLAIM.scan(self.stage.app.state, "local/"))
        return next((one for one in found if one.stage == "resting"), None)

    def _notice(self) -> None:
        """The cloud says that it takes the node: what it does, and that a replacement was asked for first."""
        node = self._node_of("research/finetune")
        launches = self.stage.world.report().launches
        doomed = self.stage.world.interrupt(node, NOTICE_S)
        now = self.stage.app.clock.now()
        notice = InterruptionNotice(
            cluster="local", instance=node, kind="spot-interruption", cloud="world", at=now, deadline=doomed.deadline
        )
        self.stage.post("spot_interruption", notice, f"demo-{node}")
        self._alert("notice", "interruption", 2 * MINUTE)
        self._expect(
            "replaced",
            lambda: self.stage.world.report().launches > launches,
            NOTICE_S,
            lambda _: f"another node boots, asked for before {node} is drained",
        )
        self._released(node, NOTICE_S)
        self._drained_in_order(node)
        again = self._runs("research/finetune")
        if again == node:
            raise Failed(f"research/finetune runs on {node} again, which the cloud takes")

    def _drained_in_order(self, node: str) -> None:
        """From the world's own log: launch, then eviction, then release, and nothing that the cloud had to take."""
        log = list(self.stage.log)
        asked = max(r["t"] for r in log if r["event"] == "launch")
        evicted = max(r["t"] for r in log if r["event"] == "stop")
        (ended,) = (r for r in log if r["event"] == "terminate" and r["node"] == node)
        if not asked <= evicted <= ended["t"] or ended["reason"] == "reclaimed":
            raise Failed(f"{node} was drained before its replacement was asked for, or not in time")

    def _refused(self) -> None:
        self._alert("spent", "budget-no-new-buys", 25 * MINUTE)
        launches = self.stage.world.report().launches
        answer = self._post_pod("research", "sweep", SMALL_RUN_S)
        alert = self._expect("refused", lambda: self._heard("refused"), 3 * MINUTE, lambda a: f"{a.what}: {a.why}")
        if "$" not in alert.why or self.stage.world.report().launches != launches:
            raise Failed(f"research/sweep was to be refused with a figure: {answer['why']}")

    def _out(self) -> None:
        node = self._node_of("research/finetune")
        left_s = LONG_RUN_S - 30 * MINUTE
        self._expect("idle", lambda: not self._on(node), left_s, lambda _: f"nothing runs on {node}")
        self._released(node, 4 * MINUTE)

    def _adds_up(self) -> None:
        """Teams, idle and shared are the whole; the whole is what the cloud charged, to a cent a node."""
        self._expect("metered", self._all_metered, 4 * MINUTE, self._sum)
        found = self.report()
        teams = sum((team.held.usd for team in found.teams), Decimal(0))
        if cents(teams + found.idle.usd + found.shared.usd) != cents(found.total.usd):
            raise Failed(f"{teams} + {found.idle.usd} + {found.shared.usd} is not {found.total.usd}")

    def _all_metered(self) -> bool:
        """The meter knows the end of each node, and has what the cloud charged.

        An end is known when the call's answer is back. At 60 times the wall's speed 0.4 s of a busy machine are a cent.
        """
        report, state, today = self.stage.world.report(), self.stage.app.state, self.stage.app.clock.now().date()
        over = [node for node in meter_nodes.nodes(state, "local", today).values() if node.gone_at is not None]
        apart = abs(self.report().total.usd - report.cost_usd)
        return not report.nodes and len(over) == report.launches and apart < CENT * report.launches

    def _sum(self, _: bool) -> str:
        found = self.report()
        used, idle, shared = found.split
        held = in_cents([team.held.usd for team in found.teams], used)
        parts = [f"{team.name} {cents(usd)}" for team, usd in zip(found.teams, held, strict=True)]
        parts += [f"idle {cents(idle)}", f"shared {cents(shared)}"]
        charged = self.stage.world.report().cost_usd
        return f"{' + '.join(parts)} = {cents(used + idle + shared)}; the cloud charged {cents(charged)}"

    def _told_once(self) -> None:
        """Exactly the alerts that were expected, none of them twice: also not a while later."""
        count, quiet = sum(often for _, often in EXPECTED), time.monotonic() + QUIET_S
        self._expect(
            "told",
            lambda: len(self._alerts()) >= count and time.monotonic() > quiet,
            2 * MINUTE,
            lambda _: self._count(count),
        )
        kinds = self._alerts()
        found = tuple((kind, kinds.count(kind)) for kind, _ in EXPECTED)
        strange = sorted(set(kinds) - {kind for kind, _ in EXPECTED})
        if found != EXPECTED or strange:
            raise Failed(f"not the alerts that were expected: {', '.join(kinds)}")

    def _count(self, of_story: int) -> str:
        """All alerts, with those that are not of the story: as many as there are rows."""
        self._counted = len(self.stage.told)
        beside = sorted({alert.kind for alert in self.told if alert.kind in BESIDE})
        more = f", and {self._counted - of_story} beside it ({', '.join(beside)})" if beside else ""
        return f"{self._counted} alerts: {of_story} of the story, each once{more}"

    def _alerts(self) -> list[str]:
        """Kinds of the alerts that people were told of the story.

        Not of it are the audit chain's anchor, which comes every day, and a call that was not sent because this machine
        stood still for two seconds: it is made again.
        """
        told = (alert.kind + (", over" if alert.resolved else "") for alert in self.told)
        return [kind for kind in told if kind not in BESIDE]

    def _pod(
        self, team: str, name: str, run_s: Seconds, *, saves_s: Seconds = 0.0, busy_s: Seconds | None = None
    ) -> None:
        """A pod that waits, its event, and the node that is bought."""
        launches = self.stage.world.report().launches
        answer = self._post_pod(team, name, run_s, saves_s=saves_s, busy_s=busy_s)
        why = answer["why"]
        self._expect("bought", lambda: self.stage.world.report().launches == launches + 1, MINUTE, lambda _: why)

    def _post_pod(
        self, team: str, name: str, run_s: Seconds, *, saves_s: Seconds = 0.0, busy_s: Seconds | None = None
    ) -> dict[str, Any]:
        """With ``busy_s`` it is a notebook, whose GPU does something for so long."""
        now = self.stage.app.clock.now()
        notebook = busy_s is not None
        kept = {"workload_class": "notebook", "checkpoint_s": MINUTE} if notebook else {"workload_class": "batch"}
        wants = shape(gpu=GpuRequest(count=1), team=team, **kept)
        pod = PodDemand(
            uid=f"u-{name}", namespace=team, name=name, shape=wants, created_at=now, checkpoint_takes_s=saves_s
        )
        self.stage.world.create([pod], run_s, busy_s)
        self._add("pending", f"{pod.full_name} waits for a GPU")
        event = PodPending(cluster="local", namespace=team, name=name, uid=pod.uid, at=now)
        return self.stage.post("pod_pending", event, f"demo-{name}")

    def _runs(self, pod: str) -> str:
        """Where a pod runs, once it does."""
        return self._expect("runs", lambda: self._node_of(pod), 4 * MINUTE, lambda node: f"{pod} runs on {node}")

    def _released(self, node: str, within_s: Seconds) -> None:
        self._expect("released", lambda: self._ended(node), within_s, lambda _: f"{node} is given back")

    def _ended(self, node: str) -> bool:
        return any(r["event"] == "terminate" and r["node"] == node for r in list(self.stage.log))

    def _alert(self, step: str, kind: str, within_s: Seconds) -> Alert:
        return self._expect(step, lambda: self._heard(kind), within_s, lambda a: f"{a.what}; next: {a.next}")

    def _heard(self, kind: str) -> Alert | None:
        return next((alert for alert in list(self.stage.told) if alert.kind == kind), None)

    def _node_of(self, pod: str) -> str:
        """The node that a pod, or what came in its place, runs on; empty while it waits."""
        return next((p.node for p in self.stage.world.pods() if p.name.startswith(pod) and p.state == "running"), "")

    def _on(self, node: str) -> bool:
        return any(pod.node == node and pod.state == "running" for pod in self.stage.world.pods())

    def _expect(
        self, step: str, look: Callable[[], Found | None], within_s: Seconds, say: Callable[[Found], str]
    ) -> Found:
        """Wait for a step, and tell it. Raises ``Failed`` where it does not come within its time."""
        until = time.monotonic() + within_s / self.stage.speed + SLACK_S
        while not (found := look()):
            if self.stage.over:
                raise Failed(f"serve ended before the step {step!r}")
            if time.monotonic() > until:
                raise Failed(f"the step {step!r} did not come within {within_s / MINUTE:g} minutes of the world")
            self._wait(self)
            time.sleep(POLL_S)
        self._add(step, say(found))
        return found

    def _add(self, step: str, text: str) -> None:
        report = self.stage.world.report()
        line = Line(at=report.now, step=step, text=text, usd=report.cost_usd)
        self.lines.append(line)
        self._tell(line)
