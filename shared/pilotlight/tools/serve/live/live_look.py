"""The look behind the live page, at one cluster: it changes nothing, and reads its newest decisions and its money.

Whoever watches shares the looks of a process: nothing is read while nobody does, and a look that takes long makes the
next one wait longer, so that watching takes at most a tenth of a processor.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pilotlight.decide.money.metering import day_start
from pilotlight.errors import PilotlightError
from pilotlight.facts.capacity import ClusterView
from pilotlight.facts.decisions import Plan, Record
from pilotlight.facts.money.budgets import Meter, Spent
from pilotlight.facts.nodes.pool_state import PoolState
from pilotlight.flow.alerts.wording import did, summary
from pilotlight.flow.billing import meter_nodes
from pilotlight.flow.billing.billing_tick import budget_standings
from pilotlight.flow.budgets import budget_holds
from pilotlight.flow.cycle.planning import preview
from pilotlight.flow.deps import Deps
from pilotlight.flow.records import ledger
from pilotlight.ports.state import Stored
from pilotlight.state_schema.decision_records import DECISION
from pilotlight.state_schema.table import pages
from pilotlight.tools.advice.targets import waits_of_day
from pilotlight.tools.glance.drained_nodes import with_drains
from pilotlight.tools.glance.look_at_cluster import of_plan
from pilotlight.tools.serve.live.live_changes import pauses, spending, tiles, todo, waits
from pilotlight.tools.serve.live.live_day import HALF, HALVES, Moment, moment, strip
from pilotlight.tools.serve.live.live_view import BudgetLine, Decided, Live, Spending
from pilotlight.units import Seconds, clock_seconds

if TYPE_CHECKING:
    from pilotlight.wiring import App

_log = logging.getLogger("pilotlight.page")

EVERY_S: Seconds = 5.0
"""So often, by the cluster's clock, somebody who watches is told what is new."""

LEAST_S: Seconds = 0.5
"""The same by the wall's clock at least, where the cluster's runs faster."""

AT_MOST = 10
"""Looks take at most one part in so many of the time."""

MONEY_S: Seconds = 60.0
"""The meter counts once a minute: money is read no more often."""

DECISIONS = 40
"""So many of the newest decisions are shown."""

WINDOWS = ((8, 87), (6, 7))
"""Where decisions are looked for: the first digits of an id (milliseconds, of 14 digits) that are one window, and how
many windows back from now: a quarter of an hour each for a day, then a day each for a week."""

READ = 3000
"""Of a busier day no more decisions are read: the strip is level before them."""

LINES = 6
"""So many of a decision's lines are shown."""


class Looks:
    """One cluster's looks, each had once and given to all who watch."""

    def __init__(self, site: "App", clusters: Sequence[str], speed: float = 1.0) -> None:
        self._site, self._clusters = site, tuple(clusters)
        self.every_s = max(LEAST_S, EVERY_S / max(1.0, speed))
        self._money_s = max(LEAST_S, MONEY_S / max(1.0, speed))
        self._lock = Lock()
        self._seen: Live | None = None
        self._next = self._money_next = 0.0
        self._money = _Money((), Spending())
        self._said: dict[str, _Filed] = {}

    def newest(self) -> Live:
        """The newest look; a new one where that is due. Raises what the store raises."""
        with self._lock:
            began = time.monotonic()
            if self._seen is None or began >= self._next:
                self._seen = self._look(began)
                ended = time.monotonic()
                self._next = max(began + 0.9 * self.every_s, ended + AT_MOST * (ended - began))
            return self._seen

    def _look(self, at_s: Seconds) -> Live:
        site = self._site
        deps = site.deps
        now = deps.state.now()
        if at_s >= self._money_next:
            self._money, self._money_next = _money(deps, now), at_s + self._money_s
        found = _looked(deps)
        glance = of_plan(site, now, found.plan, found.unseen, self._money.stands, found.pools)
        nodes = tiles(found.view, found.pools, found.plan.nodes, deps.offerings)
        self._said = _said(deps, now, self._said)
        shown = _shown(self._said, deps)
        tally = ledger.recall(deps.state, deps.name).memory.tally
        waited, p95 = waits_of_day(tally, now.date())
        return Live(
            cluster=deps.name,
            clusters=self._clusters,
            at=now,
            every_s=self.every_s,
            pretend=not site.settings.api,
            mode=deps.mode,
            advice=deps.advice,
            unseen=found.unseen,
            paid=sum(tile.gpus for tile in nodes.values()),
            used=sum(tile.used for tile in nodes.values()),
            booting=sum(tile.gpus for tile in nodes.values() if tile.state in ("booting", "not-ready")),
            usd_per_hour=glance.usd_per_hour,
            unpriced=glance.unpriced,
            money=self._money.shown,
            nodes=nodes,
            waiting=tuple(waits(glance)),
            waits_since=_oldest(found),
            waited=waited,
            wait_p95_s=p95,
            strip=strip((one.moment for one in self._said.values() if one.moment), now, glance.usd_per_hour),
            todo=tuple(todo(glance)),
            paused=tuple(pauses(glance.paused)),
            decisions=tuple(sorted(shown, key=lambda said: said.id, reverse=True)),
            resting=glance.resting,
            ticks=glance.ticks,
            holds=glance.held,
            letters=glance.letters,
            alerts_waiting=glance.alerts_waiting,
            alerts_given_up=glance.alerts_given_up,
            prices_age_s=glance.prices_age_s,
        )


