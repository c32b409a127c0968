"""Kubelet's answer to ``v1.PodResourcesLister/List``: which container holds which devices.

Source: k8s.io/kubelet/pkg/apis/podresources/v1/api.proto. Only its names and device ids are read, by their field
numbers; whatever else there is, of later versions too, is passed over.
"""

from collections.abc import Iterator, Mapping

from pilotlight.errors import BadInput
from pilotlight.tools.node_agent.gpu_readings import DeviceHolder

VENDOR = "nvidia.com/"
MOST_SHIFT = 63


def decode_holders(message: bytes) -> Mapping[str, tuple[DeviceHolder, ...]]:
    """Containers by the id of NVIDIA's device that they hold. Raises ``BadInput`` for what is no such message."""
    found: dict[str, tuple[DeviceHolder, ...]] = {}
    for number, pod in _fields(message):
        if number != 1:
            continue
        name, namespace = _text(pod, 1), _text(pod, 2)
        for at, container in _fields(pod):
            if at != 3:
                continue
            holder = DeviceHolder(namespace=namespace, pod=name, container=_text(container, 1))
            for device in _devices(container):
                found[device] = (*found.get(device, ()), holder)
    return found


def _devices(container: bytes) -> Iterator[str]:
    for number, devices in _fields(container):
        if number == 2 and _text(devices, 1).startswith(VENDOR):
            yield from (_decoded(each) for at, each in _fields(devices) if at == 2)


def _text(message: bytes, number: int) -> str:
    return next((_decoded(value) for at, value in _fields(message) if at == number), "")


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise BadInput("kubelet's answer has a name that is no text") from None


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a message that have a length, by number."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == 0:
            _, at = _varint(message, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        elif kind == 2:
            length, at = _varint(message, at)
            if at + length > len(message):
                raise BadInput("kubelet's answer ends within a field")
            yield key >> 3, message[at : at + length]
            at += length
        else:
            raise BadInput(f"kubelet's answer has a field of kind {kind}, which protobuf 3 does not")
    if at > len(message):
        raise BadInput("kubelet's answer ends within a number")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message) or shift > MOST_SHIFT:
            raise BadInput("kubelet's answer ends within a number")
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
