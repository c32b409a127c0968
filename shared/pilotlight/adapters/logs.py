"""Logs as data: one JSON object a line, in the keys that Cloud Logging and CloudWatch read."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

LOGGER = "pilotlight"

logging.getLogger(LOGGER).addHandler(logging.NullHandler())  # Else logging itself prints warnings, with tracebacks.

_bound: ContextVar[dict[str, str]] = ContextVar("pilotlight_log_context", default={})  # noqa: B039 (never changed)


@contextmanager
def bind_context(**context: str) -> Iterator[None]:
    """Every line logged inside carries these fields, those that are empty left out."""
    token = _bound.set({**_bound.get(), **{key: value for key, value in context.items() if value}})
    try:
        yield
    finally:
        _bound.reset(token)


class JsonLines(logging.Formatter):
    """``severity``, ``time``, ``message``, what is bound, and the record's own ``data``."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "severity": record.levelname,
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "message": record.getMessage(),
            **_bound.get(),
            **getattr(record, "data", {}),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def begin(stream: TextIO | None = None) -> None:
    """Write this product's log to ``stream``. Without it commands stay silent."""
    logger = logging.getLogger(LOGGER)
    if any(isinstance(handler.formatter, JsonLines) for handler in logger.handlers):
        return
    # No line of ours names its caller or thread: logging need not look for them (its documentation, "Optimization").
    logging._srcfile, logging.logThreads, logging.logMultiprocessing = None, False, False
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
