"""Clusters that GKE knows: address and CA from its REST interface (v1 ``Cluster``), the token from Google.

The address is asked once; both are asked anew when they were refused.
"""

import base64
from threading import Lock
from urllib.parse import quote

import msgspec
import urllib3

from pilotlight.adapters.cluster.kubernetes.access import Access
from pilotlight.adapters.google_token import GoogleToken
from pilotlight.errors import BadInput, Forbidden, Unavailable

GKE = "https://container.googleapis.com"


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
        self._http = urllib3.PoolManager(timeout=urllib3.Timeout(connect=3, read=10), retries=urllib3.Retry(2))
        self._file = credentials_file
        self._token = GoogleToken(self._http, file=credentials_file)
        self._where: tuple[str, str] | None = None
        self._lock = Lock()

    def access(self, *, anew: bool = False) -> Access:
        with self._lock:
            if anew:
                self._token, self._where = GoogleToken(self._http, file=self._file), None
            token = self._token.header()["Authorization"].removeprefix("Bearer ")
            self._where = self._where or self._ask(token)
        return Access(server=self._where[0], ca=self._where[1], token=token)

    def _ask(self, token: str) -> tuple[str, str]:
        where = f"GKE {self._name}"
        try:
            answer = self._http.request(
                "GET", f"{self._host}/v1/{quote(self._name)}", headers={"Authorization": f"Bearer {token}"}
            )
            cluster = msgspec.json.decode(answer.data, type=_GkeCluster)
        except urllib3.exceptions.HTTPError as error:
            raise Unavailable(f"{where}: {type(error).__name__}") from None
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


def _refusal(status: int, where: str) -> Exception:
    if status == 404:
        return BadInput(f"{where}: is not there; name projects/P/locations/L/clusters/C in PILOTLIGHT_API")
    if status in (401, 403):
        return Forbidden(f"{where}: {status}; grant roles/container.clusterViewer")
    return Unavailable(f"{where}: {status}")
