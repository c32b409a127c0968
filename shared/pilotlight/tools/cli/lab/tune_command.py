"""`pilotlight tune`: what a price of waiting costs and saves on a trace, and which one to take."""

import json
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from pilotlight.errors import BadInput, Failed
from pilotlight.tools.advice.frontier import Run, cheapest_within, efficient_runs, knee
from pilotlight.tools.cli.lab.replay_command import check_types, count_jobs, load_catalog, load_policy
from pilotlight.tools.cli.lab.replay_options import (
    MOST_S,
    AsJson,
    BootSeconds,
    CatalogFile,
    Placement,
    PolicyFile,
    Report,
    Scoring,
    ScoringOption,
    Shaping,
    Trace,
)
from pilotlight.tools.cli.printing import console
from pilotlight.tools.cli.sweep_progress import progress_bar
from pilotlight.tools.cli.terminal import console_of
from pilotlight.tools.cli.value_of_wait import MOST
from pilotlight.tools.replay.compare import Trial
from pilotlight.tools.replay.lower_bounds import bounds
from pilotlight.tools.replay.peers.names import check_peer
from pilotlight.tools.replay.resampled_days import FEWEST_DAYS, Held, can_resample, hold_up
from pilotlight.tools.replay.scenario import Scenario
from pilotlight.tools.replay.traces.trace_file import read_bounded
from pilotlight.tools.replay.traces.trace_job import Result
from pilotlight.tools.replay.wait_price_sweep import PEERS, VALUES, Setting, Sweep, sweep
from pilotlight.units import count_of

Within = Annotated[
    float | None, typer.Option(min=0, max=MOST_S, help="The longest mean wait, in seconds, to choose for.")
]
StandbyBootSeconds = Annotated[
    float | None, typer.Option(min=0, max=MOST_S, help="Start of a stopped node, in seconds; left out: none is.")
]
Processes = Annotated[int | None, typer.Option(min=1, max=256, help="Runs at once; default: one for each processor.")]
Resamples = Annotated[
    int, typer.Option(min=0, max=1000, help="Traces of days drawn anew on which the recommendation is asked again.")
]


class Advice(NamedTuple):
    """The setting to take, and why in one sentence."""

    setting: Setting
    why: str


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(tune)


def tune(
    trace: Trace,
    policy: PolicyFile = None,
    catalog: CatalogFile = None,
    values: Annotated[str, typer.Option(help="Dollars an hour of one job's waiting to try, with commas.")] = ",".join(
        map(str, VALUES)
    ),
    against: Annotated[
        list[str] | None, typer.Option(help="A peer to stand beside; repeatable. Default: all of them.")
    ] = None,
    within: Within = None,
    placement: Placement = Shaping.HOMES,
    scoring: ScoringOption = Scoring.LEAST_ALLOCATED,
    boot_seconds: BootSeconds = None,
    standby_boot_seconds: StandbyBootSeconds = None,
    processes: Processes = None,
    resamples: Resamples = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of the first of them; the others count on from it.")] = 0,
    report: Report = None,
    as_json: AsJson = False,
) -> None:
    """Try prices of waiting on a trace, draw dollars against waits beside every peer, and recommend one.

    The recommendation is asked again on traces whose days are drawn with replacement from this one's.

    Example: pilotlight tune trace.csv.gz --within 60 --report tune.html
    """
    tried = _values(values)
    peers = [check_peer(name) for name in (PEERS if against is None else against)]
    jobs, types, rules = read_bounded(trace), load_catalog(catalog), load_policy(policy)
    check_types(rules, types)
    scenario = Scenario(
        placement=placement.value, scoring=scoring.value, boot_s=boot_seconds, standby_boot_s=standby_boot_seconds
    )
    name = Path(trace).name
    seeds = range(seed, seed + resamples if can_resample(jobs) else seed)
    with progress_bar(len(tried) * (1 + len(seeds)) + len(peers)) as on_done:
        trial = Trial(name, jobs, types, scenario, bounds(jobs, types))
        done = sweep(tried, peers, rules, trial, on_done=on_done, processes=processes)
        _fail_unfinished(done)
        chosen = advise(done.ours, within)
        value, asked = chosen.setting.value_of_wait, partial(_advised, within)
        held = hold_up(value, tried, rules, trial, seeds, asked, on_done=on_done, processes=processes)
    told = _holds(held, within) if held else _not_asked(resamples)
    if as_json:
        _print_json(done, chosen, held)
    else:
        _print(done, chosen, told)
    if report:
        _write(report, done, chosen, f"{name}: {count_jobs(jobs)}, placement {placement.value}", told)


def advise(ours: Sequence[Setting], within: float | None) -> Advice:
    """The cheapest setting whose mean wait is short enough; where nobody says what is, the knee of the curve.

    Raises ``Failed`` where none waits so little.
    """
    by_run = {_run(s.result): s for s in reversed(ours)}
    curve = efficient_runs(by_run)
    if within is not None:
        run = cheapest_within(curve, within)
        if run is None:
            raise Failed(
                f"no value waits {within:g} s or less: the least is {curve[0].wait_s:.1f} s; try --values higher"
            )
        return Advice(by_run[run], f"the cheapest of those tried that waits {within:g} s or less on average")
    return Advice(
        by_run[knee(curve)], "beyond it a second less of waiting costs more than before it, of what was tried"
    )


def _advised(within: float | None, ours: Sequence[Setting]) -> Decimal | None:
    try:
        return advise(ours, within).setting.value_of_wait
    except Failed:
        return None


