"""Variables that name secrets of AWS Secrets Manager, on moto's server."""

from collections.abc import Callable
from uuid import uuid4

import boto3
import pytest
from answering import answering
from aws_server import KEYS, SECRET

from pilotlight.adapters.secrets import KEPT_S, WithSecrets
from pilotlight.errors import BadInput, Forbidden, PilotlightError, Unavailable
from pilotlight.settings import deployed_settings

REGION = "eu-west-1"


@pytest.fixture
def made(dynamodb_server: str) -> Callable[[str], str]:
    """Makes a secret; its ARN."""
    client = boto3.client("secretsmanager", endpoint_url=dynamodb_server, region_name=REGION)
    return lambda held: str(client.create_secret(Name=f"s-{uuid4()}", SecretString=held)["ARN"])


def test_a_variable_that_names_a_secret_gives_what_it_holds(made: Callable[[str], str], dynamodb_server: str) -> None:
    """By ARN or name; all other variables stay as they are, and nothing is asked to see what is there."""
    arn = made("a token")
    name = arn.rpartition(":")[2].rpartition("-")[0]
    plain = {**KEYS, "AWS_ENDPOINT_URL": dynamodb_server, "AWS_REGION": REGION, "PLAIN": "as it is"}
    environ = WithSecrets(
        {**plain, "BY_ARN": f"secretsmanager:{arn}", "BY_NAME": f"secretsmanager:{name}"}, "secretsmanager:"
    )
    assert (environ["BY_ARN"], environ.get("BY_NAME"), environ["PLAIN"]) == ("a token", "a token", "as it is")
    assert environ.get("NONE", "left out") == "left out"
    nowhere = WithSecrets({"A": "secretsmanager:none"}, "secretsmanager:")
    assert ("A" in nowhere, list(nowhere)) == (True, ["A"])


def test_a_secret_that_was_changed_is_known_after_a_while(dynamodb_server: str, made: Callable[[str], str]) -> None:
    """It is asked for once in so long, and anew after that."""
    arn, now = made("old"), [0.0]
    environ = WithSecrets(
        {**KEYS, "AWS_ENDPOINT_URL": dynamodb_server, "T": f"secretsmanager:{arn}"},
        "secretsmanager:",
        monotonic=lambda: now[0],
    )
    assert environ["T"] == "old"
    client = boto3.client("secretsmanager", endpoint_url=dynamodb_server, region_name=REGION)
    client.put_secret_value(SecretId=arn, SecretString="new")
    assert environ["T"] == "old"
    now[0] = KEPT_S
    assert environ["T"] == "new"


def test_a_process_looks_up_what_its_environment_names(
    made: Callable[[str], str], dynamodb_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The settings of a deployment have the secret where the policy or a cluster names the variable."""
    for name, value in {**KEYS, "AWS_ENDPOINT_URL": dynamodb_server}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CIVO_TOKEN_ML", f"secretsmanager:{made('of Civo')}")
    assert deployed_settings().secret("CIVO_TOKEN_ML") == "of Civo"


REFUSALS = {
    "a secret that is not there": (400, "ResourceNotFoundException", BadInput, "name a secret that is there"),
    "no right": (400, "AccessDeniedException", Forbidden, "secretsmanager:GetSecretValue"),
    "an outage": (500, "InternalServiceError", Unavailable, "500"),
    "a page that is no answer": (200, "", Unavailable, "cannot be read"),
}


@pytest.mark.parametrize(("status", "code", "kind", "says"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal_says_what_to_do(
    status: int, code: str, kind: type[PilotlightError], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each names the variable and what to do, and holds no credential."""
    monkeypatch.setattr("pilotlight.adapters.aws_api.services.JSON_PAUSES_S", ())
    body = {"__type": f"x#{code}", "message": SECRET} if code else b"<html>"
    with answering(lambda *_: (status, body)) as host:
        plain = {**KEYS, "AWS_ENDPOINT_URL": f"http://{host}", "AWS_REGION": REGION}
        environ = WithSecrets({**plain, "T": "secretsmanager:mine"}, "secretsmanager:")
        with pytest.raises(kind, match=says) as found:
            _ = environ["T"]
    assert SECRET not in str(found.value)


def test_a_secret_that_holds_no_text_is_refused() -> None:
    """An empty token would be a wrong one, told of much later."""
    with answering(lambda *_: (200, {"SecretBinary": "AA=="})) as host:
        plain = {**KEYS, "AWS_ENDPOINT_URL": f"http://{host}", "AWS_REGION": REGION}
        with pytest.raises(BadInput, match="holds no text"):
            _ = WithSecrets({**plain, "T": "secretsmanager:mine"}, "secretsmanager:")["T"]
