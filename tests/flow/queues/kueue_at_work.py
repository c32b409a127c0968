"""Whether a Kueue is at work on a control plane: its controllers give every ResourceFlavor a finalizer in seconds."""

import time
import uuid
from collections.abc import Callable
from functools import cache

from queue_site import ANY, KUEUE

from pilotlight.adapters.cluster.kubernetes.transport import JSON, NOTHING, Api, Missing
from pilotlight.errors import BadRequest


@cache
def is_at_work(api: Api) -> bool:
    """True where one is; False where its objects are not served, or nothing moves them."""
    name, path = f"pilotlight-test-{uuid.uuid4().hex[:8]}", f"{KUEUE}/resourceflavors"
    flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": name}, "spec": {}}
    try:
        api.ask("POST", path, NOTHING, flavor, JSON)
    except (Missing, BadRequest):
        return False
    try:
        return within(8, lambda: bool(api.get(f"{path}/{name}", ANY)["metadata"].get("finalizers")))
    finally:
        api.ask("DELETE", f"{path}/{name}", NOTHING, {}, JSON)


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Whether something comes true in time."""
    ends = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > ends:
            return False
        time.sleep(0.1)
    return True
