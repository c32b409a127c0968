"""Events as a Lambda is handed them: a batch of SQS's records, of which those to be tried again go back; or one event.

A record that later may work goes back to its queue alone, and after the queue's last attempt to its dead letters. One
that is refused is done: the dead letter with its reason is written by the door.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from pilotlight.doorway.door import receive
from pilotlight.doorway.functions import Function, House
from pilotlight.errors import Failed
from pilotlight.units import Seconds

ENOUGH_S: Seconds = 15.0
"""With less left of the Lambda's time no further record is begun: it would be cut off at work."""

Record = Mapping[str, Any]


def take(house: House, function: Function, event: Any, left_s: Callable[[], Seconds]) -> dict[str, Any]:
    """The answer to one invocation: ``batchItemFailures`` for a batch, else what was decided.

    Raises ``Failed`` for a single event that is to come again: that is how Lambda is told.
    """
    records = _records(event)
    if records:
        back = [{"itemIdentifier": record["messageId"]} for record in _back(house, function, records, left_s)]
        return {"batchItemFailures": back}
    answer = receive(house, function, msgspec.json.encode(event), {}, spare_s=left_s() - ENOUGH_S)
    if answer.status >= 500:
        raise Failed(msgspec.json.encode(answer.body).decode())
    return answer.body


def _records(event: Any) -> Sequence[Record]:
    """The records of a batch of SQS; none where the event is something else."""
    match event:
        case {"Records": [{"eventSource": "aws:sqs"}, *_]}:
            found: Sequence[Record] = event["Records"]
            return found
    return ()


def _back(
    house: House, function: Function, records: Sequence[Record], left_s: Callable[[], Seconds]
) -> Iterator[Record]:
    """Those that go back. The same body again has the answer that it had: ticks that piled up are one look.

    Of a FIFO queue's group all that follow one go back with it, to come in their order.
    """
    statuses: dict[str, int] = {}
    held: set[str] = set()
    spare_s = left_s() - ENOUGH_S if len(records) == 1 else 0.0
    for n, record in enumerate(records):
        body, group = record["body"], record.get("attributes", {}).get("MessageGroupId", "")
        if group not in held and (not n or left_s() >= ENOUGH_S):
            if body not in statuses:
                statuses[body] = receive(house, function, msgspec.json.encode(record), {}, spare_s=spare_s).status
            if statuses[body] < 500:
                continue
        if group:
            held.add(group)
        yield record
