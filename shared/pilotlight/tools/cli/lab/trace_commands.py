"""`pilotlight synth`, `pilotlight stats`, `pilotlight trace`: drawing, measuring and converting traces."""

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from urllib.parse import urlencode, urlsplit

import typer

from pilotlight.codec.catalog_file import read_catalog
from pilotlight.codec.redact import without_login
from pilotlight.errors import BadInput, Unavailable
from pilotlight.settings import default_file
from pilotlight.tools.cli.printing import console
from pilotlight.tools.cli.whole_file import see_writable
from pilotlight.tools.replay.traces.cluster_history import Labels, Query, history
from pilotlight.tools.replay.traces.drawn_trace import synthesise
from pilotlight.tools.replay.traces.public_traces import convert_openb, convert_philly
from pilotlight.tools.replay.traces.trace_file import DAY, read_text, read_trace, window, write_trace
from pilotlight.tools.replay.traces.trace_job import Job
from pilotlight.tools.replay.traces.trace_stats import Stats, measure, read_stats, write_stats
from pilotlight.tools.report.tables.sheet import Column, Sheet
from pilotlight.units import HOUR, count_of, human

NOT_GIVEN = "not given"


class Public(StrEnum):
    """A public trace in its owner's format."""

    PHILLY = "philly"
    OPENB = "openb"


AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="The trace to write: .csv.gz or .csv.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(synth)
    app.command()(stats)
    app.command()(trace)


