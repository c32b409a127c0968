"""The report page: what it says, and that it opens without a network."""

import re
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from browser import opened, pixels
from chromium import Chromium
from page_rules import ACCESSIBLE, LAYOUT, axe
from pilotlight.tools.replay.traces.trace_job import IdleHour, Point, Result, Spread
from pilotlight.tools.report.pages.replay_page import against, page, sentence

USED = (0xC2, 0x41, 0x0C)
"""The colour of GPUs in use, in light mode."""
Maker = Callable[..., Result]


@pytest.fixture
def drawn(result: Maker, run: list[Point]) -> Callable[..., str]:
    """A maker of pages of two policies."""
    return lambda **changes: _page(result, run, **changes)


def _page(result: Maker, run: list[Point], **changes: object) -> str:
    results = [result(), result("keda", cost_usd=Decimal("165.2"))]
    waits = {"pilotlight": [0.0, 0.0, 190.0, 190.0], "keda": [0.0, 190.0, 190.0, 190.0]}
    idle = [IdleHour(start=3600.0, usd=Decimal("65.54"), gpus=16)]
    said: dict[str, object] = {"title": "A replay", "trace_note": "Four jobs made by hand.", "notes": ["Boots: 180 s."]}
    return page(results, {"pilotlight": run, "keda": run}, waits, idle, **(said | changes))  # type: ignore[arg-type]


def test_the_first_sentence_says_dollars_multiple_and_wait(result: Maker) -> None:
    """A reader who stops after one sentence knows what was paid, how near the bound, and who waited."""
    assert sentence(result()) == "Pilotlight paid $120 for 4 jobs, 1.20 times the lower bound, at a mean wait of 95 s."


@pytest.mark.parametrize(
    ("peers", "said"),
    [
        pytest.param([], "", id="without peers nothing is said"),
        pytest.param(
            [{"cost_usd": Decimal(150)}],
            "Of 1 peers the cheapest, peer0, paid $150 (25.0% more) at a mean wait of 95 s; none waited less.",
            id="one peer is cheapest and quickest",
        ),
        pytest.param(
            [{"cost_usd": Decimal(90)}, {"cost_usd": Decimal(840), "wait_s": Spread.of_waits([0.0])}],
            "Of 2 peers the cheapest, peer0, paid $90 (25.0% less) at a mean wait of 95 s; the one with the shortest "
            "waits, peer1, paid $840 (7.0 times as much) at a mean wait of 0 s.",
            id="a peer that beats Pilotlight is said to beat it",
        ),
    ],
)
def test_peers_are_compared_in_plain_words(result: Maker, peers: list[dict[str, object]], said: str) -> None:
    """The cheapest and the quickest peer are named with their figures, better or worse."""
    assert against(result(), [result(f"peer{i}", **change) for i, change in enumerate(peers)]) == said


def test_the_page_says_what_a_reader_must_know(drawn: Callable[..., str]) -> None:
    """A simulation, of which jobs, the bound's definition, how pods are placed, and the notes given are on the page."""
    text = re.sub(r"\s+", " ", drawn())
    said = (
        "A simulation.",
        "Four jobs made by hand.",
        "Lower bound.",
        "<code>homes</code>, the default",
        "Boots: 180 s.",
    )
    for words in said:
        assert words in text


def test_it_begins_with_dollars_against_mean_wait(drawn: Callable[..., str]) -> None:
    """The first drawing has each policy at its dollars and its wait, before any table."""
    text = drawn()
    first = text[text.index("<figure") : text.index("</figure>")]
    assert "keda: $165 at a mean wait of 95 s" in first
    assert text.index("<figure") < text.index("<table")


def test_text_from_outside_is_shown_and_not_run(drawn: Callable[..., str]) -> None:
    """A title or a note with markup in it appears as written."""
    text = drawn(title="<script>alert(1)</script>", notes=["<img src=x>"])
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;" in text


def test_the_page_names_no_address_to_fetch(drawn: Callable[..., str]) -> None:
    """No script, image, style sheet or font is referred to, and the page forbids them to itself."""
    text = drawn().replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?://|@import|url\(|<script|src=", text)
    assert "default-src 'none'" in text


def test_a_replay_without_samples_leaves_its_charts_out(result: Maker) -> None:
    """With nothing but results the page still opens, with the table and the notes."""
    text = page([result()], {}, {}, [], title="A replay", trace_note="Four jobs.")
    assert "<svg" not in text
    assert "$120" in text


@pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed")
def test_a_browser_draws_the_charts_and_asks_nobody(drawn: Callable[..., str], tmp_path: Path) -> None:
    """Opened in a browser whose every request reaches our proxy, the page is drawn and the proxy hears nothing."""
    picture, asked = opened(drawn(), tmp_path)
    assert asked == []
    assert pixels(picture).count(bytes(USED)) > 10_000


@pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed")
def test_a_page_that_did_ask_would_be_heard(tmp_path: Path) -> None:
    """The same listening hears a page that fetches a picture."""
    assert opened("<img src='http://elsewhere.test/x.png'>", tmp_path)[1] == ["http://elsewhere.test/x.png"]


def test_it_says_that_its_axes_end_before_the_run(week_page: str) -> None:
    """Three weeks of which the last two have two GPUs are drawn as one, in words too."""
    assert "The axes end at day 8, " in week_page
    assert "at most 2 GPUs were in use" in week_page


def test_everything_can_be_read_at_every_width(chromium: Chromium, week_page: str, tmp_path: Path) -> None:
    """No label is cut, off the screen, over another or under 11 px, at any width; axe-core agrees."""
    file = tmp_path / "week.html"
    file.write_text(week_page, "utf-8")
    with chromium.page() as shown:
        shown.open(file.as_uri())
        for width in (400, 700, 900, 1600):
            shown.looks(width, 900, dark=width == 900)
            assert shown.run(LAYOUT) == []
        assert shown.complaints == []
        script = axe()
        shown.run(f"{script}; 0")
        for width, dark in ((400, True), (1600, False)):
            shown.looks(width, 900, dark=dark)
            assert shown.run(ACCESSIBLE) == []
