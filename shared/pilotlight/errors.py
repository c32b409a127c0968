"""Errors, named by what the caller does next.

::

    PilotlightError
    ├── Reject            never retry: the input is wrong; dead letter it, tell the sender (exit code 2)
    │   ├── BadInput      a file, an option or a body that cannot be read; names where
    │   ├── BadEvent      an event whose shape is refused; names the path
    │   │   └── TooMuch   a body that is too large, or holds too many events: only a short letter is kept
    │   └── BadPolicy     a policy that contradicts itself or the schema; names the path
    ├── Retry             later: nothing is wrong with the input (503 with Retry-After, exit code 1)
    │   ├── Busy          another holder works on this cluster, or the cloud works on this pool
    │   ├── Throttled     slow down, for ``after_s`` seconds
    │   ├── Unavailable   the store, the API server or the cloud does not answer
    │   │   ├── Unsure    it was asked, and the answer is lost: it may have been done
    │   │   └── StoreFault    the store refuses, or answers what cannot be read: no event is to blame for it
    │   │       └── Corrupt   a record of the state that cannot be read: stop, overwrite nothing
    │   └── Conflict      a compare-and-set lost: read again
    ├── Denied            the cloud or cluster says no; choose another offering, or tell people
    │   ├── NoCapacity    out of stock for now: next-best offering, look again later
    │   ├── QuotaExceeded the account's limit: alert, next-best offering
    │   ├── Forbidden     credentials or rights: alert, never retried blindly
    │   ├── LastNode      the cloud keeps a pool's last node: keep it too, and say what it costs
    │   └── BadRequest    our request is wrong: alert, never retried blindly
    └── Failed            a run could not be completed (exit code 1)
"""


class PilotlightError(Exception):
    """Whatever this product raises on purpose. ``str()`` is one line a person can act on."""


class Reject(PilotlightError):
    """Never retry: the input is wrong."""


class BadInput(Reject):
    """A file, an option or a body that cannot be read."""


class BadEvent(Reject):
    """An event whose shape is refused. ``path`` names the place, as in ``detail.instance-id``."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path


class TooMuch(BadEvent):
    """A body that is too large, or holds too many events: of it only a short letter is kept."""


class BadPolicy(Reject):
    """A policy that contradicts itself or its schema. ``problems`` holds one line each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Retry(PilotlightError):
    """Later: nothing is wrong with the input."""

    after_s: float = 5.0


class Busy(Retry):
    """Another holder works on this cluster, or the cloud works on this pool."""


class Throttled(Retry):
    """Slow down for ``after_s`` seconds."""

    def __init__(self, reason: str, after_s: float = 5.0) -> None:
        super().__init__(reason)
        self.after_s = after_s


class Unavailable(Retry):
    """The store, the API server or the cloud does not answer."""


class Unsure(Unavailable):
    """The request was sent and its answer is lost: it may have been done."""


class StoreFault(Unavailable):
    """The store refuses, or answers what cannot be read, until a person mends it. What came in is not to blame: it
    comes again, and work is saved without the store meanwhile."""

    after_s: float = 60.0


class Corrupt(StoreFault):
    """A record of the state that cannot be read: nothing may be written over it."""


class Conflict(Retry):
    """A compare-and-set lost: read again."""


class Denied(PilotlightError):
    """The cloud or the cluster says no."""


class NoCapacity(Denied):
    """Out of stock for now."""


class QuotaExceeded(Denied):
    """The account's limit is reached."""


class Forbidden(Denied):
    """Credentials or rights are missing."""


class LastNode(Denied):
    """The cloud keeps a pool's last node."""


class BadRequest(Denied):
    """Our own request is wrong."""


class Failed(PilotlightError):
    """A run could not be completed."""
