"""Queues whose length says how many workers there should be."""

from datetime import datetime
from typing import Annotated

import msgspec

from pilotlight.facts.limits.policy_terms import Duration


class QueueRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A queue and its workers. ``source`` is where its length is read:

    - ``sqs:https://sqs.REGION.amazonaws.com/ACCOUNT/NAME``
    - ``pubsub:projects/PROJECT/subscriptions/NAME``
    - ``rabbitmq:http(s)://HOST:PORT/VHOST/NAME`` (the management API; user and password, or a token, by ``secret_env``)
    - ``prometheus:URL?query=PROMQL`` (Kafka's lag, vLLM's waiting requests: anything that comes to one number)

    One worker takes ``per_worker`` messages as its share. With ``service``, which one message takes a worker, and
    ``drain``, in which what waits is to be done, there are as many as that takes, if those are more. Never fewer than
    ``min``, never more than ``max``; what was needed within ``keep`` stays asked for. ``workers`` is what runs them, as
    "namespace/name"; ``gpus`` is what one of them holds, ``load`` how long its model loads. Where ``pool`` is
    named, its nodes are lit for the workers that will come.
    """

    source: str  # Address that its length is read at.
    workers: str = ""  # "namespace/name" of what runs them.
    per_worker: Annotated[int, msgspec.Meta(ge=1)] = 1  # Messages that one worker takes as its share.
    service: Duration = 0  # Seconds that one message takes a worker; 0: not reckoned with.
    drain: Duration = 0  # Seconds in which what waits is to be done; 0: not reckoned with.
    min: Annotated[int, msgspec.Meta(ge=0)] = 0  # Workers at least.
    max: Annotated[int, msgspec.Meta(ge=1)] = 10  # Workers at most.
    gpus: Annotated[int, msgspec.Meta(ge=1)] = 1  # GPUs that one worker holds.
    load: Duration = 0  # Seconds that its model loads.
    keep: Duration = 900  # Seconds for which workers that were needed stay asked for.
    pool: str = ""  # Pool that is lit for workers that will come; empty: none.
    secret_env: str = ""  # Variable with the secret of its source.


class QueueReading(msgspec.Struct, frozen=True, kw_only=True):
    """Length of a queue at a moment, in messages."""

    at: datetime
    length: float


class QueueHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The last readings of a queue, oldest first."""

    readings: tuple[QueueReading, ...] = ()


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """Number of workers that there should be, and the sum behind it."""

    count: int
    why: str


class NodesAhead(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes of a pool for pods that are not there yet, whom they are for, and why so many."""

    nodes: int
    why: str
    whom: str = "workers that are coming"
