"""AWS's query interfaces: signatures, credentials, answers, and what AWS says no with."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import ascii_letters, digits
from urllib.parse import parse_qs

import msgspec
import pytest
from answering import answering
from aws_server import KEY, KEYS, REGION, SECRET, SESSION
from aws_wire_format import signature_holds
from botocore.session import Session
from forward_proxy import forward_proxy
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.adapters import google_token
from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.forms import PARTITIONS, address
from pilotlight.adapters.aws_api.refusals import OVER_QUOTA, SHORT
from pilotlight.adapters.aws_api.services import QueryApi
from pilotlight.adapters.aws_api.signing import Keys, signed_headers
from pilotlight.adapters.aws_api.xml_answers import problem, read_answer
from pilotlight.adapters.call_timeout import Deadline
from pilotlight.adapters.clocks import SystemClock
from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.adapters.http import Broken, HttpAnswer, Site
from pilotlight.adapters.pools.asg import open_pools
from pilotlight.adapters.tunnels import site_at
from pilotlight.codec.events.aws.autoscaling import reason_of
from pilotlight.errors import (
    BadInput,
    BadRequest,
    Busy,
    Forbidden,
    NoCapacity,
    PilotlightError,
    QuotaExceeded,
    Throttled,
    Unavailable,
    Unsure,
)
from pilotlight.ports.clouds import OPEN, CloudAccount

NOW = datetime(2026, 11, 22, 7, 30, tzinfo=UTC)
LETTERS = st.text(ascii_letters + digits + "/+=", min_size=1, max_size=60)


@given(
    body=st.binary(max_size=500),
    key=st.text(ascii_letters + digits, min_size=4, max_size=30),
    secret=LETTERS,
    session=st.one_of(st.just(""), LETTERS),
    service=st.sampled_from(["autoscaling", "ec2", "sts"]),
    at=st.integers(1_600_000_000, 2_200_000_000).map(lambda s: datetime.fromtimestamp(s, UTC)),
)
def test_every_signature_is_botocores(
    body: bytes, key: str, secret: str, session: str, service: str, at: datetime
) -> None:
    """Whatever is signed, with keys that last or a role's, at any moment: botocore signs the same."""
    url = f"https://{service}.{REGION}.amazonaws.com"
    headers = signed_headers(url, body, Keys(key, secret, session), service, REGION, at)
    assert signature_holds(f"{url}/", body, headers, secret)


def test_another_secret_signs_otherwise() -> None:
    """The comparison can fail."""
    headers = signed_headers("https://ec2.amazonaws.com", b"a=b", Keys(KEY, SECRET), "ec2", REGION, NOW)
    assert not signature_holds("https://ec2.amazonaws.com/", b"a=b", headers, "another")
    assert not signature_holds("https://ec2.amazonaws.com/", b"a=c", headers, SECRET)


def test_a_credential_is_never_printed() -> None:
    """Neither its secret nor its session."""
    shown = f"{Keys(KEY, SECRET, SESSION)!r} {Keys(KEY, SECRET, SESSION)}"
    assert (SECRET in shown, SESSION in shown) == (False, False)


class _Said(msgspec.Struct, frozen=True):
    Name: str = ""
    Count: int = 0
    Sure: bool = False
    At: datetime | None = None
    Zones: tuple[str, ...] = ()


def _answer(body: bytes, status: int = 200) -> HttpAnswer:
    return HttpAnswer(status, {}, body)


def test_an_answer_is_read_by_its_types() -> None:
    """Numbers, truths, moments and lists, whatever their namespace; what is empty is as if it were not there."""
    body = (
        b'<AskResponse xmlns="x"><AskResult><Name>a</Name><Count>3</Count><Sure>true</Sure><At>2026-11-22T07:30:00.000Z'
        b"</At><Zones><member>a</member><member>b</member></Zones></AskResult></AskResponse>"
    )
    assert read_answer("Ask", _answer(body), _Said, Unavailable) == _Said("a", 3, True, NOW, ("a", "b"))
    empty = b"<AskResponse><AskResult><Zones/><Name/></AskResult></AskResponse>"
    assert read_answer("Ask", _answer(empty), _Said, Unavailable) == _Said()


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"<AskResponse><AskResult><Count>two</Count></AskResult></AskResponse>", b"<Other/>", b"\xff\xfe"],
    ids=["nothing", "a page that is cut", "a word for a number", "another answer", "no text"],
)
def test_an_answer_that_cannot_be_read_is_lost(body: bytes) -> None:
    """Whether it was done is not known: no default is put in the place of what was not understood."""
    with pytest.raises(Unsure, match="Ask cannot be read"):
        read_answer("Ask", _answer(body), _Said, Unsure)


