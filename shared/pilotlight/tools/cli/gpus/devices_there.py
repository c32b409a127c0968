"""Devices of pods by model and memory, as a Prometheus tells them, and the ways in which their owners could share."""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Annotated, NamedTuple

import typer

from pilotlight.adapters.prometheus_api import PrometheusApi
from pilotlight.decide.utilisation.gpu_waste import Waste
from pilotlight.errors import BadInput
from pilotlight.tools.advice.mig_profiles import MODELS, Model, model_of
from pilotlight.tools.advice.ways_to_share import Kept, advise, saving_ways

MIB_PER_GIB = 1024
MEMORY = (
    "max by (UUID,Hostname,gpu,modelName) "
    "(last_over_time(DCGM_FI_DEV_FB_USED[1h]) + last_over_time(DCGM_FI_DEV_FB_FREE[1h]))"
)

ModelName = Annotated[str, typer.Option("--model", help="Model of the GPUs, for MIG; left out: as Prometheus tells.")]
DeviceGib = Annotated[
    float | None, typer.Option("--device-gib", min=1, help="Memory of a device; left out: as Prometheus tells.")
]
Serving = Annotated[bool, typer.Option("--serving/--no-serving", help="They serve: nothing may cost their P99.")]


class Device(NamedTuple):
    """Model as DCGM names it, and memory in MiB."""

    model: str
    mib: float


def sharing_of(
    api: PrometheusApi, at_s: float, rows: Iterable[Waste], model: str, gib: float | None, *, serving: bool, way: str
) -> dict[str, Kept]:
    """By owner with pods that have a device alone. ``way``: the only one that may be taken, or "". Raises BadInput."""
    if model and model not in MODELS:
        raise BadInput(f"--model {model!r} cannot be cut, or is not known: write {', '.join(MODELS)}")
    there: Mapping[str, Device] = {} if model and gib else _devices(api, at_s)
    found = {}
    for row in rows:
        if not row.slices:
            continue
        told = [there.get(one.device, Device("", 0.0)) for one in row.slices]
        mib = gib * MIB_PER_GIB if gib else min(device.mib for device in told)
        models = {model_of(device.model, device.mib) for device in told}
        cut: Model | None = MODELS[model] if model else models.pop() if len(models) == 1 else None
        ways = tuple(saving_ways(row, cut, mib, serving=serving))
        found[row.owner] = Kept(advise(row, cut, mib, serving=serving, only=way), ways)
    return found


def _devices(api: PrometheusApi, at_s: float) -> dict[str, Device]:
    """By UUID, or host and number, as telemetry names devices."""
    found = {}
    for labels, text in api.vector(MEMORY, at_s):
        mib = float(text)
        if isfinite(mib) and mib > 0:
            name = labels.get("UUID") or f"{labels.get('Hostname', '')}/{labels.get('gpu', '')}"
            found[name] = Device(labels.get("modelName", ""), mib)
    return found
