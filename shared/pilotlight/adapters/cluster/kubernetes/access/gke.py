"""Clusters that GKE knows: address and CA from its REST interface (v1 ``Cluster``), the token from Google.

The address is asked once; both are asked anew when they were refused.
"""

import base64
from contextlib import suppress
from threading import Lock
from urllib.parse import quote

import msgspec

from pilotlight import typed_json
from pilotlight.adapters.cluster.kubernetes.access.server_access import Access
from pilotlight.adapters.google_token import GoogleToken
from pilotlight.adapters.http import Broken, HttpAnswer, fetch
from pilotlight.errors import BadInput, Forbidden, Unavailable
from pilotlight.units import Seconds

GKE = "https://container.googleapis.com"
WAIT_S: Seconds = 10
TRIES = 3


class _Master(msgspec.Struct, frozen=True, rename="camel"):
    cluster_ca_certificate: str = ""


class _Dns(msgspec.Struct, frozen=True):
    endpoint: str = ""


class _Endpoints(msgspec.Struct, frozen=True, rename="camel"):
    dns_endpoint_config: _Dns = _Dns()


class _GkeCluster(msgspec.Struct, frozen=True, rename="camel"):
    endpoint: str = ""
    master_auth: _Master = _Master()
    control_plane_endpoints_config: _Endpoints = _Endpoints()


class GkeCluster:
    """``name`` is "projects/P/locations/L/clusters/C". Its DNS endpoint has a certificate that every system trusts."""

    def __init__(self, name: str, *, dns: bool = False, credentials_file: bool = False, host: str = GKE) -> None:
        self._name, self._dns, self._host = name, dns, host
        self._file = credentials_file
        self._token = GoogleToken(file=credentials_file)
        self._where: tuple[str, str] | None = None
        self._lock = Lock()

    def access(self, *, anew: bool = False) -> Access:
        with self._lock:
            if anew:
                self._token, self._where = GoogleToken(file=self._file), None
            token = self._token.header()["Authorization"].removeprefix("Bearer ")
            self._where = self._where or self._ask(token)
        return Access(server=self._where[0], ca=self._where[1], token=token)

    def _ask(self, token: str) -> tuple[str, str]:
        where = f"GKE {self._name}"
        try:
            answer = self._asked(token)
            cluster = typed_json.decode(answer.body, _GkeCluster)
        except Broken as error:
            raise Unavailable(f"{where}: {error}") from None
        except msgspec.DecodeError:
            raise Unavailable(f"{where}: answers {answer.status} with what is no cluster") from None
        if answer.status != 200:
            raise _refusal(answer.status, where)
        if self._dns:
            host = cluster.control_plane_endpoints_config.dns_endpoint_config.endpoint
            if not host:
                raise BadInput(f"{where}: has no DNS endpoint; leave out ?dns, or enable it on the cluster")
            return f"https://{host}", ""
        if not cluster.endpoint:
            raise Unavailable(f"{where}: has no endpoint yet")
        return f"https://{cluster.endpoint}", base64.b64decode(cluster.master_auth.cluster_ca_certificate).decode()

    def _asked(self, token: str) -> HttpAnswer:
        """Google's answer, in a few tries: reading changes nothing."""
        url, headers = f"{self._host}/v1/{quote(self._name)}", {"Authorization": f"Bearer {token}"}
        for _ in range(TRIES - 1):
            with suppress(Broken):
                return fetch(url, WAIT_S, headers=headers)
        return fetch(url, WAIT_S, headers=headers)


def _refusal(status: int, where: str) -> Exception:
    if status == 404:
        return BadInput(f"{where}: is not there; name projects/P/locations/L/clusters/C in PILOTLIGHT_API")
    if status in (401, 403):
        return Forbidden(f"{where}: {status}; grant roles/container.clusterViewer")
    return Unavailable(f"{where}: {status}")
