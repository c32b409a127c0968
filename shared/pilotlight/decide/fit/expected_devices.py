"""Devices that a driver is expected to publish before a node has joined, by what NVIDIA and AMD document.

Names of products and architectures, and compute capabilities, are of NVIDIA's feature discovery and data sheets;
attributes as the DRA driver for NVIDIA GPUs documents them. Memory that is not known here is left out: then a
selector of it is a finding.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from pilotlight.decide.fit.cel import evaluate_selector
from pilotlight.decide.fit.cel_values import Absent
from pilotlight.facts.capacity import Offering
from pilotlight.facts.fit.claimed_devices import DeviceKind
from pilotlight.facts.labels import GPU_PRODUCT
from pilotlight.facts.offers.catalog import NVML_MIB
from pilotlight.facts.workload import AMD, MIG_PREFIX

GPU_DRIVERS = NVIDIA_DRIVER, AMD_DRIVER = "gpu.nvidia.com", "gpu.amd.com"

_PUBLISHED = """
type productName brand architecture cudaComputeCapability driverVersion cudaDriverVersion uuid index minor profile
parentUUID parentIndex memory multiprocessors copyEngines encoders decoders jpegEngines ofaEngines
"""
"""What NVIDIA's driver documents that it publishes (dra-driver-nvidia-gpu, ``deviceinfo.go``): of a type that nobody
has seen the value may be unknown, but it will be there."""


class _Product(NamedTuple):
    name: str
    architecture: str
    compute: str


_PRODUCTS: Mapping[str, _Product] = {
    "Tesla-T4": _Product("Tesla T4", "Turing", "7.5.0"),
    "Tesla-V100-SXM2-16GB": _Product("Tesla V100-SXM2-16GB", "Volta", "7.0.0"),
    "NVIDIA-A10G": _Product("NVIDIA A10G", "Ampere", "8.6.0"),
    "NVIDIA-L4": _Product("NVIDIA L4", "Ada Lovelace", "8.9.0"),
    "NVIDIA-L40S": _Product("NVIDIA L40S", "Ada Lovelace", "8.9.0"),
    "NVIDIA-A100-SXM4-40GB": _Product("NVIDIA A100-SXM4-40GB", "Ampere", "8.0.0"),
    "NVIDIA-A100-SXM4-80GB": _Product("NVIDIA A100-SXM4-80GB", "Ampere", "8.0.0"),
    "NVIDIA-A100-80GB-PCIe": _Product("NVIDIA A100 80GB PCIe", "Ampere", "8.0.0"),
    "NVIDIA-H100-80GB-HBM3": _Product("NVIDIA H100 80GB HBM3", "Hopper", "9.0.0"),
    "NVIDIA-H200": _Product("NVIDIA H200", "Hopper", "9.0.0"),
}
"""By the label that NVIDIA's feature discovery sets."""
_BY_MODEL: Mapping[str, tuple[str, str]] = {
    "T4": ("Turing", "7.5.0"),
    "V100": ("Volta", "7.0.0"),
    "A10": ("Ampere", "8.6.0"),
    "A10G": ("Ampere", "8.6.0"),
    "L4": ("Ada Lovelace", "8.9.0"),
    "L40S": ("Ada Lovelace", "8.9.0"),
    "A100": ("Ampere", "8.0.0"),
    "H100": ("Hopper", "9.0.0"),
    "H200": ("Hopper", "9.0.0"),
    "B200": ("Blackwell", "10.0.0"),
}


def expected_devices(offering: Offering) -> tuple[DeviceKind, ...]:
    """The kinds of an offering's nodes: what was published of one that joined, else what is expected."""
    return offering.kinds or tuple(_expected(offering))


def undocumented_attribute(selectors: Iterable[str], kind: DeviceKind) -> str:
    """An attribute that devices nobody has seen may lack, at which the scheduler would then stop; else empty."""
    read = (evaluate_selector(one, replace(kind, seen=True)) for one in selectors)
    lacking = (found.name for found in read if isinstance(found, Absent))
    return next((name for name in lacking if name.removeprefix(f"{NVIDIA_DRIVER}/") not in _PUBLISHED.split()), "")


def _expected(offering: Offering) -> Iterator[DeviceKind]:
    if offering.devices:
        yield _kind(offering, offering.resource, len(offering.devices), "gpu")
    for name, count in sorted(offering.slices.items()):
        if name.startswith(MIG_PREFIX):
            yield _kind(offering, name, count, "mig", name.removeprefix(MIG_PREFIX))


def _kind(offering: Offering, resource: str, count: int, kind: str, profile: str = "") -> DeviceKind:
    if offering.resource == AMD:
        return DeviceKind(driver=AMD_DRIVER, resource=resource, count=count, seen=False, plugin=True)
    product = _PRODUCTS.get(offering.labels.get(GPU_PRODUCT, ""))
    family = (product.architecture, product.compute) if product else _BY_MODEL.get(offering.gpu_model)
    said = {"type": kind, "profile": profile, "productName": product.name if product else ""}
    said["architecture"] = family[0] if family else ""
    mib = NVML_MIB.get(offering.labels.get(GPU_PRODUCT, "")) if kind == "gpu" else None
    return DeviceKind(
        driver=NVIDIA_DRIVER,
        resource=resource,
        count=count,
        attributes={f"{NVIDIA_DRIVER}/{name}": value for name, value in said.items() if value},
        versions={f"{NVIDIA_DRIVER}/cudaComputeCapability": family[1]} if family else {},
        capacity={f"{NVIDIA_DRIVER}/memory": f"{mib}Mi"} if mib else {},
        seen=False,
        plugin=True,
    )
