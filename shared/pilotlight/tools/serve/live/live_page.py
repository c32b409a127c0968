"""The live page: one file of HTML that needs nothing but its own server, and the events that it is told by.

The page holds no figure: whoever opens it sees nothing without the right to read. Its policy allows the one script and
the one style sheet that are in it, by their digests, and requests to its own server; no text becomes markup.
"""

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

import msgspec

from pilotlight.tools.serve.live.live_changes import changes
from pilotlight.tools.serve.live.live_view import Live

_encoder = msgspec.json.Encoder(decimal_format="number")


@cache
def page(name: str = "live.html") -> tuple[bytes, tuple[tuple[str, str], ...]]:
    """The page, or another that is made as it is, and the headers that it goes out with."""
    text = files(__package__).joinpath(name).read_text("utf-8")
    policy = (
        f"default-src 'none'; script-src {_digest(text, 'script')}; style-src {_digest(text, 'style')}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
    return text.encode(), (
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Security-Policy", policy),
        ("Cache-Control", "no-cache"),
        *PRIVATE,
    )


PRIVATE = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
)
"""What keeps other pages from framing, reading or naming this one."""


def _digest(text: str, tag: str) -> str:
    """The digest by which a policy names the one element of a kind."""
    (inside,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'"


def all_of(seen: Live) -> bytes:
    """The first event of a stream: everything."""
    return _event("all", seen)


def news_of(was: Live, now: Live) -> bytes:
    """The event of what is new since; a comment where nothing is, which says that somebody is there."""
    new = changes(was, now)
    return _event("news", new) if new else b": nothing new\n\n"


def one(value: object) -> bytes:
    """A value as the page reads it."""
    return _encoder.encode(value)


def blind(why: str) -> bytes:
    """The event of a look that failed: what was shown is old from now on."""
    return _event("blind", {"why": why})


def asks_again(every_s: float) -> bytes:
    """In how long a stream that ends is asked for again."""
    return b"retry: %d\n\n" % round(every_s * 1000)


def _event(name: str, value: object) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), _encoder.encode(value))
