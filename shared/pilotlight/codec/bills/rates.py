"""The price file of charges (YAML): what an hour of each of a cloud's charge codes costs, with source and date."""

from collections.abc import Mapping
from decimal import Decimal

import msgspec

from pilotlight import typed_json
from pilotlight.errors import BadInput


class Rate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dollars for an hour of a code in a region, or for an hour of each GB where it is sold by size.

    An empty region is every region. ``gpus`` counts GPU-hours; ``pool`` is the policy's pool that it belongs to.
    """

    code: str
    region: str = ""
    usd_per_hour: Decimal | None = None
    usd_per_gb_hour: Decimal | None = None
    gpus: int = 0
    pool: str = ""
    source: str
    date: str


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    charges: list[Rate]


Rates = Mapping[tuple[str, str], Rate]
"""Rates by code and region."""


def read_rates(text: bytes, where: str) -> dict[tuple[str, str], Rate]:
    """The rates in ``text``; ``where`` is what errors call it. Raises ``BadInput``."""
    import yaml

    from pilotlight.codec.bounded_yaml import load

    try:
        # Only strings come out of the base loader, so that no price passes through a binary float.
        found = typed_json.convert(load(text), _File, strict=False)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{where}: not YAML: {error}") from None
    except msgspec.ValidationError as error:
        raise BadInput(f"{where}: {error}") from None
    rates: dict[tuple[str, str], Rate] = {}
    for index, rate in enumerate(found.charges):
        if problem := _problem(rate, rates):
            raise BadInput(f"{where}: charges[{index}] ({rate.code}): {problem}")
        rates[rate.code, rate.region] = rate
    return rates


def _problem(rate: Rate, others: Rates) -> str:
    prices = [price for price in (rate.usd_per_hour, rate.usd_per_gb_hour) if price is not None]
    if len(prices) != 1:
        return "name usd_per_hour or usd_per_gb_hour, and one of them only"
    if not prices[0].is_finite() or prices[0] < 0:
        return "a price is a number from 0 on"
    return "is there twice" if (rate.code, rate.region) in others else ""
