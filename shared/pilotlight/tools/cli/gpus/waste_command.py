"""``pilotlight waste``: GPUs that are held and not used, by owner and dollars, from what a Prometheus kept."""

import time
from datetime import UTC, datetime
from decimal import Decimal
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from pilotlight.codec.policy_values import parse_duration
from pilotlight.decide.demand.classify import made_by
from pilotlight.decide.utilisation.gpu_waste import waste
from pilotlight.errors import BadInput, Failed
from pilotlight.facts.utilisation.telemetry import Telemetry
from pilotlight.flow.billing.waste_alert import STEPS_S, on_its_grid
from pilotlight.tools.advice.fragmentation import Fragments, fragments
from pilotlight.tools.advice.weeks_of_use import MeteredWeeks, dollars_by_use, total, weeks
from pilotlight.tools.cli.gpus.devices_there import DeviceGib, ModelName, Serving, sharing_of
from pilotlight.tools.cli.whole_file import see_writable
from pilotlight.tools.report.tables.waste_table import Found, figures, show
from pilotlight.units import Seconds, human

if TYPE_CHECKING:
    from pilotlight.adapters.prometheus_api import PrometheusApi

POWER = "DCGM_FI_DEV_POWER_USAGE"
MOST_WATTS = 1e4
DAY_S = 86_400.0
Step = Annotated[
    str, typer.Option(help="Between two samples; left out: a minute, or more where GPUs are scraped less often.")
]
Metered = Annotated[bool, typer.Option(help="Also what nodes cost in these UTC days, by this deployment's meter.")]
BY = {"owner": made_by, "namespace": lambda pod: str(pod.partition("/")[0]), "all": lambda _: "all"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("waste")(waste_command)


def waste_command(
    prometheus: Annotated[str, typer.Option(help="The Prometheus that has dcgm-exporter's series.", metavar="URL")],
    price: Annotated[
        float | None,
        typer.Option(min=0.0001, max=1e6, help="Dollars an hour of a GPU; left out: the policy's cheapest pool's."),
    ] = None,
    since: Annotated[str, typer.Option(help="How far back is looked; a day or more says most.")] = "24h",
    step: Step = "",
    lead: Annotated[str, typer.Option(help="Until a new replica works: boot and load of the model.")] = "4m",
    device_gib: DeviceGib = None,
    model: ModelName = "",
    serving: Serving = True,
    by: Annotated[str, typer.Option(help="One service is an owner (by pods' names), a namespace or all.")] = "owner",
    until: Annotated[str, typer.Option(help="Unix seconds of the last sample; left out: now.")] = "",
    auth: Annotated[str, typer.Option(help="google, aws:REGION, env:VARIABLE; left out: by its host.")] = "",
    metered: Metered = False,
    cluster: Annotated[str, typer.Option(help="One of many clusters, for --metered; all where none is named.")] = "",
    html: Annotated[Path | None, typer.Option(help="Write one HTML page, with the weeks as bars.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Every figure and its evidence, as JSON.")] = False,
) -> None:
    """Show idle pods, devices and replicas beyond use, pods that could share a device, and the trend; changes nothing.

    Sharing is what MIG, MPS, time-slicing, KAI or HAMi reach on devices that are there, as `manifests sharing` has it.
    Free GPUs that nothing waiting can take are told where the Prometheus has kube-state-metrics too. Managed Prometheus
    of Google and Amazon is told by its address, and asked with this account's credential.

    Example: [bold]pilotlight waste --prometheus http://prometheus:9090 --price 3.06[/bold]
    """
    see_writable(html)
    if by not in BY:
        raise BadInput(f"--by {by!r}: write {', '.join(BY)}")
    span_s, lead_s, end = seconds(since, "since"), seconds(lead, "lead"), end_of_samples(until)
    step_s = _step(step, since, span_s)
    api, (usd, priced) = _api(prometheus, auth), _usd_per_gpu_hour(price)
    telemetry = _telemetry(api, end - span_s, end, step_s)
    _look_at_samples(telemetry, prometheus, span_s, chosen=step_s is not None)
    telemetry = with_watts(api, telemetry)
    rows = waste(telemetry, usd, lead_s, BY[by])
    found = Found(
        telemetry,
        rows,
        sharing_of(api, end, rows, model, device_gib, serving=serving, way=""),
        usd,
        weeks(telemetry),
        _fragments(api, end),
        _metered(cluster, end - span_s, end, telemetry) if metered else None,
    )
    _tell(found, priced, html, as_json)


def _tell(found: "Found", priced: str, html: Path | None, as_json: bool) -> None:
    """Print what was found, and on stderr where its price is from."""
    if html:
        _write(html, found)
    if priced:
        typer.echo(priced, err=True)
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text(figures(found)))
    elif not html:
        from pilotlight.tools.cli.printing import console

        show(found, console())


def _usd_per_gpu_hour(price: float | None) -> tuple[Decimal, str]:
    """The price that is named; else the catalogue's of the policy's cheapest pool, and a line that says so."""
    if price is not None:
        return Decimal(repr(price)), ""
    from pilotlight.settings import deployed_settings
    from pilotlight.wiring import App

    sold = [offering for offering in App(deployed_settings()).price_offerings()[0] if offering.gpus]
    if not sold:
        raise BadInput("no pool of the policy has a price in the catalogue: name dollars an hour of a GPU by --price")
    usd, name = min((offering.usd_per_hour / offering.gpus, offering.name) for offering in sold)
    return usd, f"priced at ${usd:,.4f} a GPU-hour, as {name}, the policy's cheapest; --price names another"


