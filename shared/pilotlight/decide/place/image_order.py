"""Nodes for pods by the images that they have: of a pool's nodes as full, one with the image before one that pulls it.

A scheduler's ImageLocality cannot choose where each pod has a home, so the plan does. Nodes that are alike but for
their images change places, and nothing else does: as many stay empty as without images, and no pull is paid for.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from pilotlight.decide.fit.fit import Bin
from pilotlight.decide.work import Work
from pilotlight.facts.capacity import Node
from pilotlight.facts.workload import PodDemand

MOST = 256
"""So many nodes with room, the first in order, may change places for a pod."""


def prefer_images(work: Work) -> None:
    """Place pods by the images that nodes have."""
    work.run.images = ImageOrder(work.run.ready, work.view.nodes, work.view.pending)


class ImageOrder:
    """Images of nodes, against those that pods wait with, and the order of ready nodes by them."""

    def __init__(self, ready: Sequence[Bin], nodes: Iterable[Node], pending: Sequence[PodDemand]) -> None:
        wanted = {pod.image for pod in pending if pod.image}
        self._there = {node.name: wanted.intersection(node.images) for node in nodes}
        self._at = {bin_.where: at for at, bin_ in enumerate(ready)}

    def turns(self, pods: Sequence[PodDemand], bins: Iterable[Bin]) -> Iterator[tuple[Sequence[PodDemand], list[Bin]]]:
        """Pods with one image after those with another, as they stand, each with the nodes in its order."""
        there = sorted(bins, key=lambda bin_: self._at[bin_.where])
        for image, own in groupby(pods, key=lambda pod: pod.image):
            there = [bin_ for bin_ in there if not bin_.full]
            there[:MOST] = self._ordered(image, there[:MOST])
            yield list(own), there

    def _ordered(self, image: str, bins: Sequence[Bin]) -> list[Bin]:
        """Each in the place of one that is alike: with the image first, those last that other pods wait for."""
        keys = [(bin_.pool, *bin_.devices, *sorted(bin_.slices.items())) for bin_ in bins]
        alike: dict[tuple[object, ...], list[Bin]] = defaultdict(list)
        for key, bin_ in zip(keys, bins, strict=True):
            alike[key].append(bin_)
        turn = {key: iter(sorted(own, key=lambda bin_: self._rank(image, bin_))) for key, own in alike.items()}
        places = [self._at[bin_.where] for bin_ in bins]
        ordered = [next(turn[key]) for key in keys]
        self._at.update(zip([bin_.where for bin_ in ordered], places, strict=True))
        return ordered

    def _rank(self, image: str, bin_: Bin) -> tuple[bool, int]:
        there = self._there[bin_.where]
        return image not in there, len(there)