REFUSALS = {
    "too many": (400, "Throttling", Throttled),
    "too many of EC2": (503, "RequestLimitExceeded", Throttled),
    "too many, said by status": (429, "", Throttled),
    "at work": (400, "ScalingActivityInProgress", Busy),
    "in contention": (500, "ResourceContention", Busy),
    "out of stock": (500, "InsufficientInstanceCapacity", NoCapacity),
    "no addresses": (400, "InsufficientFreeAddressesInSubnet", NoCapacity),
    "no addresses to be had": (503, "InsufficientAddressCapacity", NoCapacity),
    "no room on its host": (500, "InsufficientCapacityOnHost", NoCapacity),
    "a type that a zone does not have": (400, "Unsupported", NoCapacity),
    "a clock that is late": (403, "RequestTimeTooSkewed", Forbidden),
    "a clock that is ahead": (403, "RequestInTheFuture", Forbidden),
    "a signature that is not taken": (400, "InvalidSignatureException", Forbidden),
    "over the quota": (400, "VcpuLimitExceeded", QuotaExceeded),
    "no rights": (403, "AccessDenied", Forbidden),
    "a credential that ended": (403, "ExpiredToken", Forbidden),
    "our own mistake": (400, "ValidationError", BadRequest),
    "an outage": (503, "ServiceUnavailable", Unsure),
    "an outage without a word": (502, "", Unsure),
    "the same call at work": (500, "IdempotentCallInProgress", Unsure),
    "a request that took too long": (408, "", Unsure),
    "a redirect": (302, "", Unsure),
}


@pytest.mark.parametrize(("status", "code", "kind"), REFUSALS.values(), ids=REFUSALS)
def test_refusals_are_told_by_what_to_do_next(status: int, code: str, kind: type[PilotlightError]) -> None:
    """Each of AWS's codes is one of our errors and names the call."""
    body = f"<ErrorResponse><Error><Code>{code}</Code><Message>no</Message></Error></ErrorResponse>" if code else "<p>"
    found = problem("LaunchInstances", _answer(body.encode(), status), Keys(KEY, SECRET), Unsure)
    assert type(found) is kind
    assert "LaunchInstances" in str(found)


LATER = {
    **{f"Could not launch On-Demand Instances. {code} - no.": "no-capacity" for code in sorted(SHORT)},
    **{f"Could not launch Spot Instances. {code} - no.": "quota" for code in sorted(OVER_QUOTA)},
    "Your requested instance type (p5.48xlarge) is not supported in your requested Availability Zone (us-east-1e). "
    "Launching EC2 instance failed.": "no-capacity",
    "The requested configuration is currently not supported. Launching EC2 instance failed.": "no-capacity",
    "Could not launch On-Demand Instances. InvalidParameterValue - no. Launching EC2 instance failed.": "other",
}


@pytest.mark.parametrize(("words", "reason"), LATER.items())
def test_a_shortage_is_one_whenever_it_is_told(words: str, reason: str) -> None:
    """What LaunchInstances answers by a code, a group's activity says later in words: both mean the same."""
    assert reason_of(words) == reason


def test_what_aws_quotes_of_a_request_is_not_told() -> None:
    """A refused signature comes with the whole request in it; other messages lose what is secret."""
    for code in ("SignatureDoesNotMatch", "ValidationError"):
        body = f"<E><Error><Code>{code}</Code><Message>{SECRET} {SESSION} {KEY}</Message></Error></E>"
        said = str(problem("Ask", _answer(body.encode(), 403), Keys(KEY, SECRET, SESSION), Unavailable))
        assert [part in said for part in (SECRET, SESSION, KEY)] == [False, False, False]