def synth(
    output: Output,
    like: Annotated[Path | None, typer.Option(help="Statistics to follow; default: the built-in week's.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed draws another trace.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Draw a trace that is like a measured one.

    Example: pilotlight synth --seed 1 -o week.csv.gz
    """
    see_writable(output)
    path = like or default_file("data/philly_week.stats.json")
    jobs = synthesise(read_stats(read_text(path), path.name), seed)
    write_trace(jobs, output)
    _show(jobs, str(output), as_json=as_json)


def stats(
    trace: Annotated[Path, typer.Argument(help="A trace: csv.gz of jobs.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The statistics file to write; without it, --json prints it.")
    ] = None,
    days: Annotated[str, typer.Option(help="Only jobs of these days, as 7-14.")] = "",
    source: Annotated[str, typer.Option("--from", help="Where the trace comes from.")] = NOT_GIVEN,
    citation: Annotated[str, typer.Option(help="How to cite it.")] = NOT_GIVEN,
    licence: Annotated[str, typer.Option(help="Its licence.")] = NOT_GIVEN,
    as_json: AsJson = False,
) -> None:
    """Measure a trace: what `synth` needs, and nothing that names a job or a person.

    Example: pilotlight stats trace.csv.gz --days 7-14 -o week.stats.json
    """
    see_writable(output)
    jobs = read_trace(trace)
    jobs = window(jobs, *_days(days)) if days else jobs
    if not jobs:
        raise BadInput(f"{trace}: no jobs on days {days}")
    measured = measure(jobs, source=source, citation=citation, licence=licence)
    if output is None and as_json:
        typer.echo(write_stats(measured), nl=False)
        return
    if output is not None:
        _write(output, write_stats(measured))
    _show(jobs, str(output or trace), as_json=as_json, measured=measured)


def trace(
    output: Output,
    original: Annotated[Path | None, typer.Argument(metavar="FILE", help="The public original.")] = None,
    kind: Annotated[Public | None, typer.Option("--from", help="Source whose format it has.")] = None,
    prometheus: Annotated[str, typer.Option(help="Address of a Prometheus with kube-state-metrics.")] = "",
    since: Annotated[str, typer.Option(help="How far back to look in it, as 30d or 12h.")] = "30d",
    token_env: Annotated[str, typer.Option(help="The variable that holds a bearer token for it.")] = "",
    as_json: AsJson = False,
) -> None:
    """Make a trace that `replay` reads: of a public original, or of your own cluster's past.

    Your own past is what kube-state-metrics told a Prometheus of GPU pods: when each was made, started and ended. The
    namespace is the team. Pods of one MPIJob, PyTorchJob or JobSet are one job. It names no GPU model.

    Example: pilotlight trace --from philly cluster_job_log -o philly.csv.gz

    Example: pilotlight trace --prometheus http://prometheus:9090 --since 30d -o ours.csv.gz
    """
    see_writable(output)
    if bool(prometheus) == (original is not None):
        raise BadInput("name a FILE with --from, or --prometheus URL: one of them")
    if original is None:
        jobs = _past(prometheus, since, token_env)
    elif kind is None:
        raise BadInput("--from is missing: philly or openb")
    elif kind is Public.PHILLY:
        jobs = convert_philly(original)
    else:
        catalogue = default_file("data/catalogs/replay.yaml")
        jobs = convert_openb(original, read_catalog(catalogue.read_bytes(), catalogue.name))
    write_trace(jobs, output)
    _show(jobs, str(output), as_json=as_json)


def _past(url: str, since: str, token_env: str) -> tuple[Job, ...]:
    """The jobs of a cluster's own past."""
    import time

    from pilotlight.settings import deployed_settings

    token = deployed_settings().environ.get(token_env, "") if token_env else ""
    if token_env and not token:
        raise BadInput(f"{token_env} is not set: put the token in it, or leave --token-env out")
    units = {"h": HOUR, "d": DAY}
    number, unit = since[:-1], since[-1:]
    if unit not in units or not number.isdecimal() or not 0 < int(number) * units[unit] <= 366 * DAY:
        raise BadInput(f"--since is {since!r}: write how far back, as 30d or 12h, a year at most")
    now = time.time()
    found = history(prometheus(url, token), now - int(number) * units[unit], now)
    if found.never_started:
        typer.echo(
            f"{count_of(found.never_started, 'pod')} never started: how long they would have run is not known", err=True
        )
    if not found.jobs:
        raise BadInput(f"no GPU pod ran in the last {since}: there is nothing to replay")
    return found.jobs


def prometheus(url: str, token: str = "") -> Query:
    """Queries to a Prometheus by its HTTP interface. They raise ``BadInput`` for what it refuses, and ``Unavailable``
    where nobody answers."""
    from pilotlight.adapters.call_timeout import Deadline
    from pilotlight.tools.cli.proxied_http import ANSWER_S, ProxiedSite, Unanswered

    shown = without_login(url)
    try:
        where = urlsplit(url)
        site = ProxiedSite(url) if where.scheme in ("http", "https") and where.hostname else None
    except ValueError:
        site = None
    if site is None:
        raise BadInput(f"--prometheus is {shown!r}: write its address, as http://prometheus:9090")
    target = f"{where.path.rstrip('/')}/api/v1/query"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}

    def ask(query: str, at: float) -> list[tuple[Labels, float]]:
        form = urlencode({"query": query, "time": f"{at:.3f}"}).encode()
        try:
            with Deadline(ANSWER_S) as deadline:
                answer = site.ask(deadline, "POST", target, form, headers)
        except Unanswered as error:
            raise Unavailable(f"{shown} does not answer: {error}; is that a Prometheus?") from None
        if 300 <= answer.status < 400:
            raise BadInput(f"{shown} leads elsewhere ({answer.status}), and is not followed: name that address")
        if answer.status != 200:
            raise BadInput(f"{shown}: {answer.status} {_said(answer.body) or 'without a reason'}")
        try:
            told = json.loads(answer.body)
            return [(each["metric"], float(each["value"][1])) for each in told["data"]["result"]]
        except (ValueError, KeyError, TypeError):
            raise BadInput(
                f"{shown} does not answer as Prometheus does: name the address of its HTTP interface"
            ) from None

    return ask


def _said(body: bytes) -> str:
    """Why Prometheus refuses."""
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return ""


def _days(text: str) -> tuple[float, float]:
    first, _, last = text.partition("-")
    try:
        days = float(first), float(last)
    except ValueError:
        days = 0.0, 0.0
    if not 0 <= days[0] < days[1] < 1e6:
        raise BadInput(f"--days is {text!r}: must be a first day and the day after the last, as 7-14")
    return days


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}; name a file that can be written") from None


def _show(jobs: Sequence[Job], name: str, *, as_json: bool, measured: Stats | None = None) -> None:
    """Print a trace's measures, as a table or as JSON."""
    durations = sorted(job.duration_s for job in jobs)
    figures: dict[str, float] = {
        "jobs": len(jobs),
        "days": round((jobs[-1].submit_s - jobs[0].submit_s) / DAY, 2),
        "gpu_hours": round(sum(job.gpu_seconds for job in jobs) / HOUR, 1),
        "largest_job_gpus": max(job.gpus for job in jobs),
        "median_run_s": durations[len(durations) // 2],
        "teams": len({job.team for job in jobs}),
    }
    if measured:
        figures |= {"bursts": len(measured.bursts), "jobs_in_bursts": sum(b.jobs for b in measured.bursts)}
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text({"file": name, **figures}))
        return
    table = Sheet(Column(), Column(kind="figure"), title=name)
    for key, value in figures.items():
        table.add(key.removesuffix("_s").replace("_", " "), human(value) if key.endswith("_s") else f"{value:,}")
    console().print(table)
