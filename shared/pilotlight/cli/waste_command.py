"""``pilotlight waste``: GPUs that are held and not used, by owner and dollars, from what a Prometheus kept."""

import time
from decimal import Decimal
from typing import Annotated, Any

import typer

from pilotlight.codec.policy_values import parse_duration
from pilotlight.decide.made_by import made_by
from pilotlight.decide.use.waste import Waste, waste
from pilotlight.errors import BadInput, Failed
from pilotlight.facts.telemetry import Telemetry
from pilotlight.units import Seconds, human

DEVICE_GIB = 80.0
MIB_PER_GIB = 1024
BY = {"owner": made_by, "namespace": lambda pod: str(pod.partition("/")[0]), "all": lambda _: "all"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("waste")(waste_command)


def waste_command(
    prometheus: Annotated[str, typer.Option(help="The Prometheus that has dcgm-exporter's series.", metavar="URL")],
    price: Annotated[float, typer.Option(min=0.0001, help="Dollars an hour of a GPU.")],
    since: Annotated[str, typer.Option(help="How far back is looked; a day or more says most.")] = "24h",
    step: Annotated[str, typer.Option(help="Between two samples.")] = "60s",
    lead: Annotated[str, typer.Option(help="Until a new replica works: boot and load of the model.")] = "4m",
    device_gib: Annotated[float, typer.Option(min=1, help="Memory of the devices that pods could share.")] = DEVICE_GIB,
    by: Annotated[str, typer.Option(help="What is one service: owner (by pods' names), namespace or all.")] = "owner",
    until: Annotated[str, typer.Option(help="Unix seconds of the last sample; left out: now.")] = "",
    auth: Annotated[str, typer.Option(help="google, aws:REGION, env:VARIABLE; left out: by its host.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Every figure and its evidence, as JSON.")] = False,
) -> None:
    """Show idle pods, replicas beyond what was asked of them, and pods that could share a device; changes nothing.

    Managed Prometheus of Google and Amazon is told by its address, and asked with this account's credential.

    Example: [bold]pilotlight waste --prometheus http://prometheus:9090 --price 3.06[/bold]
    """
    if by not in BY:
        raise BadInput(f"--by {by!r}: write {', '.join(BY)}")
    step_s, span_s, lead_s = (_seconds(text, name) for text, name in ((step, "step"), (since, "since"), (lead, "lead")))
    if not 0 < step_s <= span_s:
        raise BadInput(f"--step {step} must be more than 0 and at most --since {since}")
    try:
        end = float(until) if until else time.time()
    except ValueError:
        raise BadInput(f"--until {until!r}: write Unix seconds") from None
    telemetry = _read(prometheus, auth, end - span_s, end, step_s)
    if not telemetry.series:
        raise Failed(
            f"telemetry: absent. {prometheus} has no series of dcgm-exporter with a pod in the last {human(span_s)}; "
            "nothing is known, which is not idle: see that it runs and that its pods are scraped"
        )
    rows = waste(telemetry, Decimal(repr(price)), device_gib * MIB_PER_GIB, lead_s, BY[by])
    if as_json:
        from pilotlight.cli.printing import json_text

        typer.echo(json_text(_figures(telemetry, rows)))
        return
    _show(telemetry, rows)


def _read(url: str, auth: str, start: float, end: float, step_s: Seconds) -> Telemetry:
    from pilotlight.adapters.prometheus_api import PrometheusApi
    from pilotlight.adapters.telemetry.prometheus import PrometheusTelemetry
    from pilotlight.settings import deployed

    return PrometheusTelemetry(PrometheusApi(url, deployed().environ, auth)).read(start, end, step_s)


def _seconds(text: str, option: str) -> Seconds:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise BadInput(f"--{option} {text!r} {error}") from None


def _figures(telemetry: Telemetry, rows: list[Waste]) -> dict[str, Any]:
    return {
        "metric": telemetry.metric,
        "samples": telemetry.samples,
        "step_s": telemetry.step_s,
        "usd_per_hour": sum((row.usd_per_hour for row in rows), Decimal(0)),
        "idle_usd_per_hour": sum((row.idle_usd for row in rows), Decimal(0)),
        "spare_usd_per_hour": sum((row.spare_usd for row in rows), Decimal(0)),
        "sharing_usd_per_hour": sum((row.sharing_usd for row in rows), Decimal(0)),
        "owners": [
            {
                "owner": row.owner,
                "gpus": row.held,
                "mean_activity": row.activity,
                "usd_per_hour": row.usd_per_hour,
                "idle": [
                    {"pod": one.pod, "device": one.device, "silent_s": one.silent_s, **one.seen._asdict()}
                    for one in row.idle
                ],
                "idle_usd_per_hour": row.idle_usd,
                "replicas": row.replicas._asdict() if row.replicas else None,
                "spare": row.spare,
                "spare_usd_per_hour": row.spare_usd,
                "devices": [device._asdict() for device in row.devices],
                "sharing_usd_per_hour": row.sharing_usd,
            }
            for row in rows
        ],
    }


def _show(telemetry: Telemetry, rows: list[Waste]) -> None:
    from pilotlight.cli.printing import console
    from pilotlight.report.sheet import Column, Sheet

    figures = ("GPUs", "activity", "$/h", "idle $/h", "spare $/h", "by sharing $/h")
    table = Sheet(Column("owner", "name"), *(Column(name, "figure") for name in figures))
    for row in rows:
        dollars = (row.usd_per_hour, row.idle_usd, row.spare_usd, row.sharing_usd)
        table.add(row.owner, str(row.held), f"{row.activity:.0%}", *(f"${usd:,.2f}" for usd in dollars))
    parts = [(r.usd_per_hour, r.idle_usd, r.spare_usd, r.sharing_usd) for r in rows]
    sums = [sum(each, Decimal(0)) for each in zip(*parts, strict=True)]
    table.add("all", str(sum(row.held for row in rows)), "", *(f"${usd:,.2f}" for usd in sums), style="bold")
    out = console()
    out.print(table)
    for row in rows:
        for one in row.idle:
            seen = f"of {one.seen.windows} such silences {one.seen.back} ended within 4 h"
            out.print(f"idle: {one.pod} for {human(one.silent_s)} ({seen})")
        if row.replicas and row.spare:
            kept, least = row.replicas, row.replicas.advised[-1]
            out.print(
                f"spare: {row.owner} runs {row.held}, {least} would do now ({kept.mean:.1f} of {kept.mean_running:.1f} "
                f"on average; demand over 95 % of those in {kept.over:.2%} of the samples)"
            )
        if row.shareable:
            most = max(device.over for device in row.devices)
            out.print(
                f"sharing: {len(row.devices)} devices hold {len(row.devices) + row.shareable} pods of {row.owner} "
                f"(activity passed one whole in {most:.2%} of the samples at most)"
            )
    span = human(telemetry.samples * telemetry.step_s)
    out.print(f"Activity is {telemetry.metric}, over {span}. Idle goes first, then spare; sharing is instead of both.")
