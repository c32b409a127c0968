"""One service of AWS in one region; a read of it is tried again within bounds: reading changes nothing."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pilotlight.adapters.aws_api.credentials import Credentials
from pilotlight.adapters.aws_api.forms import address
from pilotlight.adapters.http import Site
from pilotlight.errors import Retry, Throttled
from pilotlight.units import Seconds

T = TypeVar("T")


def read_again(once: Callable[[], T], pauses_s: Sequence[Seconds], sleep: Callable[[Seconds], None]) -> T:
    """Answer of ``once``, tried again after each pause, or as long as AWS asks for. Raises the last error."""
    for pause_s in pauses_s:
        try:
            return once()
        except Retry as error:
            sleep(max(pause_s, error.after_s) if isinstance(error, Throttled) else pause_s)
    return once()


class AwsService:
    """A service, called with these credentials. Opens nothing before the first call; safe for many threads."""

    def __init__(
        self,
        service: str,
        region: str,
        credentials: Credentials,
        environ: Mapping[str, str],
        *,
        sleep: Callable[[Seconds], None] = time.sleep,
        site: Callable[[str], Site] = Site,
    ) -> None:
        self._service, self.region, self._credentials, self.sleep = service, region, credentials, sleep
        self._url = address(service, region, environ)
        self._site = site(self._url)
