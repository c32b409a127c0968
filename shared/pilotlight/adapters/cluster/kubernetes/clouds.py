"""Clusters that a cloud knows: GKE by Google's token, EKS by a signed identity.

The address and CA are asked once; the credential is made anew before it ends. Shapes: GKE REST v1 ``Cluster``, EKS
``DescribeCluster``, and aws-iam-authenticator's token (a presigned ``GetCallerIdentity``).
"""

import base64
import time
from threading import Lock
from urllib.parse import quote

import msgspec
import urllib3

from pilotlight.adapters.cluster.kubernetes.access import Access
from pilotlight.adapters.google_token import GoogleToken
from pilotlight.errors import BadInput, Forbidden, Unavailable
from pilotlight.units import Seconds

GKE = "https://container.googleapis.com"
EKS_TOKEN_S: Seconds = 14 * 60
"""The API server takes such a token for 15 minutes."""
SIGNED_FOR_S = 60
"""As aws-iam-authenticator signs: the header's time, not this, bounds the token."""


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


class EksCluster:
    """A cluster of a region. The credential is what botocore finds: an environment, a role, a profile."""

    def __init__(self, region: str, name: str) -> None:
        self._region, self._name = region, name
        self._where: tuple[str, str] | None = None
        self._token, self._ends = "", 0.0
        self._lock = Lock()

    def access(self, *, anew: bool = False) -> Access:
        with self._lock:
            if anew:
                self._where, self._ends = None, 0.0
            if self._where is None or time.monotonic() >= self._ends:
                self._renew()
            server, ca = self._where or ("", "")
            return Access(server=server, ca=ca, token=self._token)

    def _renew(self) -> None:
        try:
            import botocore.session
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError:
            raise BadInput("PILOTLIGHT_API is an EKS cluster: needs boto3; install pilotlight[aws]") from None
        where, session = f"EKS {self._region}/{self._name}", botocore.session.get_session()
        try:
            self._where = self._where or self._ask(session)
            self._token = self._sign(session)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == "ResourceNotFoundException":
                raise BadInput(f"{where}: is not there; name eks:REGION/NAME in PILOTLIGHT_API") from None
            raise Forbidden(f"{where}: {code}; grant eks:DescribeCluster") from None
        except BotoCoreError as error:
            raise Unavailable(f"{where}: {error}") from None
        self._ends = time.monotonic() + EKS_TOKEN_S

    def _ask(self, session: object) -> tuple[str, str]:
        client = session.create_client("eks", region_name=self._region)  # type: ignore[attr-defined]
        cluster = client.describe_cluster(name=self._name)["cluster"]
        ca = base64.b64decode(cluster["certificateAuthority"]["data"]).decode()
        return str(cluster["endpoint"]), ca

    def _sign(self, session: object) -> str:
        from botocore.signers import RequestSigner

        client = session.create_client("sts", region_name=self._region)  # type: ignore[attr-defined]
        credentials = session.get_credentials()  # type: ignore[attr-defined]
        if credentials is None:
            raise Forbidden(f"EKS {self._region}/{self._name}: there are no AWS credentials here; give a role or keys")
        signer = RequestSigner(
            client.meta.service_model.service_id,
            self._region,
            "sts",
            "v4",
            credentials,
            session.get_component("event_emitter"),  # type: ignore[attr-defined]
        )
        url = signer.generate_presigned_url(
            {
                "method": "GET",
                "url": f"https://sts.{self._region}.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15",
                "body": {},
                "headers": {"x-k8s-aws-id": self._name},
                "context": {},
            },
            region_name=self._region,
            expires_in=SIGNED_FOR_S,
            operation_name="",
        )
        return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
