"""Time until a pod works on a new node, learned step by step, and offerings priced by the whole of it.

A catalogue's boot is a constant, and a node that is Ready pulls images for minutes. Each step is the median of the last
few that were seen, so that one odd pod moves nothing: what a tenant's pod can show is bounded in seconds, in how many
images are kept, and by the pods of everybody else. The usual pull of a type is the median of its images, each weighted
by how often it is used.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import NamedTuple

from msgspec.structs import replace

from pilotlight.decide.work import Work
from pilotlight.facts.capacity import BoundPod, Node, Offering
from pilotlight.facts.memory import Memory
from pilotlight.facts.nodes.first_work import MOST_S, FirstWork, ImageLoad, Pull, Usual, with_seen
from pilotlight.units import HOUR, Seconds, clock_seconds

LEAST = 3
"""A step is known from so many on."""
MOST_IMAGES = 64
"""So many images, each on one type of node, are kept: those that are used least are forgotten."""
HALF_LIFE_S: Seconds = 7 * 24 * HOUR
"""A use counts half after so long."""
ASKED = 8
"""So many pods' pulls are asked for in a look."""
QUICK_S: Seconds = 5.0
"""A pod that worked so soon after it was bound pulled nothing that matters: nobody is asked."""
SHOWN = 3
"""So many images of a pool are named."""
AHEAD_S: Seconds = 600.0
"""A node that was Ready for so long, or for longer than the pull, could have pulled the image before its pod came."""
BACK = timedelta(hours=1)
"""Events of a pod are kept for so long by an API server that nobody configured otherwise."""


class Began(NamedTuple):
    """A pod that began to work, and how many more of its image did on that type that took as long, about."""

    node: Node
    pod: BoundPod
    alike: int = 0


def newly_working(memory: Memory, nodes: Iterable[Node], now: datetime) -> list[Began]:
    """GPU pods that began to work since the last count, one of each image and node type, and ``ASKED`` in all: of
    images that are known best first.
    """
    known = memory.first_work
    since = now - BACK if known.counted_to is None else max(known.counted_to, now - BACK)
    found: dict[str, list[Began]] = {}
    for node in nodes:
        for pod in node.gpu_pods:
            began, bound = pod.works_since, pod.started_at
            if began is not None and bound is not None and pod.image and since < began <= now and bound <= began:
                found.setdefault(image_key(node.instance_type, pod.image), []).append(Began(node, pod))
    best = sorted(found, key=lambda key: (-known.images[key].uses if key in known.images else 0.0, key))
    return [_middle(found[key]) for key in best[:ASKED]]


