"""What it would be worth to have images on new nodes sooner, in seconds and dollars a week: three ways to do it.

Reckoned from the pulls that were seen: how often an image is pulled, how long it takes, and the price of a node and of
a pod's wait meanwhile. Each way's own cost is its reader's to set against it: a snapshot's storage by its size, an
hour of a person.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from statistics import median

import msgspec

from pilotlight.decide.offers.first_work import HALF_LIFE_S, LEAST, of_type, repository
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.first_work import FirstWork, ImageLoad
from pilotlight.facts.policy import Policy
from pilotlight.units import HOUR, Seconds, Usd, UsdPerHour, per_hour

WEEK_S: Seconds = 7 * 24 * HOUR
READ_SHARE = 0.064
"""Of an image's bytes a container reads so much before it works, and a lazy snapshotter pulls only that first.

T. Harter et al., "Slacker: Fast Distribution with Lazy Docker Containers", FAST '16: 6.4 % of the data in the median,
of 57 images. Images for GPUs may read more: hold it against a try of your own.
"""


ANY_TAG = ":*"
"""Ends the name of a repository whose images are pulled too seldom each, as where every commit builds one."""


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """One way to have an image sooner, and what it saves at most."""

    way: str
    seconds_each: Seconds  # Of a pull that it spares.
    pulls_a_week: float  # That it spares, or shortens.
    usd_a_week: Usd  # Of nodes that wait for the pull, and of pods that do.


class ImageWorth(msgspec.Struct, frozen=True, kw_only=True):
    """An image on nodes of one pool: what its pulls cost, and what each way would save of that."""

    pool: str
    image: str  # Or a repository, as "registry.acme.com/train:*".
    pull_s: Seconds
    size: int  # Bytes as pulled; 0 where it is not told.
    pulls_a_week: float
    usd_a_week: Usd
    ways: tuple[Way, ...]


def image_worths(
    policy: Policy, memory: Memory, prices: Mapping[str, UsdPerHour], now_s: Seconds
) -> Iterator[ImageWorth]:
    """Of each pool's images that were pulled often enough to tell, the dearest first; of those that were not, of their
    repository. ``prices`` are of nodes.
    """
    found = [
        _worth(pool, image, loads, prices[pool] + policy.wait(memory.pool_class.get(pool, "batch")), now_s)
        for pool, rules in policy.pools.items()
        if pool in prices
        for image, loads in _together(memory.first_work, rules.instance_type).items()
        if sum(len(load.pulls) for load in loads) >= LEAST
    ]
    yield from sorted(found, key=lambda one: (-one.usd_a_week, one.pool, one.image))


def _together(known: FirstWork, instance_type: str) -> dict[str, list[ImageLoad]]:
    """Images on a type that tell enough each, and the others by repository."""
    found: dict[str, list[ImageLoad]] = {}
    for image, load in of_type(known, instance_type).items():
        name = image if len(load.pulls) >= LEAST else repository(image) + ANY_TAG
        found.setdefault(name, []).append(load)
    return found


def _worth(pool: str, image: str, loads: Sequence[ImageLoad], an_hour: UsdPerHour, now_s: Seconds) -> ImageWorth:
    pull_s = float(median([seconds for load in loads for seconds in load.pulls]))
    # A count that halves in a half-life stands, in the long run, for as many as come in half-life / ln 2.
    a_week = math.log(2) * WEEK_S / HALF_LIFE_S
    fades = [a_week * 0.5 ** (max(0.0, now_s - load.at) / HALF_LIFE_S) for load in loads]
    pulls = sum(load.pulled * fade for load, fade in zip(loads, fades, strict=True))
    late = sum(load.late * fade for load, fade in zip(loads, fades, strict=True))
    known = 0 if image.endswith(ANY_TAG) else 1  # What is built anew is on no disk yet, and no DaemonSet names it.

    def way(name: str, seconds: Seconds, count: float) -> Way:
        return Way(
            way=name, seconds_each=round(seconds, 1), pulls_a_week=round(count, 1), usd_a_week=_usd(seconds, count)
        )

    def _usd(seconds: Seconds, count: float) -> Usd:
        return per_hour(an_hour, seconds) * Decimal(str(round(count, 6)))

    return ImageWorth(
        pool=pool,
        image=image,
        pull_s=pull_s,
        size=max(load.size for load in loads),
        pulls_a_week=round(pulls, 1),
        usd_a_week=_usd(pull_s, pulls),
        ways=(
            way("pre-pull by a DaemonSet", pull_s, late * known),
            way("a disk snapshot with it", pull_s, pulls * known),
            way("a lazy snapshotter", pull_s * (1 - READ_SHARE), pulls),
        ),
    )


def explain_ways() -> tuple[str, ...]:
    """What each way can and cannot do, in a line each."""
    return (
        "each saves dollars of nodes and of pods that wait, and so much of their wait, a week; its own cost is yours",
        "pre-pull by a DaemonSet: spares pods the pull only where their node was Ready long enough before they came",
        "a disk snapshot with it: spares every pull; a bootable disk or AMI made anew with each image, and its storage",
        "a lazy snapshotter (SOCI, stargz, GKE image streaming): at most this, where work begins on few bytes",
    )
