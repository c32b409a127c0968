"""`pilotlight replay` and `pilotlight week`: the time machine."""

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.policy_file import read_policy
from pilotlight.errors import BadInput, Failed
from pilotlight.facts.money.money_policy import Caps
from pilotlight.facts.offers.catalog import Catalog
from pilotlight.facts.offers.zone_history import ZoneHistory
from pilotlight.facts.policy import Policy
from pilotlight.settings import default_file, read
from pilotlight.tools.cli.lab.replay_options import (
    MOST_S,
    AsJson,
    BootSeconds,
    CapacityType,
    CatalogFile,
    DeletedShare,
    DiskUsdPerHour,
    JoinSpread,
    Placement,
    PolicyFile,
    PullSeconds,
    Report,
    Scoring,
    ScoringOption,
    Shaping,
    Shortage,
    SpotTrace,
    StandbyBootSeconds,
    StateKind,
    Trace,
)
from pilotlight.tools.cli.printing import console
from pilotlight.tools.cli.terminal import console_of
from pilotlight.tools.cli.value_of_wait import ValueOfWait, with_value_of_wait
from pilotlight.tools.cli.whole_file import see_writable
from pilotlight.tools.replay.compare import Trial, log_to, run_peers
from pilotlight.tools.replay.lower_bounds import bounds
from pilotlight.tools.replay.measure import Outcome, idle_hours
from pilotlight.tools.replay.peers.names import check_peer
from pilotlight.tools.replay.run import run
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.traces.drawn_trace import synthesise
from pilotlight.tools.replay.traces.image_pulls import read_images, with_images
from pilotlight.tools.replay.traces.spot_availability import named_apart, read_zone
from pilotlight.tools.replay.traces.trace_file import read_bounded, read_trace, window
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.tools.replay.traces.trace_stats import read_stats

SAMPLE_S = 600.0


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(replay)
    app.command()(week)


def replay(
    trace: Trace,
    policy: PolicyFile = None,
    catalog: CatalogFile = None,
    against: Annotated[list[str] | None, typer.Option(help="A peer to compare with; repeatable.")] = None,
    capacity_type: Annotated[CapacityType, typer.Option(help="Capacity type of purchases.")] = CapacityType.ON_DEMAND,
    placement: Placement = Shaping.HOMES,
    boot_seconds: BootSeconds = None,
    scoring: ScoringOption = Scoring.LEAST_ALLOCATED,
    join_spread: JoinSpread = 0.0,
    pull_seconds: PullSeconds = None,
    standby_boot_seconds: StandbyBootSeconds = None,
    standby_usd_per_hour: DiskUsdPerHour = 0.011,
    detect_seconds: Annotated[float, typer.Option(min=0, max=MOST_S, help="From a pod's wait to its event.")] = 10.0,
    notice_seconds: Annotated[float, typer.Option(min=0, max=MOST_S, help="Notice before a spot node is taken.")] = 0.0,
    shortage: Shortage = 0.0,
    spot_trace: SpotTrace = None,
    deleted_share: DeletedShare = 0.0,
    value_of_wait: ValueOfWait = None,
    seed: Annotated[int, typer.Option(help="Draws spot lives and shortages.")] = 0,
    state: Annotated[StateKind, typer.Option(help="State store of the run.")] = StateKind.MEMORY,
    as_json: AsJson = False,
    log: Annotated[Path | None, typer.Option(help="Write Pilotlight's run as JSON lines.")] = None,
    report: Report = None,
) -> None:
    """Replay a trace under a policy, through the same doorway, flows and decisions that production runs.

    A run that leaves a job unfinished has failed: it says how many and why, and the exit code is 1.

    Example: pilotlight replay trace.csv.gz --against karpenter --against keda --report report.html
    """
    scenario = dataclasses.replace(
        _bought(capacity_type, spot_trace or [], notice_seconds),
        placement=placement.value,
        boot_s=boot_seconds,
        standby_boot_s=standby_boot_seconds,
        standby_usd_per_hour=Decimal(str(standby_usd_per_hour)),
        detect_s=detect_seconds,
        shortage=shortage,
        seed=seed,
        state=state.value,
        sample_s=SAMPLE_S if report else None,
        vanish=deleted_share,
        scoring=scoring.value,
        join_spread_s=join_spread,
    )
    jobs, scenario = _pulling(read_bounded(trace), scenario, pull_seconds)
    types, rules = _loaded(catalog, policy, value_of_wait)
    outcomes = compare(jobs, types, rules, scenario, trace=Path(trace).name, against=against or [], log=log)
    _end(outcomes, scenario, report, f"{Path(trace).name}: {count_jobs(jobs)}", as_json=as_json, single=not against)