def _middle(began: Sequence[Began]) -> Began:
    """The middle one of those that took half as long as the longest, or longer: a pull, if any pulled."""
    longest_s = max(_whole_s(one.pod) for one in began)
    alike = [one for one in began if _whole_s(one.pod) * 2 >= longest_s]
    turn = sorted(alike, key=lambda one: (_whole_s(one.pod), one.pod.uid))
    return turn[(len(turn) - 1) // 2]._replace(alike=len(alike) - 1)


def began_at_once(pod: BoundPod) -> bool:
    """True where a pod worked so soon after it was bound that its images were there."""
    return pod.works_since is not None and pod.started_at is not None and _whole_s(pod) < QUICK_S


def _whole_s(pod: BoundPod) -> Seconds:
    """Seconds from its bind until it worked."""
    bound, works = pod.started_at, pod.works_since
    return (works - bound).total_seconds() if works is not None and bound is not None else 0.0


def image_key(instance_type: str, image: str) -> str:
    """The key of an image on a type of node."""
    return f"{instance_type} {image}"


def with_begun(memory: Memory, began: Sequence[Began], pulls: Mapping[str, Pull], now: datetime) -> Memory:
    """The memory after pods began to work; ``pulls`` are by uid, of those that told them."""
    was = memory.first_work
    images, plugins = dict(was.images), dict(was.plugins)
    for one in began:
        node, pod = one.node, one.pod
        if pod.started_at is None or pod.works_since is None:
            continue
        key = image_key(node.instance_type, pod.image)
        images[key] = _used(images.get(key), pulls.get(pod.uid), one, now)
        if (plugin_s := _plugin_s(node, pod)) is not None:
            plugins[node.pool] = with_seen(plugins.get(node.pool, ()), plugin_s)
    if len(images) > MOST_IMAGES:
        now_s = clock_seconds(now)
        images = dict(sorted(images.items(), key=lambda one: (-_faded(one[1], now_s), one[0]))[:MOST_IMAGES])
    return replace(memory, first_work=replace(was, images=images, plugins=plugins, counted_to=now))


def usual(known: FirstWork, pool: str, instance_type: str) -> Usual:
    """Usual seconds of each step in a pool."""
    own = of_type(known, instance_type)
    ranked = sorted(own.items(), key=lambda one: (-one[1].uses, one[0]))
    return Usual(
        boot=_median(known.boots.get(pool, ())),
        plugin=_median(known.plugins.get(pool, ())),
        pull=_weighted([(found, own[image].uses) for image, found in _habits(own, lambda load: load.pulls).items()]),
        start=_weighted([(found, own[image].uses) for image, found in _habits(own, lambda load: load.starts).items()]),
        images=tuple(name for name, _ in ranked[:SHOWN]),
    )


def pulls_saved(known: FirstWork, nodes: Iterable[Node]) -> dict[str, Seconds]:
    """Seconds of a pull that the next pod is saved, on average, by the images that each node has; by node."""
    by_type: dict[str, dict[str, Seconds]] = {}
    found = {}
    for node in nodes:
        if node.instance_type not in by_type:
            by_type[node.instance_type] = _saved(of_type(known, node.instance_type))
        there = frozenset(node.images)
        found[node.name] = sum(saved for image, saved in by_type[node.instance_type].items() if image in there)
    return found


def _saved(own: Mapping[str, ImageLoad]) -> dict[str, Seconds]:
    """Seconds of its pull that each image saves the next pod, by how likely it is to be its own."""
    uses = sum(load.uses for load in own.values()) or 1.0
    return {image: own[image].uses * found / uses for image, found in _habits(own, lambda load: load.pulls).items()}


def repository(image: str) -> str:
    """An image's name without tag and digest: what a pipeline builds anew with each commit has one."""
    name = image.partition("@")[0]
    path, slash, last = name.rpartition("/")
    return f"{path}{slash}{last.partition(':')[0]}"


def _habits(own: Mapping[str, ImageLoad], seen: Callable[[ImageLoad], Sequence[Seconds]]) -> dict[str, Seconds]:
    """Usual seconds of each image; of one of which too little was seen, those of its repository, if they are enough."""
    pooled: dict[str, list[Seconds]] = {}
    for image, load in own.items():
        pooled.setdefault(repository(image), []).extend(seen(load))
    enough = {image: seen(one) if len(seen(one)) >= LEAST else pooled[repository(image)] for image, one in own.items()}
    found = {image: _median(some) for image, some in enough.items()}
    return {image: seconds for image, seconds in found.items() if seconds is not None}


def as_learned(offerings: Sequence[Offering], memory: Memory) -> list[Offering]:
    """The offerings with the time until a pod works on a new node of them, as far as it was learned."""
    return [_learned(one, usual(memory.first_work, one.pool, one.instance_type)) for one in offerings]


def sell_as_begun(work: Work) -> None:
    """Sell each offering with the steps that were learned."""
    work.offerings = as_learned(work.offerings, work.memory)


def _learned(offering: Offering, steps: Usual) -> Offering:
    ready_s = None if steps.boot is None or steps.plugin is None else steps.boot + steps.plugin
    if ready_s is None and steps.pull is None:
        return offering
    return replace(offering, ready_s=ready_s, pull_s=steps.pull or 0.0)


def _used(was: ImageLoad | None, pull: Pull | None, one: Began, now: datetime) -> ImageLoad:
    """An image after one more pod began with it. Nothing told of a pull is longer than the pod was seen to take. Those
    that took as long pulled as it did, and weigh no more than it in what is usual.
    """
    now_s = clock_seconds(now)
    old = was or ImageLoad(at=round(now_s))
    fade = _fade(old, now_s)
    if pull is None:
        return replace(old, at=round(now_s), uses=old.uses * fade + 1, pulled=old.pulled * fade, late=old.late * fade)
    whole_s = min(max(0.0, _whole_s(one.pod)), MOST_S)
    pull_s = min(max(0.0, pull.seconds), whole_s)
    did = pull.seconds > 0
    pulled, ahead = did * (1 + one.alike), _ready_s(one.node, one.pod) >= min(AHEAD_S, pull_s)
    return ImageLoad(
        at=round(now_s),
        uses=old.uses * fade + 1,
        pulled=old.pulled * fade + pulled,
        late=old.late * fade + pulled * ahead,
        pulls=with_seen(old.pulls, pull_s) if did else old.pulls,
        starts=with_seen(old.starts, whole_s - pull_s),
        size=min(pull.size, MOST_BYTES) or old.size,
    )


MOST_BYTES = 1 << 42
"""No image is larger."""


def _ready_s(node: Node, pod: BoundPod) -> Seconds:
    """Seconds for which a node was Ready when a pod was bound to it."""
    if node.ready_since is None or pod.started_at is None:
        return 0.0
    return (pod.started_at - node.ready_since).total_seconds()


def _plugin_s(node: Node, pod: BoundPod) -> Seconds | None:
    """Seconds from Ready to the first pod on a node that had waited for it; None for any other."""
    ready, made = node.ready_since, pod.created_at
    if ready is None or made is None or pod.started_at is None or made > ready or pod.started_at < ready:
        return None
    first = min(one.started_at for one in node.gpu_pods if one.started_at is not None)
    return (pod.started_at - ready).total_seconds() if pod.started_at == first else None


def _median(seen: Sequence[Seconds]) -> Seconds | None:
    return float(median(seen)) if len(seen) >= LEAST else None


def _weighted(found: Sequence[tuple[Seconds, float]]) -> Seconds | None:
    """The median by weight: the least figure that half of all the weight is at or below."""
    half, so_far = sum(weight for _, weight in found) / 2, 0.0
    for seconds, weight in sorted(found):
        so_far += weight
        if so_far >= half:
            return seconds
    return None


def of_type(known: FirstWork, instance_type: str) -> dict[str, ImageLoad]:
    """Images on a type of node, by name."""
    start = f"{instance_type} "
    return {key.removeprefix(start): load for key, load in known.images.items() if key.startswith(start)}


def _fade(load: ImageLoad, now_s: Seconds) -> float:
    return float(0.5 ** (max(0.0, now_s - load.at) / HALF_LIFE_S))


def _faded(load: ImageLoad, now_s: Seconds) -> float:
    return load.uses * _fade(load, now_s)
