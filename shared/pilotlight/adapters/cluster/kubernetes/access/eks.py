"""Clusters that EKS knows: address and CA by ``DescribeCluster``, the token signed here.

The token is aws-iam-authenticator's: a presigned ``GetCallerIdentity`` whose signature covers the cluster's name.
"""

import base64
import time
from collections.abc import Mapping
from threading import Lock
from typing import Any

from pilotlight.adapters.aws_api import refusals
from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.forms import address
from pilotlight.adapters.cluster.kubernetes.access.server_access import Access
from pilotlight.adapters.http import Broken
from pilotlight.errors import BadInput, Forbidden, PilotlightError, Unavailable
from pilotlight.units import Seconds

TOKEN_S: Seconds = 14 * 60
"""The API server takes such a token for 15 minutes."""
WAIT_S: Seconds = 10
SIGNED_FOR_S = 60
"""As aws-iam-authenticator signs; the API server counts from the moment of the signature."""
NAME_HEADER = "x-k8s-aws-id"


class EksCluster:
    """A cluster of a region, entered with the credential of its pools: this process's, or that of a ``role``.

    Raises ``BadInput`` for a region that is not served.
    """

    def __init__(self, region: str, name: str, environ: Mapping[str, str], role: str = "") -> None:
        self._region, self._name, self._environ = region, name, environ
        self._sts = address("sts", region, {})
        self._credentials = Credentials(region, environ, role)
        self._where: tuple[str, str] | None = None
        self._token, self._ends = "", 0.0
        self._lock = Lock()

    def access(self, *, anew: bool = False) -> Access:
        with self._lock:
            if anew:
                self._where, self._ends = None, 0.0
            if self._where is None or time.monotonic() >= self._ends:
                self._where, self._token = self._renewed()
                self._ends = time.monotonic() + TOKEN_S
            return Access(server=self._where[0], ca=self._where[1], token=self._token)

    def _renewed(self) -> tuple[tuple[str, str], str]:
        try:
            import botocore.session
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError:
            raise BadInput("PILOTLIGHT_API is an EKS cluster: needs boto3; run pip install 'pilotlight[aws]'") from None
        where = f"EKS {self._region}/{self._name}"
        try:
            session: Any = botocore.session.get_session()
            session.set_credentials(*self._credentials.keys()[:3])
            return self._where or self._ask(session), self._signed(session, session.get_credentials())
        except ClientError as error:
            raise _refusal(error.response, where) from None
        except (BotoCoreError, Broken) as error:
            raise Unavailable(f"{where}: {error}") from None

    def _ask(self, session: Any) -> tuple[str, str]:
        from botocore.config import Config

        from pilotlight.adapters.aws_wire import Wire

        bounds = Config(retries={"total_max_attempts": 2, "mode": "standard"})
        client = session.create_client("eks", region_name=self._region, config=bounds)
        client.meta.events.register("before-send.eks", Wire(WAIT_S, self._environ).send)
        cluster = client.describe_cluster(name=self._name)["cluster"]
        if not cluster.get("endpoint"):
            raise Unavailable(f"EKS {self._region}/{self._name}: has no endpoint yet")
        return str(cluster["endpoint"]), base64.b64decode(cluster["certificateAuthority"]["data"]).decode()

    def _signed(self, session: Any, credentials: Any) -> str:
        from botocore.model import ServiceId
        from botocore.signers import RequestSigner

        events = session.get_component("event_emitter")
        request = {
            "method": "GET",
            "url": f"{self._sts}/?Action=GetCallerIdentity&Version=2011-06-15",
            "body": {},
            "headers": {NAME_HEADER: self._name},
            "context": {},
        }
        url = RequestSigner(ServiceId("STS"), self._region, "sts", "v4", credentials, events).generate_presigned_url(
            request, region_name=self._region, expires_in=SIGNED_FOR_S, operation_name=""
        )
        return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


def _refusal(response: Any, where: str) -> PilotlightError:
    code, status = response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]
    if code == "ResourceNotFoundException":
        return BadInput(f"{where}: is not there; name eks:REGION/NAME in PILOTLIGHT_API")
    if status == 429 or status >= 500 or "Throttling" in code:
        return Unavailable(f"{where}: {status} {code}")
    fix = refusals.FORBIDDEN.get(code, refusals.RIGHTS)
    return Forbidden(f"{where}: {status} {code}; {'grant eks:DescribeCluster' if fix == refusals.RIGHTS else fix}")