def _pulling(jobs: Sequence[Job], scenario: Scenario, images: Path | None) -> tuple[Sequence[Job], Scenario]:
    """The jobs, each with its image, and the scenario that knows how long those take; as they were without a file."""
    if images is None:
        return jobs, scenario
    rows = read_images(images)
    pulls = tuple({one.image: one.seconds for one in rows}.items())
    return with_images(jobs, rows, scenario.seed), dataclasses.replace(scenario, pulls=pulls)


def count_jobs(jobs: Sequence[Job]) -> str:
    """As people read it: "1 job", "10,374 jobs"."""
    return f"{len(jobs):,} job{'s' * (len(jobs) != 1)}"


def _loaded(catalog: str | None, policy: str | None, value_of_wait: float | None) -> tuple[Catalog, Policy]:
    types, rules = load_catalog(catalog), load_policy(policy, value_of_wait)
    check_types(rules, types)
    return types, rules


def _bought(capacity_type: CapacityType, spot_traces: Sequence[str], notice_s: float) -> Scenario:
    """A scenario by what is bought in it."""
    return Scenario(
        capacity_type="on-demand" if capacity_type is CapacityType.ON_DEMAND else "spot",
        falls_back=capacity_type is CapacityType.SPOT_AND_ON_DEMAND,
        zones=_zones(spot_traces, capacity_type, notice_s),
        notice_s=notice_s,
    )


def _zones(files: Sequence[str], capacity_type: CapacityType, notice_s: float) -> tuple[ZoneHistory, ...]:
    """The zones of these files; refused where a run with them could not be what was meant, or could never end."""
    zones = named_apart(read_zone(read(name), name) for name in files)
    if zones and capacity_type is CapacityType.ON_DEMAND:
        raise BadInput("--spot-trace says when spot is up: add --capacity-type spot, or spot+on-demand")
    if zones and notice_s:
        raise BadInput("--notice-seconds is for lives that are drawn: with --spot-trace a node gets 120 s of notice")
    if zones and not any(value and ticks for zone in zones for value, ticks in zone.runs):
        raise BadInput("--spot-trace: spot is never up in any of these zones; name one where it is")
    return zones


WEEK = (7.0, 14.0)
"""The days of the trace that the main run takes."""
REAL_WEEK = Path("../shared/traces/philly_dev.csv.gz")
WEEK_PEERS = ("always-on", "cluster-autoscaler", "karpenter", "keda", "s0-loop")


def week(
    trace: Annotated[Path, typer.Option(help="The trace whose days 7 to 14 are run, where it is there.")] = REAL_WEEK,
    seed: Annotated[int, typer.Option(help="Draws the built-in week.")] = 0,
    value_of_wait: ValueOfWait = None,
    report: Annotated[Path, typer.Option(help="The page to write.")] = Path("build/week.html"),
    as_json: AsJson = False,
) -> None:
    """Run a week of GPU jobs against the peers: the real one where its trace is there, else the built-in one.

    Example: pilotlight week --report week.html
    """
    see_writable(report, folders=True)
    if trace.exists() or trace != REAL_WEEK:
        jobs, name = window(read_trace(trace), *WEEK), f"days 7 to 14 of {trace.name}"
        note = f"{len(jobs):,} job{'' if len(jobs) == 1 else 's'}: {name}"
    else:
        stats = default_file("data/philly_week.stats.json")
        jobs, name = synthesise(read_stats(stats.read_bytes(), stats.name), seed), "built-in week"
        note = f"{len(jobs):,} jobs: the built-in week, drawn from statistics of the Philly trace (seed {seed})"
    typer.echo(note, err=as_json)
    scenario = Scenario(state="sqlite", scoring="most-allocated", sample_s=SAMPLE_S, seed=seed)
    policy = load_policy(None, value_of_wait)
    outcomes = compare(jobs, load_catalog(None), policy, scenario, trace=name, against=WEEK_PEERS)
    _end(outcomes, scenario, report, note, as_json=as_json, single=False)


