"""The option of the commands that decide: what one job's waiting is worth."""

from decimal import Decimal
from typing import Annotated

import msgspec
import typer

from pilotlight.facts.policy import Policy

MOST = 1_000_000
"""Dollars an hour: more is a slip of the pen."""

ValueOfWait = Annotated[
    float | None,
    typer.Option(
        min=0, max=MOST, help="Dollars an hour that one job's waiting is worth; left out: the policy's value_of_wait."
    ),
]


def with_value_of_wait(policy: Policy, value_of_wait: float | None) -> Policy:
    """The policy with another price of waiting, where one is given; its classes scale it as before."""
    if value_of_wait is None:
        return policy
    return msgspec.structs.replace(policy, value_of_wait=Decimal(str(value_of_wait)))
