"""The owner that made a pod, by its name alone."""

import re

_ADDED = re.compile(r"(-[a-f0-9]{6,10})?-[a-z0-9]{5}$|-\d+$")


def made_by(pod: str) -> str:
    """A pod's name without what its controller added: the ReplicaSet's hash and the pod's own, or an ordinal."""
    return _ADDED.sub("", pod)