def _step(step: str, since: str, span_s: Seconds) -> Seconds | None:
    """Time between two samples, where it is said. Raises ``BadInput`` where it does not fit what is looked at."""
    if not step:
        if span_s < STEPS_S[0]:
            raise BadInput(f"--since {since} must be at least a minute, or give --step")
        return None
    step_s = seconds(step, "step")
    if not 0 < step_s <= span_s:
        raise BadInput(f"--step {step} must be more than 0 and at most --since {since}")
    return step_s


def _look_at_samples(telemetry: Telemetry, prometheus: str, span_s: Seconds, *, chosen: bool) -> None:
    """Say where samples are sparse, by a step that was ``chosen`` or by GPUs' own. Raises ``Failed`` without any."""
    if not telemetry.series:
        from pilotlight.codec.redact import without_login

        there = without_login(prometheus)
        raise Failed(
            f"telemetry: absent. {there} has no measured series of dcgm-exporter of a pod in the last {human(span_s)}. "
            "Nothing is known, which is not idle: see that it runs and that its pods are scraped"
        )
    if all(isnan(one.activity[-1]) for one in telemetry.series):
        typer.echo("telemetry: absent now. No GPU was measured within the last three scrapes", err=True)
    if telemetry.sparse():
        every = human(telemetry.step_s)
        typer.echo(f"series have a sample in every other step of {every}, or fewer: give a larger --step", err=True)
    elif not chosen and telemetry.step_s > STEPS_S[0]:
        typer.echo(f"GPUs are scraped less often than every minute: a step of {human(telemetry.step_s)}", err=True)


def end_of_samples(until: str) -> float:
    """The moment of the last sample, in Unix seconds."""
    try:
        end = float(until) if until else time.time()
        datetime.fromtimestamp(end, UTC)  # None of no year, and no NaN.
    except (ValueError, OverflowError, OSError):
        end = -1.0
    if end < 0:
        raise BadInput(f"--until {until!r}: write Unix seconds")
    return end


def telemetry_of(url: str, auth: str, start: float, end: float, step_s: Seconds) -> Telemetry:
    """Telemetry of pods' GPUs as one Prometheus has it."""
    from pilotlight.adapters.telemetry.prometheus import PrometheusTelemetry

    return PrometheusTelemetry(_api(url, auth)).read(start, end, step_s)


def _api(url: str, auth: str) -> "PrometheusApi":
    from pilotlight.adapters.prometheus_api import PrometheusApi
    from pilotlight.settings import deployed_settings

    return PrometheusApi(url, deployed_settings().environ, auth)


def _telemetry(api: "PrometheusApi", start: float, end: float, step_s: Seconds | None) -> Telemetry:
    from pilotlight.adapters.telemetry.prometheus import PrometheusTelemetry

    read = PrometheusTelemetry(api)
    if step_s is None:
        return on_its_grid(read, start, end)
    return msgspec.structs.replace(read.read(start, end, step_s), past=read.past(end))


def with_watts(api: "PrometheusApi", telemetry: Telemetry) -> Telemetry:
    """The same with each device's draw, by one query more: 0 is no measurement, as every device draws some."""
    from pilotlight.adapters.telemetry.prometheus import Named, PrometheusTelemetry

    end_s = telemetry.start_s + (telemetry.samples - 1) * telemetry.step_s
    rows = PrometheusTelemetry(api).rows(POWER, telemetry.start_s, end_s, telemetry.step_s, 1.0, MOST_WATTS, Named())
    watts = {key: [value if value > 0 else nan for value in row] for key, row in rows.items()}
    series = (msgspec.structs.replace(one, watts=watts.get((one.pod, one.device), ())) for one in telemetry.series)
    return msgspec.structs.replace(telemetry, series=tuple(series))


def _fragments(api: "PrometheusApi", end: float) -> Fragments | None:
    from pilotlight.tools.advice.kube_state import free_gpus

    told = free_gpus(api, end)
    return fragments(*told) if told is not None else None


def _metered(cluster: str, start: float, end: float, telemetry: Telemetry) -> MeteredWeeks:
    """The meter's dollars of the same UTC days. Raises ``BadInput`` where the span has other bounds."""
    if start % DAY_S or (end + telemetry.step_s) % DAY_S:
        raise BadInput("--metered counts whole UTC days: give --until the last step before a midnight, and --since so")
    from pilotlight.flow.billing import meter_nodes
    from pilotlight.settings import deployed_settings
    from pilotlight.tools.advice.money.month import month
    from pilotlight.tools.cli.month_option import chosen_clusters
    from pilotlight.wiring import app

    wired = app(deployed_settings())
    first, last = (datetime.fromtimestamp(at, UTC).date() for at in (start, end))
    days = [
        day
        for name in chosen_clusters(cluster, wired.clusters)
        for day in meter_nodes.days(wired.state, name, first, last)
    ]
    told = month(days, [], first, last)
    return dollars_by_use(total(weeks(telemetry)), float(told.used.gpu_hours), *told.split)


def _write(path: Path, found: Found) -> None:
    from pilotlight.tools.report.pages.waste_page import page

    try:
        path.write_text(page(found), "utf-8")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; name a file that can be written") from None
    typer.echo(f"{path} written", err=True)


def seconds(text: str, option: str) -> Seconds:
    """A duration as an option has it. Raises ``BadInput``."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise BadInput(f"--{option} {text!r} {error}") from None
