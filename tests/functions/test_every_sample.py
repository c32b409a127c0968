"""Every sample goes end to end through the function that takes it; what is malformed is refused by its path."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.events import Delivery, Ignored, decode
from pilotlight.codec.policy_file import read_policy
from pilotlight.codec.redact import redact_secrets
from pilotlight.doorway import RECEIVES, Function, takes
from pilotlight.facts.messages import DeadLetter
from pilotlight.settings import Settings, default_file
from pilotlight.wiring import App
from pilotlight.world.machines import WorldPool
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import VirtualClock
from pilotlight.world.world_cluster import WorldCluster
from pilotlight.world.world_pools import WorldPools

ROOT = Path(__file__).resolve().parents[2]
OURS = ROOT / "events" / "samples"
SHELF = ROOT.parent / "shared" / "contracts" / "events"

TYPES: tuple[object, ...] = ([], {}, "neither", 7, None)
"""A value of every kind that JSON has, to put where another is expected."""

PUBLISHED = {
    "ce-specversion": "1.0", "ce-type": "google.cloud.pubsub.topic.v1.messagePublished", "ce-id": "message-id",
    "ce-source": "//pubsub.googleapis.com/projects/test-project/topics/my-topic",
}  # fmt: skip
"""The headers of the one sample that is told without them."""

CUTS = (0.01, 0.2, 0.4, 0.6, 0.8, 0.99)


class Sample(NamedTuple):
    """A request as its source makes it."""

    body: Any
    headers: dict[str, str]

    def bytes(self) -> bytes:
        """The body on the wire."""
        return json.dumps(self.body).encode()


class Site:
    """A deployment with an empty world; everything in it is the real thing."""

    def __init__(self) -> None:
        plain, clock = App(Settings()), VirtualClock(datetime(2026, 11, 20, 9, 31, 30, tzinfo=UTC))
        policy = read_policy(default_file("examples/policy.yaml").read_bytes(), "policy")
        world = World(plain.catalog, [WorldPool.from_policy(n, p) for n, p in policy.pools.items()], clock=clock)
        self.outbox = MemoryOutbox()
        self.app = App(
            Settings(mode="act"),
            cluster=WorldCluster(world),
            pools=WorldPools(world),
            clock=clock,
            state=MemoryState(clock),
            outbox=self.outbox,
            policy=policy,
        )

    def answers(self, function: Function, sample: Sample, body: bytes | None = None) -> list[dict[str, Any]]:
        """What a request is answered, event by event; each that is refused is in the dead letters. Never 500."""
        before = len(self.letters())
        response = self.app.receive(function, sample.bytes() if body is None else body, sample.headers)
        assert response.status == 200, response.body
        found: list[dict[str, Any]] = response.body.get("answers", [response.body])
        assert all(answer.keys() & {"decision", "ignored", "rejected"} for answer in found)
        assert len(self.letters()) - before == sum("rejected" in answer for answer in found)
        return found

    def letters(self) -> list[DeadLetter]:
        """The dead letters so far."""
        sent = self.outbox.sent
        return [msgspec.json.decode(m.data, type=DeadLetter) for m in sent if m.topic == "dead-letter"]


def _sample(path: Path) -> Sample:
    content = json.loads(path.read_bytes())
    if isinstance(content, dict) and content.keys() == {"headers", "body"}:
        return Sample(content["body"], content["headers"])
    if path.stem == "ce_binary_pubsub_body":
        return Sample(content, PUBLISHED)
    return Sample(content, {})


def _samples() -> Iterator[Any]:
    for root in (OURS, SHELF):
        for path in sorted(root.rglob("*.json")):
            if "schema" not in path.name:
                yield pytest.param(_sample(path), id=f"{path.parent.name}/{path.stem}")


SAMPLES = list(_samples())


def _functions(sample: Sample) -> list[Function]:
    """The functions that take what is in a sample; of what asks for nothing, and of ours to others, all."""
    found = [d.message for d in decode(sample.bytes(), sample.headers, cluster="home") if isinstance(d, Delivery)]
    return [f for f in RECEIVES if any(takes(f, m) for m in found)] or list(RECEIVES)


def _asks(sample: Sample, function: Function) -> list[bool]:
    found = decode(sample.bytes(), sample.headers, cluster="home")
    return [isinstance(d, Delivery) and takes(function, d.message) for d in found]


def _ignored(sample: Sample) -> list[bool]:
    found = decode(sample.bytes(), sample.headers, cluster="home")
    return [isinstance(d, Delivery) and isinstance(d.message, Ignored) for d in found]


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_sample_is_decided_or_ignored_with_its_reason(sample: Sample) -> None:
    """The function that takes it decides; what asks for nothing is ignored everywhere; neither without a reason."""
    for function in _functions(sample):
        answers = Site().answers(function, sample)
        for answer, asks, ignored in zip(answers, _asks(sample, function), _ignored(sample), strict=True):
            expected = "decision" if asks else "ignored" if ignored else "rejected"
            assert expected in answer, answer
            assert answer.get("why") or answer.get("ignored") or answer.get("rejected")


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_that_is_cut_off_is_a_dead_letter(sample: Sample) -> None:
    """Wherever it was cut it is refused, and what arrived is kept whole, but for its secrets."""
    site, function, whole = Site(), _functions(sample)[0], sample.bytes()
    for share in CUTS:
        cut = whole[: max(1, int(len(whole) * share))]
        assert "rejected" in site.answers(function, sample, cut)[0]
        assert site.letters()[-1].body == redact_secrets(cut.decode())


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The way to everything in a JSON value."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*path, key)
        yield from _places(inner, (*path, key))


def _changed(body: Any, place: tuple[str | int, ...], *value: Any) -> Any:
    """A copy with another value there, or none."""
    copy = json.loads(json.dumps(body))
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    if value:
        inner[place[-1]] = value[0]
    else:
        del inner[place[-1]]
    return copy


def _malformed(sample: Sample) -> Iterator[tuple[str, Sample]]:
    """Each field removed and retyped, with its path."""
    for place in _places(sample.body):
        old = sample.body
        for key in place:
            old = old[key]
        path = "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in place).lstrip(".")
        yield path, sample._replace(body=_changed(sample.body, place))
        for value in TYPES:
            if type(value) is not type(old):
                yield path, sample._replace(body=_changed(sample.body, place, value))
    for name in sample.headers:
        yield name, sample._replace(headers={k: v for k, v in sample.headers.items() if k != name})


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_with_a_wrong_field_is_never_a_crash_and_never_lost(sample: Sample) -> None:
    """Each field removed, and of every other type: decided, ignored, or a dead letter that names the field's place."""
    site, function = Site(), _functions(sample)[0]
    for path, broken in _malformed(sample):
        before = len(site.letters())
        site.answers(function, broken)
        for letter in site.letters()[before:]:
            assert _names(letter, path), (path, letter.reason)
    assert site.letters() or not any(_asks(sample, function))


def _names(letter: DeadLetter, path: str) -> bool:
    """Whether a refusal points at a place: to it, to what it is in, to what is in it, or that nobody here takes it."""
    said, _, _ = letter.path.partition("[...]")  # Keys of a free mapping are not told apart.
    inside = said.removeprefix("data").lstrip(".")  # In binary mode the body is the data.
    field = path.rpartition(".")[2]
    return inside in path or path in said or f"`{field}`" in letter.reason or "does not take" in letter.reason
