"""A post to a receiver that drips: it ends in its time, and a status that came counts."""

import pytest
from odd_server import Line, talking

from pilotlight.adapters.webhook_post import Poster
from pilotlight.errors import Unsure


def _drips_head(line: Line) -> None:
    line.hear()
    line.drip(b"HTTP/1.1 ")


def _drips_body(line: Line) -> None:
    line.hear()
    line.say(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\n\r\n")
    line.drip(b"slow down ")


def test_an_answer_whose_head_drips_leaves_it_unknown() -> None:
    """It was sent and may have been shown: not for ever is it waited for."""
    with talking(_drips_head) as odd, pytest.raises(Unsure, match="timed out"):
        Poster(odd.url, "it", timeout_s=3, allow_private=True).post(b"{}", {})


def test_a_status_counts_though_its_body_never_ends() -> None:
    """What the receiver said is known, with its headers and what came of the rest."""
    with talking(_drips_body) as odd:
        reply = Poster(odd.url, "it", timeout_s=3, allow_private=True).post(b"{}", {})
    assert (reply.status, reply.headers["retry-after"], reply.body[:9]) == (429, "7", b"slow down")
