"""GPUs of this machine by NVML (the package nvidia-ml-py), or by its recorded answers where there is no GPU.

What a device does not support it does not tell: a slice has no utilisation of its own, and none is made up for it.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec

from pilotlight import typed_json
from pilotlight.errors import BadInput, Unavailable
from pilotlight.tools.node_agent.engine_activity import EngineActivity
from pilotlight.tools.node_agent.gpu_readings import DeviceHolder, Reading

MIB = 1024 * 1024
TEMPERATURE_GPU = 0
ON = 1
MEMORY_V2 = 0x02000028
"""nvmlMemory_v2: its used memory is what processes hold; version 1 counts the driver's own (615 MiB on an H200) too."""


class Nvml(Protocol):
    """NVML's functions by name; what one answers is read by attributes."""

    def ask(self, function: str, *arguments: Any) -> Any:
        """The answer; None where the device does not support it. Raises ``Unavailable``."""
        ...

    def active(self, handle: Any, uuid: str) -> float | None:
        """Ratio of the time since the last look in which the device's engine was busy; None: not told."""
        ...


class RealNvml:
    """This machine's driver."""

    def __init__(self) -> None:
        import pynvml

        self._nvml = pynvml
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise Unavailable(f"NVML: {error}; is NVIDIA's driver here? (--recorded FILE runs without)") from None
        self._engines = EngineActivity(pynvml)
        with suppress(Unavailable):
            list(readings(self))  # The first look of each device, from which the next one counts.

    def active(self, handle: Any, uuid: str) -> float | None:
        return self._engines.since_last(handle, uuid)

    def ask(self, function: str, *arguments: Any) -> Any:
        absent = ("NotSupported", "NotFound", "NoPermission", "FunctionNotFound")
        try:
            return getattr(self._nvml, function)(*arguments)
        except tuple(getattr(self._nvml, f"NVMLError_{name}") for name in absent):
            return None
        except self._nvml.NVMLError as error:
            raise Unavailable(f"NVML: {function}: {error}") from None


class Device(msgspec.Struct, frozen=True):
    """A device's recorded answers by function, and its slices."""

    answers: Mapping[str, Any]
    slices: tuple[Mapping[str, Any], ...] = ()


class Look(msgspec.Struct, frozen=True):
    """Answers of one look, and the containers that held each device id."""

    devices: tuple[Device, ...]
    held: Mapping[str, tuple[DeviceHolder, ...]] = {}


class RecordedNvml:
    """Answers of a file, look by look; after the last it stays as it was."""

    def __init__(self, path: Path) -> None:
        try:
            self._looks = typed_json.decode(path.read_bytes(), list[Look])
        except OSError as error:
            raise BadInput(f"--recorded {path}: {error.strerror}; name a file that can be read") from None
        except msgspec.DecodeError as error:
            raise BadInput(
                f"--recorded {path}: {error}; write looks as pilotlight show examples/cluster/gpu_looks.json prints"
            ) from None
        if not self._looks:
            raise BadInput(f"--recorded {path}: it has no look")
        self._next = -1

    def turn(self) -> Look:
        """The next look."""
        self._next = min(self._next + 1, len(self._looks) - 1)
        return self._looks[self._next]

    def active(self, handle: Any, uuid: str) -> float | None:
        percent = handle.answers.get("nvmlGpmMetricsGet")
        return None if percent is None else float(percent) / 100

    def ask(self, function: str, *arguments: Any) -> Any:
        look = self._looks[max(0, self._next)]
        if function == "nvmlDeviceGetCount":
            return len(look.devices)
        if function == "nvmlDeviceGetHandleByIndex":
            return look.devices[arguments[0]]
        if function == "nvmlDeviceGetMaxMigDeviceCount":
            return len(arguments[0].slices)
        if function == "nvmlDeviceGetMigDeviceHandleByIndex":
            return Device(arguments[0].slices[arguments[1]])
        return _read(arguments[0].answers.get(function))


class _Fields:
    """An answer of several fields."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self.__dict__.update(fields)


def _read(answer: Any) -> Any:
    return _Fields(answer) if isinstance(answer, dict) else answer


def readings(nvml: Nvml) -> Iterator[Reading]:
    """Every GPU, or its slices where it is cut."""
    for gpu in range(nvml.ask("nvmlDeviceGetCount")):
        handle = nvml.ask("nvmlDeviceGetHandleByIndex", gpu)
        bus = nvml.ask("nvmlDeviceGetPciInfo", handle)
        whole: dict[str, Any] = {
            "gpu": gpu,
            "uuid": _words(nvml.ask("nvmlDeviceGetUUID", handle)),
            "model": _words(nvml.ask("nvmlDeviceGetName", handle)),
            "bus": _words(bus.busId) if bus else "",
            "watts": _over(nvml.ask("nvmlDeviceGetPowerUsage", handle), 1000),
            "celsius": _over(nvml.ask("nvmlDeviceGetTemperature", handle, TEMPERATURE_GPU), 1),
            "millijoules": _over(nvml.ask("nvmlDeviceGetTotalEnergyConsumption", handle), 1),
        }
        mode = nvml.ask("nvmlDeviceGetMigMode", handle)
        if mode and mode[0] == ON:
            yield from _slices(nvml, handle, whole)
        else:
            yield Reading(**whole, active=nvml.active(handle, whole["uuid"]), **_use(nvml, handle))


def _slices(nvml: Nvml, handle: Any, whole: Mapping[str, Any]) -> Iterator[Reading]:
    for n in range(nvml.ask("nvmlDeviceGetMaxMigDeviceCount", handle) or 0):
        part = nvml.ask("nvmlDeviceGetMigDeviceHandleByIndex", handle, n)
        if part is None:
            continue
        named = nvml.ask("nvmlDeviceGetAttributes_v2", part)
        gb = round(named.memorySizeMB / 1024) if named else 0
        yield Reading(
            **whole,
            slice=str(nvml.ask("nvmlDeviceGetGpuInstanceId", part)),
            profile=f"{named.gpuInstanceSliceCount}g.{gb}gb" if named else "",
            slice_uuid=_words(nvml.ask("nvmlDeviceGetUUID", part)),
            **_use(nvml, part),
        )


def _use(nvml: Nvml, handle: Any) -> dict[str, Any]:
    rates = nvml.ask("nvmlDeviceGetUtilizationRates", handle)
    memory = nvml.ask("nvmlDeviceGetMemoryInfo", handle, MEMORY_V2) or nvml.ask("nvmlDeviceGetMemoryInfo", handle)
    return {
        "util": _over(rates.gpu, 1) if rates else None,
        "used": _over(memory.used, MIB) if memory else None,
        "free": _over(memory.free, MIB) if memory else None,
    }


def _over(value: Any, by: float) -> float | None:
    return None if value is None else value / by


def _words(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