class _Found(NamedTuple):
    view: ClusterView
    pools: Sequence[PoolState]
    plan: Plan
    unseen: str = ""


class _Money(NamedTuple):
    stands: Sequence[Spent]
    shown: Spending


def _looked(deps: Deps) -> _Found:
    try:
        snapshot, plan = preview(deps, releases=True, explain=False)
    except PilotlightError as error:
        return _Found(ClusterView(), (), Plan(), str(error))
    return _Found(snapshot.view, snapshot.pools, with_drains(deps, snapshot, plan))


def _oldest(found: _Found) -> datetime | None:
    """When the oldest pod without a node was made."""
    fitting = {name for group in found.plan.pods if group.verdict == "fits" for name in group.pods}
    return min((pod.created_at for pod in found.view.pending if pod.full_name not in fitting), default=None)


def _money(deps: Deps, now: datetime) -> _Money:
    today = now.date()
    first = min(today.replace(day=1), today - timedelta(days=6))
    stands = budget_standings(deps, now)
    shown = spending(meter_nodes.days(deps.state, deps.name, first, today), now)
    likely = next((one.forecast.likely for one in stands if _is_of_all(one.meter, now)), shown.likely)
    at_once = sum(budget.period == "hour" for budget in deps.policy.budgets)
    budgets = tuple(_budgets(deps, stands))
    return _Money(stands, msgspec.structs.replace(shown, likely=likely, budgets=budgets, at_once=at_once))


def _is_of_all(meter: Meter, now: datetime) -> bool:
    """Whether a budget counts all dollars of the page's month, which has one forecast then."""
    counted = (meter.measure, meter.budget.scope, meter.budget.period)
    return counted == ("usd", "all", "month") and meter.start == day_start(now.date().replace(day=1))


def _budgets(deps: Deps, stands: Sequence[Spent]) -> Iterator[BudgetLine]:
    rungs = budget_holds.read_ladder(deps.state, deps.name)[0].rungs
    for one in stands:
        rung = rungs.get(one.meter.budget.account)
        yield BudgetLine(
            budget=one.meter.budget.name,
            period=str(one.meter.budget.period),
            spent=one.total,
            held=one.held,
            limit=one.meter.limit,
            likely=one.forecast.likely,
            step=rung.step.do if rung and rung.step and rung.start == one.meter.start else "",
            hours=one.meter.measure == "gpu_hours",
        )


class _Filed(NamedTuple):
    """A decision as it is shown, and what it did to what is paid, where its record could be read."""

    said: Decided
    moment: Moment | None


def _said(deps: Deps, now: datetime, known: dict[str, _Filed]) -> dict[str, _Filed]:
    """The filed decisions of a day by id, and of a week where those are few: what was known, with what came since."""
    filed = dict(known)
    windows = [(WINDOWS[0][0], 2)] if known else WINDOWS
    for digits, count in windows:
        if known or len(filed) < DECISIONS:
            for id_, one in _filed(deps, now, digits, count):
                filed[id_] = one
                if len(filed) >= READ and not known:
                    break
    newest = set(sorted(filed, reverse=True)[:DECISIONS])
    since = now - HALVES * HALF - HALF
    return {id_: one for id_, one in filed.items() if id_ in newest or (one.moment and one.moment.at >= since)}


def _shown(filed: dict[str, _Filed], deps: Deps) -> list[Decided]:
    """The newest of them, and what is not filed yet."""
    kept = sorted(filed, reverse=True)[:DECISIONS]
    begun = {record.id: _line(record) for record, _ in ledger.open_records(deps.state, deps.name)}
    return [*({id_: filed[id_].said for id_ in kept} | begun).values()]


def _filed(deps: Deps, now: datetime, digits: int, windows: int) -> Iterator[tuple[str, _Filed]]:
    """Decisions of so many windows up to now, of ids that share so many first digits."""
    ms, width = int(clock_seconds(now) * 1000), 10 ** (14 - digits)
    for window in range(ms // width, ms // width - windows, -1):
        for key, stored in pages(deps.state, DECISION.key(f"{deps.name}/{window:0{digits}d}")):
            yield key.rpartition("/")[2], _read(key, stored, now)


def _read(key: str, stored: Stored, now: datetime) -> _Filed:
    """A filed decision. One record that cannot be read or told is shown as that, and hides no other."""
    id_ = key.rpartition("/")[2]
    try:
        record = DECISION.format.read(key, stored.value)
        return _Filed(_line(record), moment(record))
    except Exception as error:  # The page outlives any record.
        _log.exception("a decision cannot be shown", extra={"data": {"decision": id_}})
        why = f"the record {key} cannot be shown ({type(error).__name__}); read it with the command below"
        return _Filed(Decided(id=id_, at=now, flow="unreadable", why=why, command=f"pilotlight state get {key}"), None)


def _line(record: Record) -> Decided:
    lines, plan = did(record), record.plan
    more = (f"and {len(lines) - LINES} more",) if len(lines) > LINES else ()
    return Decided(
        id=record.id,
        at=record.at,
        flow=record.flow,
        why=summary(plan, record.calls_with_steps),
        did=(*lines[:LINES], *more),
        open=record.status == "open",
        command=f"pilotlight why {record.id}",
        teams=tuple(sorted({group.team for group in plan.pods if group.team})),
        pools=tuple(sorted({call.pool for call in plan.calls})),
    )
