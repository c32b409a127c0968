"""Keys of earlier policy files, read as what took their place."""

from decimal import Decimal, InvalidOperation
from typing import Any

from pilotlight.codec.policy_values import Problems

EARLIER_WAIT = "wait_usd_per_hour"


def as_written_now(document: Any, problems: Problems) -> Any:
    """The document with ``classes.NAME.wait_usd_per_hour`` as one ``value_of_wait`` that the classes scale.

    Of the classes that are written, one without a price has a scale of 0. Both at once is a problem, told by its path.
    """
    classes = document.get("classes") if isinstance(document, dict) else None
    if not isinstance(classes, dict):
        return document
    priced = {name: rules for name, rules in classes.items() if isinstance(rules, dict) and EARLIER_WAIT in rules}
    if not priced:
        return document
    prices: dict[str, Decimal] = {}
    for name, rules in priced.items():
        at, price = f"classes.{name}.{EARLIER_WAIT}", _price(rules[EARLIER_WAIT])
        if price is None:
            problems.append((at, f"{rules[EARLIER_WAIT]!r} must be a number of 0 or more"))
        elif "value_of_wait" in document or "wait_scale" in rules:
            problems.append((at, "is in the file beside value_of_wait: take it out"))
        else:
            prices[name] = price
    value = prices.get("batch") or max(prices.values(), default=Decimal(0))
    return {**document, "value_of_wait": str(value), "classes": _scaled(classes, prices, value)}


def _price(text: Any) -> Decimal | None:
    try:
        price = Decimal(text)
    except (InvalidOperation, TypeError, ValueError):
        return None
    return price if price.is_finite() and price >= 0 else None


def _scaled(classes: dict[Any, Any], prices: dict[str, Decimal], value: Decimal) -> dict[Any, Any]:
    scaled: dict[Any, Any] = {}
    for name, rules in classes.items():
        if not isinstance(rules, dict):
            scaled[name] = rules
            continue
        price = prices.get(name, Decimal(0))
        rest = {key: inner for key, inner in rules.items() if key != EARLIER_WAIT}
        scaled[name] = {**rest, "wait_scale": f"{price / value:f}" if value else "0"}
    return scaled
