"""Readings of a node's GPUs at one moment, and the pods that hold them. A figure that no device tells is None."""

import msgspec


class DeviceHolder(msgspec.Struct, frozen=True, kw_only=True):
    """A container that holds a device."""

    namespace: str
    pod: str
    container: str = ""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU, or one MIG slice of it: percent, MiB, watts, Celsius, millijoules."""

    gpu: int
    uuid: str
    model: str = ""
    bus: str = ""
    slice: str = ""
    """The slice's number (GPU_I_ID); empty for a whole GPU."""
    profile: str = ""
    slice_uuid: str = ""
    util: float | None = None
    used: float | None = None
    free: float | None = None
    watts: float | None = None
    celsius: float | None = None
    millijoules: float | None = None
