"""Readings of a node's GPUs at one moment, and the pods that hold them. A figure that no device tells is None."""

import msgspec


class DeviceHolder(msgspec.Struct, frozen=True, kw_only=True):
    """A container that holds a device."""

    namespace: str
    pod: str
    container: str = ""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU, or one MIG slice of it: percent, MiB, watts, Celsius, millijoules."""

    gpu: int  # The device's index on the node.
    uuid: str  # The device's.
    model: str = ""  # As NVML names it.
    bus: str = ""  # PCI bus id.
    slice: str = ""
    """The slice's number (GPU_I_ID); empty for a whole GPU."""
    profile: str = ""  # Of the MIG slice, as 1g.10gb; empty for a whole GPU.
    slice_uuid: str = ""  # The MIG slice's.
    active: float | None = None  # Ratio of the time since the last look; None: not told.
    util: float | None = None  # Percent, of the device's last sample; None: not told.
    used: float | None = None  # Memory in MiB; None: not told.
    free: float | None = None  # Memory in MiB; None: not told.
    watts: float | None = None  # Power now; None: not told.
    celsius: float | None = None  # Of the GPU; None: not told.
    millijoules: float | None = None  # Energy since the driver was loaded; None: not told.