def test_ec2s_errors_are_read_too() -> None:
    """EC2 nests them otherwise."""
    body = (
        b"<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>m</Message></Error></Errors></Response>"
    )
    assert type(problem("DescribeInstances", _answer(body, 403), Keys("", ""), Unavailable)) is Forbidden


def test_services_are_where_boto3_has_them() -> None:
    """Its region's address, or the one that the environment names for it or for all."""
    assert address("ec2", "eu-west-1", {}) == "https://ec2.eu-west-1.amazonaws.com"
    named = {"AWS_ENDPOINT_URL": "http://all/", "AWS_ENDPOINT_URL_AUTO_SCALING": "http://one"}
    assert [address(name, "eu-west-1", named) for name in ("autoscaling", "ec2")] == ["http://one", "http://all"]


@pytest.mark.parametrize(
    ("region", "says"),
    [
        ("cn-north-1", "China"),
        ("us-gov-west-1", "GovCloud"),
        ("eusc-de-east-1", "European Sovereign Cloud"),
        ("us-iso-east-1", "isolated"),
    ],
)
def test_a_partition_that_is_not_served_is_refused_by_its_name(region: str, says: str) -> None:
    """Before anything is asked; botocore knows each region as another partition's."""
    assert Session().get_partition_for_region(region) != "aws"
    with pytest.raises(BadInput, match=says):
        open_pools(f"{region}/prod", CloudAccount({}, SystemClock(), str, {}))
    with pytest.raises(BadInput, match=says):
        source_of(f"eks:{region}/prod", {})


def test_terraform_refuses_the_same_partitions() -> None:
    """The bridge's region begins with none of the beginnings that the code refuses, and with no other is refused."""
    rules = (Path(__file__).resolve().parents[3] / "infra/terraform/modules/settings/main.tf").read_text()
    (beginnings,) = re.findall(r'!can\(regex\("\^\(([^)]*)\)", s\.aws\.region\)\)', rules)
    assert set(beginnings.split("|")) == set(PARTITIONS)


def test_services_are_reached_by_the_proxy_that_the_environment_names() -> None:
    """The proxy tunnels to the service's own name; what NO_PROXY excepts, and plain HTTP, goes past it."""
    with forward_proxy("127.0.0.1:9", "me:word") as proxy:
        own = {"HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}", "NO_PROXY": "sts.eu-west-1.amazonaws.com,.internal"}
        with pytest.raises(Broken, match="answers 407"), Deadline(30) as deadline:
            site_at("https://ec2.eu-west-1.amazonaws.com", own).ask(deadline, "GET", "/")
        past = [site_at(url, own) for url in ("https://sts.eu-west-1.amazonaws.com", "https://a.internal", "http://b")]
        assert [type(one) for one in past] == [Site] * 3
    assert proxy.asked == ["ec2.eu-west-1.amazonaws.com:443"]


ASSUMED = (
    "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ASIA1</AccessKeyId>"
    "<SecretAccessKey>s1</SecretAccessKey><SessionToken>t1</SessionToken><Expiration>{ends:%Y-%m-%dT%H:%M:%SZ}"
    "</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
)
ROLE = "arn:aws:iam::123456789012:role/pilotlight"


def test_the_environments_keys_come_first() -> None:
    """Lambda's role: nothing is asked."""
    assert Credentials(REGION, {**KEYS, "AWS_ROLE_ARN": ROLE}).keys() == Keys(KEY, SECRET, SESSION)


@pytest.mark.parametrize(("lasts_s", "asked"), [(3600, 1), (60, 2)], ids=["that lasts", "that ends soon"])
def test_a_role_is_taken_by_the_identity_that_is_mounted(tmp_path: Path, lasts_s: float, asked: int) -> None:
    """IRSA: the file's token is shown, unsigned, and the role's keys are kept until they end."""
    forms: list[dict[str, list[str]]] = []

    def sts(path: str, body: bytes, headers: object) -> tuple[int, bytes]:
        forms.append(parse_qs(body.decode()))
        return 200, ASSUMED.format(ends=datetime.now(UTC) + timedelta(seconds=lasts_s)).encode()

    (tmp_path / "token").write_text("identity-of-this-pod\n")
    with answering(sts) as host:
        own = {"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token")}
        given = Credentials(REGION, {**own, "AWS_ENDPOINT_URL_STS": f"http://{host}"})
        assert [given.keys(), given.keys()] == [Keys("ASIA1", "s1", "t1")] * 2
    assert [f["WebIdentityToken"] for f in forms] == [["identity-of-this-pod"]] * asked
    assert forms[0]["RoleArn"] == [ROLE]


