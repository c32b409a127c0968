"""Lengths of queues, read where each lies. Every read is one request under one deadline and changes nothing.

``prometheus``, ``pubsub``, ``rabbitmq`` and ``sqs`` are the kinds of places, each imported when a policy names one. A
length that cannot be read is an error, never 0. The wiring makes the reader, and looks ask it by a queue's name.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Protocol

from pilotlight.errors import BadInput
from pilotlight.facts.demand.worker_queues import QueueRules

SOURCES = ("prometheus", "pubsub", "rabbitmq", "sqs")


class Reader(Protocol):
    """One kind of source."""

    def __call__(self, where: str, secret: str, environ: Mapping[str, str]) -> float:
        """Messages that wait. Raises ``Retry`` kinds when later may work, else ``Denied`` or ``BadInput``."""
        ...


class PolicyQueues:
    """The queues of a policy by name. ``secret`` gives the value of a variable that the policy names."""

    def __init__(
        self, queues: Mapping[str, QueueRules], secret: Callable[[str], str], environ: Mapping[str, str]
    ) -> None:
        self._queues, self._secret, self._environ = queues, secret, environ

    def length(self, name: str) -> float:
        """Messages that wait in a queue, now."""
        rules = self._queues[name]
        kind, _, where = rules.source.partition(":")
        if kind not in SOURCES or not where:
            raise BadInput(f"queues.{name}.source: {kind!r} is none of {', '.join(SOURCES)}")
        read: Reader = import_module(f"pilotlight.adapters.queues.{kind}").read
        return read(where, self._secret(rules.secret_env) if rules.secret_env else "", self._environ)
