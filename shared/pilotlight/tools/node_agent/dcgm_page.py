"""Readings of GPUs as the page that Prometheus reads, in dcgm-exporter's names and labels.

A device that nobody holds has empty labels of a pod, as there; one that several containers share is told once for each,
with ``vgpu``, and each has the figures of the whole device. What a device does not tell has no line.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pilotlight.tools.node_agent.gpu_readings import DeviceHolder, Reading

FAMILIES = {
    "DCGM_FI_DEV_GPU_UTIL": ("util", "GPU utilization (in %)."),
    "DCGM_FI_DEV_FB_USED": ("used", "Framebuffer memory used (in MiB)."),
    "DCGM_FI_DEV_FB_FREE": ("free", "Framebuffer memory free (in MiB)."),
    "DCGM_FI_DEV_POWER_USAGE": ("watts", "Power draw (in W)."),
    "DCGM_FI_DEV_GPU_TEMP": ("celsius", "GPU temperature (in C)."),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("millijoules", "Energy since the driver was loaded (in mJ)."),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("active", "Ratio of time the graphics engine is active."),
}
NAMES = ("gpu", "UUID", "pci_bus_id", "device", "modelName", "GPU_I_PROFILE", "GPU_I_ID", "Hostname")
HELD = ("container", "namespace", "pod", "vgpu")

Holders = Mapping[str, tuple[DeviceHolder, ...]]


def page(readings: Iterable[Reading], held: Holders, host: str, accepts: str) -> tuple[bytes, str]:
    """The body and its content type, for an Accept header."""
    from prometheus_client.exposition import choose_encoder

    encode, kind = choose_encoder(accepts)
    families = list(_families(list(readings), held, host))
    return encode(type("Page", (), {"collect": lambda _: families})()), kind


def _families(readings: list[Reading], held: Holders, host: str) -> Iterator[Any]:
    from prometheus_client import core

    for name, (field, what) in FAMILIES.items():
        family = core.GaugeMetricFamily(name, what, labels=(*NAMES, *HELD))
        for one in readings:
            value = getattr(one, field)
            if value is None:
                continue
            for who in _pods(one, held):
                family.add_metric((*_labels(one, host), *who), value)
        yield family


def _labels(one: Reading, host: str) -> tuple[str, ...]:
    return (str(one.gpu), one.uuid, one.bus, f"nvidia{one.gpu}", one.model, one.profile, one.slice, host)


def _pods(one: Reading, held: Holders) -> list[tuple[str, str, str, str]]:
    """Container, namespace, pod and share of each that holds it, by any id that a device plugin may give it."""
    ids = [one.slice_uuid, f"nvidia{one.gpu}/gi{one.slice}"] if one.slice else [one.uuid, f"nvidia{one.gpu}"]
    shares = [(key, who) for key, holders in sorted(held.items()) if _device(key) in ids for who in holders]
    if len(shares) < 2:
        return [(who.container, who.namespace, who.pod, "") for _, who in shares] or [("", "", "", "")]
    return [(who.container, who.namespace, who.pod, str(n)) for n, (_, who) in enumerate(shares)]


def _device(key: str) -> str:
    """A device id without its share: NVIDIA's plugin writes UUID::N, GKE's nvidia0/vgpu1."""
    return key.partition("::")[0].partition("/vgpu")[0]
