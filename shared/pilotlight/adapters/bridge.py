"""From EventBridge to Pub/Sub: a Lambda shows Google who it is at AWS, and gets a token. Nothing is stored.

The identity is a signed GetCallerIdentity request that Google sends to AWS (docs.cloud.google.com, "Workload Identity
Federation with AWS"; the exchange is RFC 8693). botocore and urllib3 come with Lambda's Python, so the bundle has no
requirements: google-auth would bring cryptography, which is larger than all of this and built for one platform.
"""

import base64
import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import urllib3

from pilotlight.errors import BadInput, Denied, Forbidden, Unavailable

STS = "https://sts.googleapis.com/v1/token"
PUBSUB = "https://pubsub.googleapis.com/v1"
SCOPE = "https://www.googleapis.com/auth/pubsub"
WAIT_S = 8.0
"""Seconds for one call: three fit into the Lambda's thirty."""
EARLY_S = 60.0
"""A token is taken anew so long before it ends."""


class Bridge:
    """``BRIDGE_AUDIENCE`` names the identity provider at Google, ``BRIDGE_TOPICS`` (JSON) a topic for each detail-type.

    ``BRIDGE_STS`` and ``BRIDGE_PUBSUB`` stand in for Google's addresses in tests.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        try:
            self._audience = environ["BRIDGE_AUDIENCE"]
            self._topics: dict[str, str] = json.loads(environ["BRIDGE_TOPICS"])
        except KeyError as error:
            raise BadInput(
                f"the environment variable {error} is not set; deploy it with Pilotlight's Terraform"
            ) from None
        self._sts, self._pubsub = environ.get("BRIDGE_STS", STS), environ.get("BRIDGE_PUBSUB", PUBSUB)
        self._http = urllib3.PoolManager(timeout=WAIT_S, retries=False)
        self._token, self._ends = "", 0.0

    def forward(self, event: Mapping[str, object]) -> str:
        """Publish the event as it is; the message's id. Raises ``BadInput``, ``Denied`` or ``Unavailable``."""
        kind = str(event.get("detail-type"))
        if kind not in self._topics:
            raise BadInput(f"{kind}: no rule of the bridge sends this; it knows {', '.join(self._topics)}")
        attributes = {"source": "aws.events", "detailType": kind, "eventId": str(event.get("id", ""))}
        message = {"data": base64.b64encode(json.dumps(event).encode()).decode(), "attributes": attributes}
        answer = self._post(
            f"{self._pubsub}/{self._topics[kind]}:publish",
            json.dumps({"messages": [message]}),
            {"Authorization": f"Bearer {self._access_token()}", "Content-Type": "application/json"},
        )
        return str(answer["messageIds"][0])

    def _access_token(self) -> str:
        if time.monotonic() >= self._ends:
            form = {
                "audience": self._audience,
                "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
                "requested_token_type": "urn:ietf:params:oauth:token-type:access_token",
                "scope": SCOPE,
                "subject_token": _identity(self._audience),
                "subject_token_type": "urn:ietf:params:aws:token-type:aws4_request",
            }
            answer = self._post(self._sts, urlencode(form), {"Content-Type": "application/x-www-form-urlencoded"})
            self._token = str(answer["access_token"])
            self._ends = time.monotonic() + float(answer["expires_in"]) - EARLY_S
        return self._token

    def _post(self, url: str, body: str, headers: dict[str, str]) -> dict[str, Any]:
        host = url.split("/")[2]
        try:
            answer = self._http.request("POST", url, body=body, headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise Unavailable(f"{host}: {type(error).__name__}") from None
        if answer.status == 429 or answer.status >= 500:
            raise Unavailable(f"{host} answers {answer.status}")
        if answer.status in (401, 403):
            raise Forbidden(f"{host} answers {answer.status}: does the identity pool name this account and role?")
        if answer.status != 200:
            raise Denied(f"{host} answers {answer.status}")
        return dict(json.loads(answer.data))


def _identity(audience: str) -> str:
    """A GetCallerIdentity request, signed as this Lambda's role, that Google may send in its place."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.session import Session

    session = Session()
    region = session.get_config_variable("region") or "us-east-1"
    host = f"sts.{region}.amazonaws.com"
    url = f"https://{host}?Action=GetCallerIdentity&Version=2011-06-15"
    request = AWSRequest(method="POST", url=url, headers={"host": host, "x-goog-cloud-target-resource": audience})
    credentials = session.get_credentials()
    if credentials is None:
        raise Forbidden("no AWS credentials here: the bridge runs as a Lambda with a role")
    SigV4Auth(credentials, "sts", region).add_auth(request)
    headers = [{"key": key.lower(), "value": value} for key, value in request.headers.items()]
    return quote(json.dumps({"url": url, "method": "POST", "headers": headers}, separators=(",", ":")))
