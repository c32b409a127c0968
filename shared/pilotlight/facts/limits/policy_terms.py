"""Types of values in the policy file: durations, dollars, amounts."""

from decimal import Decimal
from typing import Annotated

import msgspec

from pilotlight.units import Seconds

_TEXT_OR_NUMBER = {"written": ["number", "string"]}
"""``codec.policy_file`` puts this in the place of the schema's ``type``."""
Duration = Annotated[
    Seconds,
    msgspec.Meta(
        extra={"unit": "duration"},
        extra_json_schema={**_TEXT_OR_NUMBER, "pattern": r"^[0-9.]+(s|m|h|d)?$", "examples": ["90s", "10m", "2h"]},
    ),
]
"""Seconds, written as "90s", "10m", "2h", "1d" or a number of seconds."""
Dollars = Annotated[
    Decimal,
    msgspec.Meta(
        extra={"unit": "dollars"}, extra_json_schema={**_TEXT_OR_NUMBER, "format": "decimal", "examples": [12.24]}
    ),
]
"""Dollars, written as a number or as text."""
GpuMemory = Annotated[
    int,
    msgspec.Meta(extra={"unit": "GiB"}, extra_json_schema={"written": ["integer", "string"], "examples": ["40Gi", 40]}),
]
"""Whole GiB of one device, written as "40Gi" or 40."""
WholeAmount = Annotated[
    int,
    msgspec.Meta(
        extra={"unit": "amount"}, extra_json_schema={"written": ["integer", "string"], "examples": ["4Gi", 7]}
    ),
]
"""A whole amount of a resource, written as a number or as a quantity."""

ExactNumber = Annotated[
    Decimal, msgspec.Meta(extra_json_schema={**_TEXT_OR_NUMBER, "format": "decimal", "examples": [500]})
]
"""An exact number, written as a number or as text."""

WrittenName = Annotated[str, msgspec.Meta(extra={"unit": "name"})]
"""A name that is left out, or written: an empty one is refused."""