def _end(
    outcomes: Sequence[Outcome], scenario: Scenario, report: Path | None, note: str, *, as_json: bool, single: bool
) -> None:
    """Print the results, and write the page where one is asked for; raise ``Failed`` where a run left jobs."""
    show(outcomes, as_json=as_json, single=single)
    if report:
        write_report(report, outcomes, note, scenario)
    fail_unfinished(outcomes)


def compare(
    jobs: Sequence[Job],
    catalog: Catalog,
    policy: Policy,
    scenario: Scenario,
    *,
    trace: str,
    against: Sequence[str],
    log: Path | None = None,
) -> list[Outcome]:
    """Run Pilotlight and the peers, with a progress bar on stderr."""
    names = [check_peer(name) for name in against]
    trial = Trial(trace, jobs, catalog, scenario, bounds(jobs, catalog, scenario.capacity_type))
    with _progress(len(jobs), len(names)) as (on_job, on_peer), log_to(log) as write:

        def ours() -> Outcome:
            return run(
                jobs, catalog, policy, scenario, trace=trace, bounds=trial.bound, log=write, on_progress=on_job
            ).outcome

        return run_peers(names, trial, meanwhile=ours, on_done=on_peer)


def load_policy(where: str | None, value_of_wait: float | None = None) -> Policy:
    """The policy at a path. Without one, the example's rules, uncapped, over one pool for each type there is."""
    if where:
        return with_value_of_wait(read_policy(read(where), where), value_of_wait)
    path = default_file("examples/policy.yaml")
    rules = msgspec.structs.replace(read_policy(path.read_text(), path.name), pools={}, caps=Caps())
    return with_value_of_wait(rules, value_of_wait)


def load_catalog(where: str | None) -> Catalog:
    """The catalogue at a path; without one, that of the replay's five types."""
    path = where or str(default_file("data/catalogs/replay.yaml"))
    return read_catalog(read(path), Path(path).name)


def check_types(policy: Policy, catalog: Catalog) -> None:
    """Refuse a pool whose type the catalogue has not: a world cannot make its nodes."""
    for name, pool in policy.pools.items():
        if pool.instance_type not in catalog.instance_types:
            where = f"{pool.instance_type} of pool {name} is not in the catalogue {catalog.name}"
            raise BadInput(f"{where}: give --catalog FILE with it")


def show(outcomes: Sequence[Outcome], *, as_json: bool, single: bool) -> None:
    """Print the results: a table, or JSON (one object, or a list when peers were asked for)."""
    from pilotlight.tools.report.tables import replay_table

    results = [o.result for o in outcomes]
    if as_json:
        shapes = [replay_table.as_json(r) for r in results]
        typer.echo(json.dumps(shapes[0] if single else shapes, indent=1))
        return
    console().print(replay_table.table(results))


def fail_unfinished(outcomes: Sequence[Outcome]) -> None:
    """Raise ``Failed`` where a run left jobs: how many, and why."""
    from pilotlight.tools.report.tables import replay_table

    if told := replay_table.failure([o.result for o in outcomes]):
        raise Failed(told)


def write_report(path: Path, outcomes: Sequence[Outcome], note: str, scenario: Scenario) -> None:
    """Write the page, and say where it is."""
    from pilotlight.tools.report.pages.replay_page import page

    notes = [
        "Placement 'affinity' presumes node affinity added at admission: a job's types are narrowed at its submit."
        if scenario.placement == "affinity"
        else f"Placement: {scenario.placement}.",
        f"Capacity type: {scenario.capacity_type}. Pilotlight learns of a waiting pod {scenario.detect_s:g} s late.",
    ]
    names = [o.result.policy for o in outcomes]
    html = page(
        [o.result for o in outcomes],
        dict(zip(names, (o.points for o in outcomes), strict=True)),
        dict(zip(names, (o.waits for o in outcomes), strict=True)),
        idle_hours(outcomes[0].points),
        title="Pilotlight replay",
        trace_note=note,
        notes=notes,
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(html, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; name a file that can be written") from None
    console_of(stderr=True).print(f"report: {path}")


@contextmanager
def _progress(jobs: int, peers: int) -> Iterator[tuple[Callable[[int], None], Callable[[str], None]]]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console_of(stderr=True), transient=False) as bar:
        ours = bar.add_task("pilotlight", total=jobs)
        others = bar.add_task("peers", total=peers, visible=peers > 0)

        def on_job(done: int) -> None:
            if done % 100 == 0 or done == jobs:
                bar.update(ours, completed=done)

        yield on_job, lambda name: bar.update(others, advance=1, description=f"peers ({name} done)")
