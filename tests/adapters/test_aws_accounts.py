"""One role an account: taken by the deployment's own credential, signed, or by its web identity."""

import pytest
from aws_server import REGION, ROLE, SECRET, SESSION, Aws, serving
from small_cloud import world

from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.signing import Keys
from pilotlight.errors import Forbidden


def test_another_accounts_role_is_taken_by_ones_own_credential() -> None:
    """AssumeRole as botocore would sign it, once: its keys are kept until they end."""
    aws = Aws(world())
    with serving(aws) as environ:
        credentials = Credentials(REGION, environ, ROLE)
        assert [credentials.keys() for _ in range(2)] == [Keys("ASIAOTHER00000000", "other", "session")] * 2
        assert [(action, asked["RoleArn"]) for action, asked in aws.calls] == [("AssumeRole", ROLE)]


def test_a_role_that_may_not_be_taken_is_refused_without_a_secret() -> None:
    """The refusal says what to do, and nothing of the credential."""
    with serving(Aws(world())) as environ, pytest.raises(Forbidden) as no:
        Credentials(REGION, environ, "arn:aws:iam::210987654321:role/another").keys()
    assert "AssumeRole" in str(no.value)
    assert not any(secret in str(no.value) for secret in (SECRET, SESSION))
