"""Objects of devices by claim (DRA), with the fields that are read of them: slices, classes, claims and templates.

Source: the Kubernetes API reference, v1.36, ``resource.k8s.io/v1``.
"""

import msgspec

from pilotlight.codec.kubernetes.typed_objects import Metadata, Wire


class Attribute(Wire, frozen=True):
    """Attribute of a device: one of these values."""

    truth: bool | None = msgspec.field(default=None, name="bool")
    number: int | None = msgspec.field(default=None, name="int")
    string: str | None = None
    version: str | None = None


class Capacity(Wire, frozen=True):
    """An amount."""

    value: str | int | float = 0


class Consumes(Wire, frozen=True):
    """Amounts that a device takes of a set of counters."""

    counter_set: str
    counters: dict[str, Capacity] = msgspec.field(default_factory=dict)


class DeviceTaint(Wire, frozen=True):
    """Keeps claims off a device."""

    key: str = ""
    effect: str = ""


class Device(Wire, frozen=True):
    """A device, or a part of one."""

    name: str
    attributes: dict[str, Attribute] = msgspec.field(default_factory=dict)
    capacity: dict[str, Capacity] = msgspec.field(default_factory=dict)
    consumes_counters: tuple[Consumes, ...] = ()
    taints: tuple[DeviceTaint, ...] = ()
    allow_multiple_allocations: bool | None = None


class CounterSet(Wire, frozen=True):
    """Counters that devices of one set share."""

    name: str
    counters: dict[str, Capacity] = msgspec.field(default_factory=dict)


class SlicePool(Wire, frozen=True):
    """Whose part a slice is; only the newest generation of a pool holds."""

    name: str
    generation: int = 0


class SliceSpec(Wire, frozen=True):
    """The devices of a node that one driver publishes."""

    driver: str
    pool: SlicePool
    node_name: str = ""
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Wire, frozen=True):
    """A ResourceSlice."""

    metadata: Metadata
    spec: SliceSpec


class Cel(Wire, frozen=True):
    """An expression."""

    expression: str = ""


class DeviceSelector(Wire, frozen=True):
    """Selector of devices."""

    cel: Cel = Cel()


class DeviceClassSpec(Wire, frozen=True):
    """Selectors of a class, and the resource by which pods may ask for it."""

    selectors: tuple[DeviceSelector, ...] = ()
    extended_resource_name: str = ""


class DeviceClass(Wire, frozen=True):
    """A DeviceClass."""

    metadata: Metadata
    spec: DeviceClassSpec = DeviceClassSpec()


class CapacityRequests(Wire, frozen=True):
    """Amounts of a device, by name."""

    requests: dict[str, str | int | float] | None = None


class ExactRequest(Wire, frozen=True):
    """So many devices of a class."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool = False
    capacity: CapacityRequests | None = None


class DeviceRequest(Wire, frozen=True):
    """Devices, or the first alternative that is there."""

    name: str = ""
    exactly: ExactRequest | None = None
    first_available: tuple[ExactRequest, ...] = ()


class Constraint(Wire, frozen=True):
    """Attribute in which all devices of a claim have to agree, or to differ."""

    match_attribute: str = ""
    distinct_attribute: str = ""
    requests: tuple[str, ...] = ()


class ClaimDevices(Wire, frozen=True):
    """Requests of a claim, and the constraints over all of them."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[Constraint, ...] = ()


class DeviceClaimSpec(Wire, frozen=True):
    """Spec of a claim for devices."""

    devices: ClaimDevices = ClaimDevices()


class Result(Wire, frozen=True):
    """A device that a claim has."""

    driver: str
    pool: str
    device: str
    admin_access: bool = False


class Results(Wire, frozen=True):
    """The devices that a claim has."""

    results: tuple[Result, ...] = ()


class Allocation(Wire, frozen=True):
    """Allocation of a claim."""

    devices: Results = Results()


class Consumer(Wire, frozen=True):
    """Consumer of a claim: a pod."""

    name: str = ""
    uid: str = ""


class DeviceClaimStatus(Wire, frozen=True):
    """Status of a claim for devices."""

    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()


class ResourceClaim(Wire, frozen=True):
    """A ResourceClaim."""

    metadata: Metadata
    spec: DeviceClaimSpec = DeviceClaimSpec()
    status: DeviceClaimStatus = DeviceClaimStatus()


class TemplateSpec(Wire, frozen=True):
    """The claim to make."""

    spec: DeviceClaimSpec = DeviceClaimSpec()


class ResourceClaimTemplate(Wire, frozen=True):
    """A ResourceClaimTemplate."""

    metadata: Metadata
    spec: TemplateSpec = TemplateSpec()


class Devices(Wire, frozen=True):
    """All of it, by name; ``readable`` tells whether it could be listed."""

    slices: dict[str, ResourceSlice] = msgspec.field(default_factory=dict)
    classes: dict[str, DeviceClass] = msgspec.field(default_factory=dict)
    claims: dict[str, ResourceClaim] = msgspec.field(default_factory=dict)
    templates: dict[str, ResourceClaimTemplate] = msgspec.field(default_factory=dict)
    readable: bool = True
