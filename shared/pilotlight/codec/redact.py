"""Secrets taken out of text that is kept: by the key they stand under, and by their own shape.

What cannot be told is left: this keeps an accident small, it is no promise. Patterns run in linear time, whatever the
text is; it need not be whole JSON.
"""

import base64
import binascii
import re

GONE = "[redacted]"

_WORDS = (
    r"pass(?:word|wd|phrase)?|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|signing[-_]?key|client[-_]?key"
    r"|credentials?|authorization|cookie|session[-_]?id|kubeconfig|connection[-_]?string|signature|dsn"
)
_NAME = rf"[^\"\\\s]{{0,80}}?(?:{_WORDS})[^\"\\\s]{{0,80}}"
_Q = r"\\{0,7}\""
"""A quote of JSON, also of JSON in a string of JSON."""

_BY_KEY = re.compile(rf"({_Q}{_NAME}{_Q}\s{{0,20}}:\s{{0,20}}{_Q})((?:[^\"\\]|\\[^\"\\])+)", re.IGNORECASE)
_BY_NAME = re.compile(
    rf"({_Q}name{_Q}\s{{0,20}}:\s{{0,20}}{_Q}{_NAME}{_Q}\s{{0,20}},\s{{0,20}}{_Q}value{_Q}\s{{0,20}}:\s{{0,20}}{_Q})"
    r"((?:[^\"\\]|\\[^\"\\])+)",
    re.IGNORECASE,
)
"""A variable of a container: ``{"name": "DB_PASSWORD", "value": ...}``."""
_BY_VALUE = re.compile(
    rf"({_Q}value{_Q}\s{{0,20}}:\s{{0,20}}{_Q})((?:[^\"\\]|\\[^\"\\])+)"
    rf"({_Q}\s{{0,20}},\s{{0,20}}{_Q}name{_Q}\s{{0,20}}:\s{{0,20}}{_Q}{_NAME}{_Q})",
    re.IGNORECASE,
)
_BY_SHAPE = (
    re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]{0,20000}(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?"),
    re.compile(r"\beyJ[\w-]{8,4000}\.[\w-]{4,8000}\.?[\w-]{0,2000}"),
    re.compile(r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])"),
    re.compile(
        r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|xapp-|whsec_|sk_live_|sk-|hf_|ya29\.|AIza)[\w.-]{16,400}"
    ),
    re.compile(r"(?<=hooks\.slack\.com/services/)[\w/-]{1,200}"),
    re.compile(r"(?<![0-9])[0-9]{8,12}:[\w-]{30,60}"),
)
_HEADER = re.compile(r"\b(Bearer|Basic|Token)(\s{1,8})[\w.~+/=-]{8,8000}", re.IGNORECASE)
_LOGIN = re.compile(r"(://)[^/\s:@\"\\]{0,200}:[^/\s@\"\\]{1,400}(?=@)")
_BEFORE_HOST = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]{0,20}://)?.*@", re.DOTALL)
"""A password may hold "/" and "@" too: all up to the last."""
_QUERY = re.compile(rf"([?&;][\w.-]{{0,40}}?(?:{_WORDS}|sig)[\w.-]{{0,40}}=)[^&\s\"\\;]{{1,4000}}", re.IGNORECASE)
_WRAPPED = re.compile(r"(\"data(?:_base64)?\"\s{0,20}:\s{0,20}\")([A-Za-z0-9+/]{16,}={0,2})(\")")
"""What Pub/Sub and CloudEvents wrap in base64."""


def redact_secrets(text: str) -> str:
    """The text without the secrets that can be told, also in base64 that wraps an event."""
    return _plain(_WRAPPED.sub(_inside, text))


def without_login(url: str) -> str:
    """A URL, also one that is miswritten, as it may be told: without the user and the password before its host."""
    return redact_secrets(_BEFORE_HOST.sub(rf"\g<1>{GONE}@", url))


def _plain(text: str) -> str:
    for pattern in (_BY_NAME, _BY_KEY, _HEADER, _LOGIN, _QUERY):
        text = pattern.sub(_second if pattern is _HEADER else _first, text)
    text = _BY_VALUE.sub(rf"\g<1>{GONE}\g<3>", text)
    for pattern in _BY_SHAPE:
        text = pattern.sub(GONE, text)
    return text


def _first(match: re.Match[str]) -> str:
    return f"{match[1]}{GONE}"


def _second(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}{GONE}"


def _inside(match: re.Match[str]) -> str:
    """Base64 of text with a secret in it, again without; other base64 as it was."""
    try:
        inner = base64.b64decode(match[2], validate=True).decode()
    except (binascii.Error, ValueError):
        return match[0]
    clean = _plain(inner)
    return match[0] if clean == inner else match[1] + base64.b64encode(clean.encode()).decode() + match[3]
