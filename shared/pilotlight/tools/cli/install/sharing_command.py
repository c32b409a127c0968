"""``pilotlight manifests sharing``: what makes an owner's pods share devices, from what they did; and the way back."""

import re
import time
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pilotlight.codec.policy_values import parse_duration
from pilotlight.errors import BadInput, Failed
from pilotlight.tools.cli.gpus.devices_there import DeviceGib, ModelName, Serving
from pilotlight.units import count_of

if TYPE_CHECKING:
    from pilotlight.decide.utilisation.gpu_waste import Slice
    from pilotlight.tools.advice.ways_to_share import SharingAdvice
    from pilotlight.tools.manifests.sharing_objects import Target

STEP_S = 60.0
ORDINAL = re.compile(r"-\d+$")
HASHED = re.compile(r"-[a-f0-9]{6,10}-[a-z0-9]{5}$")


def sharing(
    prometheus: Annotated[str, typer.Option(help="The Prometheus that has dcgm-exporter's series.", metavar="URL")],
    price: Annotated[float, typer.Option(min=0.0001, help="Dollars an hour of a GPU.")],
    model: ModelName = "",
    device_gib: DeviceGib = None,
    owner: Annotated[str, typer.Option(help="Only this owner, as waste names it.")] = "",
    way: Annotated[
        Literal["auto", "mig", "mps", "time-slicing", "kai", "hami"],
        typer.Option(help="How; auto: the safest of NVIDIA's own, mig, mps and time-slicing."),
    ] = "auto",
    serving: Serving = True,
    plugin_namespace: Annotated[str, typer.Option(help="Where NVIDIA's operator lies.")] = "gpu-operator",
    auth: Annotated[str, typer.Option(help="google, aws:REGION, env:VARIABLE; left out: by its host.")] = "",
    since: Annotated[str, typer.Option(help="How far back is looked; pods that were there throughout count.")] = "24h",
    until: Annotated[float, typer.Option(help="Unix seconds of the last sample; 0: now.")] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Print how pods that were there all day can share devices: the objects, the commands after them, and the way back.

    It changes nothing. NODE in a command stands for each node of the pool.

    Example: [bold]pilotlight manifests sharing --prometheus http://prometheus:9090 --price 3 --model A100-80GB[/bold]
    """
    from pilotlight.adapters.prometheus_api import PrometheusApi
    from pilotlight.adapters.telemetry.prometheus import PrometheusTelemetry
    from pilotlight.decide.utilisation.gpu_waste import waste
    from pilotlight.settings import deployed_settings
    from pilotlight.tools.cli.gpus.devices_there import sharing_of

    try:
        span_s = parse_duration(since)
    except ValueError as error:
        raise BadInput(f"--since {since!r} {error}") from None
    end = until or time.time()
    api = PrometheusApi(prometheus, deployed_settings().environ, auth)
    telemetry = PrometheusTelemetry(api).read(end - span_s, end, STEP_S)
    rows = [row for row in waste(telemetry, Decimal(repr(price)), 0.0) if owner in ("", row.owner)]
    only = "" if way == "auto" else way
    kept = sharing_of(api, end, rows, model, device_gib, serving=serving, way=only)
    if not kept:
        raise Failed(f"telemetry: absent for {since} of any such pod; how it could share is not known")
    found = [one.advice for one in kept.values()]
    plans = [_plan(one, Decimal(repr(price))) for one in found]
    objects = _objects(found, plugin_namespace)
    if as_json:
        from pilotlight.tools.cli.printing import json_text

        typer.echo(json_text({"plans": plans, "objects": objects}))
    else:
        typer.echo("\n".join(_lines(plans, objects)))


def _plan(advice: "SharingAdvice", price: Decimal) -> dict[str, Any]:
    from pilotlight.tools.manifests.sharing_objects import back, forth

    targets = list(dict.fromkeys((_target(one), after) for one, after in advice.resources))
    configs = _configs(advice)
    going = advice.kind != "none"
    return {
        "owner": advice.owner,
        "way": advice.kind,
        "pods": advice.pods,
        "devices": advice.devices,
        "saved_usd_per_hour": advice.saved_usd(price),
        "why": advice.why,
        "risk": advice.risk,
        "cut": [
            {"config": name, "slices": list(profiles), "devices": count}
            for name, (profiles, count) in zip(configs, advice.layouts, strict=False)
        ],
        "then": list(forth(advice.kind, _name(advice.kind), configs, targets)) if going else [],
        "back": list(back(advice.kind, targets)) if going else [],
    }


def _objects(found: "Sequence[SharingAdvice]", namespace: str) -> list[dict[str, Any]]:
    """One ConfigMap for all that are cut, and one for all that have shares: an operator reads one of each."""
    from pilotlight.tools.manifests.sharing_objects import device_plugin, mig_manager

    layouts = {name: profiles for one in found for name, (profiles, _) in zip(_configs(one), one.layouts, strict=False)}
    shares = {_configs(one)[0]: (one.kind, one.replicas) for one in found if one.kind in ("mps", "time-slicing")}
    made = [mig_manager(_name("mig"), layouts, namespace)] if layouts else []
    return made + ([device_plugin(_name("mps"), shares, namespace)] if shares else [])


def _name(kind: str) -> str:
    return "pilotlight-slices" if kind == "mig" else "pilotlight-shares"


def _configs(advice: "SharingAdvice") -> list[str]:
    """The names of an owner's configs: one for each way in which its devices are cut."""
    name = re.sub(r"[^a-z0-9]+", "-", advice.owner.lower()).strip("-")
    return [f"{name}-{n}" for n in range(len(advice.layouts))] or [name]


def _target(one: "Slice") -> "Target":
    """The object that made a pod, by the shape of its name."""
    from pilotlight.decide.demand.classify import made_by
    from pilotlight.tools.manifests.sharing_objects import Target

    namespace, _, name = made_by(one.pod).partition("/")
    kind = "deployment" if HASHED.search(one.pod) else "statefulset" if ORDINAL.search(one.pod) else "pod"
    return Target(kind, namespace, name, one.container or "CONTAINER")


def _lines(plans: list[dict[str, Any]], objects: list[dict[str, Any]]) -> Iterator[str]:
    import msgspec
    import yaml

    for plan in plans:
        who, what = count_of(plan["pods"], "pod"), count_of(plan["devices"], "device")
        yield f"# {plan['owner']}: {who} on {what} by {plan['way']}; "
        yield f"# saves ${plan['saved_usd_per_hour']:,.2f}/h. {plan['why'][:1].upper()}{plan['why'][1:]}."
        if plan["risk"]:
            yield f"# Risk: {plan['risk']}."
        for layout in plan["cut"]:
            yield f"# Cut {count_of(layout['devices'], 'device')} as {layout['config']}: {', '.join(layout['slices'])}"
    for made in objects:
        yield "---"
        yield yaml.safe_dump(msgspec.to_builtins(made), sort_keys=False).rstrip()
    for plan in plans:
        for heading, commands in (("then", plan["then"]), ("the way back", plan["back"])):
            if commands:
                yield f"# {plan['owner']}, {heading}:"
            yield from (f"#   {command}" for command in commands)