def _holds(held: Held, within: float | None) -> str:
    """How far the recommendation holds, in a sentence or two."""
    from pilotlight.tools.report.tables.replay_table import wait

    traces, seeds = count_of(len(held.seeds), "trace"), f"{held.seeds[0]} to {held.seeds[-1]}"
    own = [value for value in held.recommended if value is not None]
    said = [f"On {traces} of days drawn anew (seeds {seeds}) it is recommended in {held.same}"]
    said += [f"${own[0]}/h to ${own[-1]}/h in all"] if own and own[0] != own[-1] else []
    said += [f"it waits {wait(held.wait_s[0])} to {wait(held.wait_s[-1])} on average"]
    if held.x_own:
        dear = (held.x_own[0], held.x_own[-1])
        said += [f"it pays {dear[0]:.3f}x to {dear[1]:.3f}x of what they recommend themselves"]
    slow = held.too_slow(within)
    said += [f"longer than {within:g} s in {slow}"] if slow else []
    return "; ".join(said) + "."


def _not_asked(resamples: int) -> str:
    if not resamples:
        return ""
    return f"The trace has fewer than {FEWEST_DAYS} days with jobs: whether this holds on other days is not known."


def _values(text: str) -> list[Decimal]:
    try:
        found = [Decimal(part.strip()) for part in text.split(",")]
    except InvalidOperation:
        raise BadInput(f"--values: {text!r} is not numbers with commas, as 3,10,30") from None
    if not all(value.is_finite() and 0 <= value <= MOST for value in found):
        raise BadInput(f"--values: must be from 0 to {MOST:,} dollars an hour")
    return sorted(set(found))


def _run(result: Result) -> Run:
    return Run(result.wait_s.mean, float(result.cost_usd))


def _fail_unfinished(done: Sweep) -> None:
    from pilotlight.tools.report.tables.replay_table import failure

    if told := failure([*(s.result for s in done.ours), *done.peers]):
        raise Failed(told)


def _line(chosen: Advice) -> str:
    return f"value_of_wait: {chosen.setting.value_of_wait}"


def _sentence(chosen: Advice) -> str:
    from pilotlight.tools.report.tables.replay_table import multiple, usd, wait

    result = chosen.setting.result
    paid = f"{usd(result.cost_usd)} ({multiple(result.x_integral)} the bound)"
    return f"{_line(chosen)}: {paid} at a mean wait of {wait(result.wait_s.mean)}; {chosen.why}"


def _named(done: Sweep) -> list[tuple[str, Result, bool]]:
    ours = [(f"pilotlight, ${s.value_of_wait}/h", s.result, True) for s in done.ours]
    return ours + [(peer.policy, peer, False) for peer in done.peers]


HEADINGS = ("policy", "dollars", "x bound", "mean wait", "P95 wait")


def _cells(name: str, result: Result) -> tuple[str, ...]:
    from pilotlight.tools.report.tables.replay_table import multiple, usd, wait

    waits = (wait(result.wait_s.mean), wait(result.wait_s.p95))
    return (name, usd(result.cost_usd), multiple(result.x_integral), *waits)


def _print(done: Sweep, chosen: Advice, held: str) -> None:
    from rich.text import Text

    from pilotlight.tools.report.pages.tune_chart import Dot, text_chart
    from pilotlight.tools.report.tables.sheet import Column, Sheet

    rows = _named(done)
    sheet = Sheet(Column(HEADINGS[0], "name"), *(Column(heading, "figure") for heading in HEADINGS[1:]))
    for name, result, _ in rows:
        sheet.add(*_cells(name, result), style="bold" if result is chosen.setting.result else "")
    out = console()
    out.print(sheet)
    dots = [Dot(n, *_run(r), ours) for n, r, ours in rows]
    for told in ("", text_chart(dots, out.width), "", _sentence(chosen), held, "policy line:", f"  {_line(chosen)}"):
        if told or told is not held:
            out.print(Text(told))


def _print_json(done: Sweep, chosen: Advice, held: Held | None) -> None:
    """As the table. ``holds`` is null where it was not asked, or the trace has too few days."""
    from pilotlight.tools.report.tables.replay_table import as_json

    ours = [{"value_of_wait": float(s.value_of_wait), **as_json(s.result)} for s in done.ours]
    recommended = {"value_of_wait": float(chosen.setting.value_of_wait), "why": chosen.why, "policy": _line(chosen)}
    holds = None
    if held is not None:
        own = [None if value is None else float(value) for value in held.recommended]
        holds = {"seeds": held.seeds, "same": held.same, "recommended": own, "wait_s": held.wait_s}
        holds |= {"x_own": held.x_own}
    theirs = [as_json(peer) for peer in done.peers]
    shape = {"ours": ours, "peers": theirs, "recommended": recommended, "holds": holds}
    typer.echo(json.dumps(shape, indent=1))


def _write(path: Path, done: Sweep, chosen: Advice, note: str, held: str) -> None:
    from pilotlight.tools.report.pages.tune_chart import Dot
    from pilotlight.tools.report.pages.tune_page import page

    rows = _named(done)
    html = page(
        [Dot(n, *_run(r), ours) for n, r, ours in rows],
        HEADINGS,
        [_cells(n, r) for n, r, _ in rows],
        title="Pilotlight tune",
        advice=f"{_sentence(chosen)}. {held}".strip(),
        note=note,
        line=_line(chosen),
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(html, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; name a file that can be written") from None
    console_of(stderr=True).print(f"report: {path}")
