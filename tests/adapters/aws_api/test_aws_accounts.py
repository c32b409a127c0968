"""One role an account: taken by the deployment's own credential, signed, or by its web identity."""

import base64
from pathlib import Path

import pytest
from answering import answering
from aws_server import EKS, KEY, KEYS, OTHER, REGION, ROLE, SECRET, SESSION, Aws, serving
from botocore.exceptions import ClientError, UnauthorizedSSOTokenError
from small_cloud import world

from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.signing import Keys
from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
from pilotlight.errors import Forbidden
from pilotlight.ports.clouds import CloudAccount
from pilotlight.tools.install import asg_handover


def test_another_accounts_role_is_taken_by_ones_own_credential() -> None:
    """AssumeRole as botocore would sign it, once: its keys are kept until they end."""
    aws = Aws(world())
    with serving(aws) as environ:
        credentials = Credentials(REGION, environ, ROLE)
        assert [credentials.keys() for _ in range(2)] == [Keys("ASIAOTHER00000000", "other", "session")] * 2
        assert [(action, asked["RoleArn"]) for action, asked in aws.calls] == [("AssumeRole", ROLE)]


def test_a_role_is_taken_by_what_boto3_finds_where_the_environment_names_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A laptop's profile: its keys sign AssumeRole, with the external id and the session's name that are wanted."""
    (tmp_path / "credentials").write_text(
        f"[work]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\naws_session_token={SESSION}\n"
    )
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "work")
    aws = Aws(world())
    with serving(aws) as environ:
        own = {"AWS_ENDPOINT_URL": environ["AWS_ENDPOINT_URL"], "AWS_ROLE_SESSION_NAME": "night-shift"}
        assert Credentials(REGION, own, f"{ROLE}?external_id=partner-7").keys().key == OTHER
    ((action, asked),) = aws.calls
    wanted = {"RoleArn": ROLE, "RoleSessionName": "night-shift", "ExternalId": "partner-7"}
    assert (action, asked) == ("AssumeRole", wanted)


def test_a_role_is_taken_by_an_instances_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On a machine of EC2 boto3 asks its metadata service, by a session token; those keys sign AssumeRole."""
    asked: list[str] = []
    theirs = {
        "Code": "Success", "AccessKeyId": KEY, "SecretAccessKey": SECRET, "Token": SESSION,
        "Expiration": "2099-01-01T00:00:00Z",
    }  # fmt: skip

    def metadata(path: str, *_: object) -> tuple[int, object]:
        asked.append(path)
        told = {"/latest/api/token": b"t", "/latest/meta-data/iam/security-credentials/": b"nodes"}
        return 200, told.get(path, theirs)

    for name in (*KEYS, "AWS_PROFILE", "AWS_EC2_METADATA_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    aws = Aws(world())
    with serving(aws) as environ, answering(metadata) as host:
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"http://{host}")
        assert Credentials(REGION, {"AWS_ENDPOINT_URL": environ["AWS_ENDPOINT_URL"]}, ROLE).keys().key == OTHER
    assert [action for action, _ in aws.calls] == ["AssumeRole"]
    assert asked[-1].endswith("/security-credentials/nodes")


@pytest.mark.parametrize(
    ("raised", "kind", "says"),
    [
        (UnauthorizedSSOTokenError(), Forbidden, "run aws sso login"),
        (
            ClientError(
                {"Error": {"Code": "AccessDenied", "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 403}},
                "AssumeRole",
            ),
            Forbidden,
            "AssumeRole with 403: AccessDenied",
        ),
        (
            ClientError(
                {"Error": {"Code": "RequestExpired", "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 400}},
                "AssumeRole",
            ),
            Forbidden,
            "check the clock of this machine",
        ),
    ],
    ids=["a login that ended", "a role that may not be taken", "a clock that is wrong"],
)
def test_what_boto3_fails_with_is_told_as_what_it_is(
    raised: Exception, kind: type[Exception], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one line, with what to do; it is no crash."""

    def fails(_: object) -> None:
        raise raised

    monkeypatch.setattr("botocore.session.Session.get_credentials", fails)
    with pytest.raises(kind, match=says):
        Credentials(REGION, {}).keys()


def test_groups_of_another_account_are_taken_over_as_its_role() -> None:
    """What keeps a group there is read under that role's signature, as its pools are."""
    aws = Aws(world())
    with serving(aws) as environ:
        account = CloudAccount(aws.names(), aws.world.clock, str, environ, role=ROLE)
        groups = asg_handover.open_handover(f"{REGION}/{EKS}", account)
        assert groups is not None
        assert set(groups.read()) == {"one", "four", "eight"}
    assert [action for action, _ in aws.calls][:2] == ["AssumeRole", "DescribeAutoScalingGroups"]
    assert set(aws.signers[1:]) == {OTHER}


def test_a_cluster_of_another_account_is_entered_as_its_role(monkeypatch: pytest.MonkeyPatch) -> None:
    """EKS is asked where it is, and the token says who comes, by that role's key."""
    there = {"name": "c", "endpoint": "https://eks.test", "certificateAuthority": {"data": "Y2E="}}
    aws = Aws(world())
    with serving(aws) as environ, answering(lambda *_: (200, {"cluster": there})) as host:
        monkeypatch.setenv("AWS_ENDPOINT_URL_EKS", f"http://{host}")
        access = source_of(f"eks:{REGION}/c", environ, ROLE).access()
    url = base64.urlsafe_b64decode(access.token.partition(".")[2] + "==").decode()
    assert OTHER in url
    assert [action for action, _ in aws.calls] == ["AssumeRole"]


def test_a_role_that_may_not_be_taken_is_refused_without_a_secret() -> None:
    """The refusal says what to do, and nothing of the credential."""
    with serving(Aws(world())) as environ, pytest.raises(Forbidden) as no:
        Credentials(REGION, environ, "arn:aws:iam::210987654321:role/another").keys()
    assert "AssumeRole" in str(no.value)
    assert not any(secret in str(no.value) for secret in (SECRET, SESSION))
