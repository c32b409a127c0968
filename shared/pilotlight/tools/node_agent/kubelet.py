"""Holders of this node's devices: kubelet's pod-resources socket, asked over gRPC (the package grpcio)."""

from collections.abc import Mapping

from pilotlight.errors import Unavailable
from pilotlight.tools.node_agent.gpu_readings import DeviceHolder
from pilotlight.tools.node_agent.pod_resources import decode_holders
from pilotlight.units import Seconds

SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
METHOD = "/v1.PodResourcesLister/List"
WITHIN_S: Seconds = 5.0
LARGEST = 16 * 1024 * 1024


def holders(socket: str = SOCKET) -> Mapping[str, tuple[DeviceHolder, ...]]:
    """Containers by the id of the device that they hold. Raises ``Unavailable``."""
    import grpc

    with grpc.insecure_channel(f"unix://{socket}", [("grpc.max_receive_message_length", LARGEST)]) as channel:
        ask = channel.unary_unary(METHOD, request_serializer=bytes, response_deserializer=bytes)
        try:
            return decode_holders(ask(b"", timeout=WITHIN_S))
        except grpc.RpcError as error:
            raise Unavailable(f"kubelet at {socket}: {error.code().name}; is the socket's folder mounted?") from None