def test_a_function_at_google_shows_who_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata server signs its identity for the role alone."""
    asked: list[str] = []

    def metadata(path: str, body: bytes, headers: object) -> tuple[int, bytes]:
        asked.append(path)
        return 200, b"who-this-is"

    def sts(path: str, body: bytes, headers: object) -> tuple[int, bytes]:
        asked.append(parse_qs(body.decode())["WebIdentityToken"][0])
        return 200, ASSUMED.format(ends=datetime.now(UTC) + timedelta(hours=1)).encode()

    with answering(metadata) as google, answering(sts) as host:
        monkeypatch.setattr(google_token, "IDENTITY", f"http://{google}/identity")
        assert Credentials(REGION, {"AWS_ROLE_ARN": ROLE, "AWS_ENDPOINT_URL": f"http://{host}"}).keys().key == "ASIA1"
    assert asked == [
        "/identity?audience=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fpilotlight&format=full",
        "who-this-is",
    ]


def test_a_pods_identity_is_asked_of_the_agent(tmp_path: Path) -> None:
    """EKS Pod Identity: the agent on the node gives a role's keys for the mounted token."""
    ends = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    given = {"AccessKeyId": "ASIA2", "SecretAccessKey": "s2", "Token": "t2", "Expiration": ends}
    (tmp_path / "token").write_text("pod")
    with answering(lambda *_: (200, given)) as host:
        own = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://{host}/v1/credentials"}
        own["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = str(tmp_path / "token")
        assert Credentials(REGION, own).keys() == Keys("ASIA2", "s2", "t2")


@pytest.mark.parametrize(
    ("own", "kind", "why"),
    [
        ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://evil.example/"}, Forbidden, "without TLS"),
        ({"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": "/no/such"}, Forbidden, "is the token mounted"),
    ],
    ids=["an agent that is far away", "a file that is not there"],
)
def test_a_credential_that_cannot_be_had_says_why(own: dict[str, str], kind: type[PilotlightError], why: str) -> None:
    """In one line, with what to do."""
    with pytest.raises(kind, match=why):
        Credentials(REGION, own).keys()


def test_a_refused_identity_is_not_told(tmp_path: Path) -> None:
    """STS may quote the token it does not take."""
    (tmp_path / "token").write_text("identity-of-this-pod")
    refused = "<E><Error><Code>{code}</Code><Message>identity-of-this-pod is not valid</Message></Error></E>"
    for code in ("InvalidIdentityToken", "MalformedPolicyDocument"):
        with answering(lambda *_, code=code: (400, refused.format(code=code).encode())) as host:
            own = {"AWS_ROLE_ARN": ROLE, "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token")}
            with pytest.raises((Forbidden, BadRequest)) as raised:
                Credentials(REGION, {**own, "AWS_ENDPOINT_URL": f"http://{host}"}).keys()
        assert "identity-of-this-pod" not in str(raised.value)


def test_a_read_is_tried_again_and_a_change_is_not() -> None:
    """Reading changes nothing; a change is sent once, whatever comes of it."""
    calls: list[bytes] = []

    def down(path: str, body: bytes, headers: object) -> tuple[int, bytes]:
        calls.append(body)
        return 503, b"<p>"

    waits: list[float] = []
    with answering(down) as host:
        own = {**KEYS, "AWS_ENDPOINT_URL": f"http://{host}"}
        api = QueryApi("autoscaling", REGION, Credentials(REGION, own), own, sleep=waits.append)
        with pytest.raises(Unavailable):
            api.read("DescribeTags", _Said, {})
        assert (len(calls), waits) == (3, [0.5, 2.0])
        with pytest.raises(Unsure), Deadline(5) as deadline:
            api.change(deadline, "SetDesiredCapacity", _Said, {}, OPEN)
        assert len(calls) == 4
