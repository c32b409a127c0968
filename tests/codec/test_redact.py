"""Secrets in what is kept: told by the key they stand under, and by their own shape."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight.codec.redact import GONE, redact_secrets

PLANTED = "planted-S3cret.value"
WRAPPED = base64.b64encode(json.dumps({"spec": {"env": [{"name": "DB_PASSWORD", "value": PLANTED}]}}).encode()).decode()


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        pytest.param(json.dumps({"password": PLANTED, "kind": "Pod"}), PLANTED, id="a password"),
        pytest.param(json.dumps({"slackToken": PLANTED}), PLANTED, id="a key that ends in token"),
        pytest.param(json.dumps({"a": json.dumps({"api_key": PLANTED})}), PLANTED, id="JSON in a string of JSON"),
        pytest.param('{"client_secret": "' + PLANTED, PLANTED, id="JSON that breaks off"),
        pytest.param(json.dumps({"env": [{"name": "DB_PASSWORD", "value": PLANTED}]}), PLANTED, id="a variable"),
        pytest.param(json.dumps({"env": [{"value": PLANTED, "name": "API_TOKEN"}]}), PLANTED, id="its value first"),
        pytest.param(f"Authorization: Bearer {PLANTED}", PLANTED, id="a header"),
        pytest.param(f"postgres://me:{PLANTED}@db/x", PLANTED, id="an address with a login"),
        pytest.param(f"https://x/?a=1&access_token={PLANTED}&b=2", PLANTED, id="an argument"),
        pytest.param(json.dumps({"args": ["--k", "AKIAABCDEFGHIJKLMNOP"]}), "AKIAABCDEFGHIJKLMNOP", id="a key of AWS"),
        pytest.param("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "eyJzdWIiOiIxIn0", id="a JWT"),
        pytest.param("see ghp_0123456789abcdefghij0123456789", "ghp_0123456789", id="a token of GitHub"),
        pytest.param(
            "-----BEGIN RSA PRIVATE KEY-----\\nMIIEplanted\\n-----END RSA PRIVATE KEY-----", "planted", id="a key"
        ),
        pytest.param("https://hooks.slack.com/services/T0/B0/planted", "planted", id="a web hook of Slack"),
        pytest.param("123456789:AAplantedplantedplantedplantedplanted", "AAplanted", id="a bot of Telegram"),
        pytest.param(json.dumps({"message": {"data": WRAPPED}}), WRAPPED, id="an envelope in base64"),
    ],
)
def test_a_secret_is_taken_out(text: str, secret: str) -> None:
    """What stands around it stays."""
    assert secret in text
    assert secret not in redact_secrets(text)


def test_an_envelope_stays_one() -> None:
    """Base64 whose inside was cleaned is base64 of the rest."""
    text = json.loads(redact_secrets(json.dumps({"message": {"data": WRAPPED}})))["message"]["data"]
    assert json.loads(base64.b64decode(text)) == {"spec": {"env": [{"name": "DB_PASSWORD", "value": GONE}]}}


@pytest.mark.parametrize(
    "text",
    ['{"kind": "Pod", "meta', json.dumps({"tick": "reconcile"}), json.dumps({"pod": "nlp/token-counter-0", "n": 3})],
)
def test_what_is_no_secret_stays(text: str) -> None:
    """An event without one is kept as it came."""
    assert redact_secrets(text) == text


@given(st.text(alphabet='"\\:{}[], abtokensecretvaluename=', max_size=200), st.integers(1, 500))
def test_any_text_is_taken(text: str, times: int) -> None:
    """Whatever came in, it is read to its end, and again gives the same."""
    once = redact_secrets(text * times)
    assert redact_secrets(once) == redact_secrets(redact_secrets(once))
