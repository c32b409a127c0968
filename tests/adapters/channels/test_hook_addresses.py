"""A web hook's name may have several addresses."""

from typing import Any

import pytest

from pilotlight.adapters.channels.webhook import WebhookChannel
from pilotlight.errors import Forbidden
from pilotlight.facts.messages import Alert
from pilotlight.world.world_clock import VirtualClock

ALERT = Alert(cluster="c", kind="quota", severity="warning", fingerprint="quota/t4", what="no T4 left", why="used up")


@pytest.mark.parametrize("found", [("8.8.8.8", "10.0.0.1"), ("10.0.0.1", "8.8.8.8")])
def test_a_name_with_one_inner_address_is_refused(
    found: tuple[str, ...], clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever address comes first: none is connected to."""

    def names(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        return [(2, 1, 6, "", (address, port)) for address in found]

    monkeypatch.setattr("socket.getaddrinfo", names)
    with pytest.raises(Forbidden):
        WebhookChannel("http://hooks.example.com/", clock).deliver(ALERT)
