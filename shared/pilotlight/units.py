"""Units the whole product speaks: dollars, GPUs, seconds and quantities of Kubernetes.

Money is ``Decimal``; times are aware UTC ``datetime``; durations are seconds as ``float``.
"""

import re
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

Usd = Decimal
"""An amount of US dollars."""

UsdPerHour = Decimal
"""A price: US dollars for one hour."""

Seconds = float
"""A duration in seconds."""

HOUR = 3600.0
CENT = Usd("0.01")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLI_PER_GPU = 1000
"""Shares of a GPU are counted in thousandths: 1000 is a whole device."""

_SUFFIX: dict[str, Decimal] = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{s: Decimal(1000) ** (i + 1) for i, s in enumerate(["k", "M", "G", "T", "P", "E"])},
    **{s: Decimal(1024) ** (i + 1) for i, s in enumerate(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"])},
}
_ROUNDING = Context(prec=10_000, rounding=ROUND_HALF_UP)
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)", re.ASCII)
_LARGEST = Decimal(2) ** 63 - 1
"""Kubernetes caps a quantity at 2^63 - 1."""


def quantity(text: object) -> Decimal:
    """The value of a Kubernetes quantity: "32.5Gi", "8", "500m", "1e3", 2, 1e9.

    Raises ``ValueError`` for what is no quantity, is negative, or is above 2^63 - 1.
    Source of the grammar: apimachinery ``resource.Quantity``.
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"{_shown(text)} is not a quantity")
    match = _QUANTITY.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{_shown(text)} is not a quantity")
    number, exponent, suffix = match.groups()
    try:
        value = Decimal(number + (exponent or "")) * _SUFFIX[suffix or ""]
    except InvalidOperation:
        raise ValueError(f"{_shown(text)} is not a quantity") from None
    if value < 0:
        raise ValueError(f"{_shown(text)} is negative")
    if value > _LARGEST:
        raise ValueError(f"{_shown(text)} is larger than 2^63 - 1")
    return value


def _shown(text: object) -> str:
    """A value as errors name it; of a long one its beginning."""
    return one_line(repr(text), 60)


def one_line(text: str, most: int) -> str:
    """A text that others wrote as one line of printable characters, of a long one its beginning."""
    found = "".join(c if c.isprintable() else "?" for c in text[: most + 1])
    return found if len(found) <= most else f"{found[: most - 3]}..."


def milli(text: object) -> int:
    """A quantity in whole thousandths, rounded up: "500m" is 500, "2" is 2000."""
    return _ceil(quantity(text) * 1000)


def whole(text: object) -> int:
    """A quantity in whole units, rounded up: "1Gi" is 1073741824."""
    return _ceil(quantity(text))


def _ceil(value: Decimal) -> int:
    floor = int(value)
    return floor + (value > floor)


def per_hour(price: UsdPerHour, seconds: Seconds) -> Usd:
    """Cost of ``seconds`` at ``price`` dollars an hour, exact to the microsecond."""
    return price * round(seconds * 1_000_000) / Decimal(3_600_000_000)


def an_hour(usd: UsdPerHour | None) -> str:
    """``$1.00/h``, or that the price is not known."""
    return "price unknown" if usd is None else f"{cents(usd)}/h"


def of_unknown_price(nodes: int) -> str:
    """Nodes that a sum of dollars an hour leaves out: ", 1 node of unknown price"; empty for none."""
    return f", {count_of(nodes, 'node')} of unknown price" if nodes else ""


def at_least(usd: UsdPerHour, left_out: int, *, whole: bool = False) -> str:
    """Dollars an hour of nodes, as a least where some are left out: "at least $1.00/h"; ``whole``: with every digit."""
    return f"{'at least ' if left_out else ''}{all_digits(usd) if whole else cents(usd)}/h"


def shorten_figure(figure: Decimal, places: int = 6) -> Decimal:
    """A figure without the digits that a division leaves behind; a shorter one as it is."""
    exponent = figure.as_tuple().exponent
    return round(figure, places) if isinstance(exponent, int) and exponent < -places else figure


def round_usd(amount: Usd, step: Usd = CENT) -> Usd:
    """An amount to the cent. The one rule of every answer: an exact sum is rounded once, a half away from zero, as the
    page's browser does; so one sum reads alike everywhere, and what is printed beside it may differ from it by a cent.
    """
    return amount.quantize(step, context=_ROUNDING)


def cents(amount: Usd) -> str:
    """An amount as people read it: "$1,234.56"."""
    return f"${round_usd(amount):,.2f}"


def all_digits(amount: Usd) -> str:
    """An amount with its digits beyond the cent, of which a division may leave six: "$0.526"."""
    text = f"{shorten_figure(amount):,f}"
    whole, _, part = text.partition(".")
    return f"${whole}.{part.rstrip('0'):0<2}"


def count_of(count: int, thing: str) -> str:
    """Things with their number: "1 node", "3 nodes"."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


def moment_of(at: datetime, now: datetime) -> str:
    """A time as people read it on a day: "09:12:00"; with its date where that is another: "2026-11-27 06:00:00"."""
    return f"{at:%H:%M:%S}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M:%S}"


def clock_seconds(moment: datetime) -> Seconds:
    """Seconds from the epoch to an aware moment."""
    return (moment - EPOCH).total_seconds()


def moment(seconds: Seconds) -> datetime:
    """The aware UTC moment so many seconds after the epoch."""
    return EPOCH + timedelta(seconds=seconds)


def human(seconds: Seconds) -> str:
    """A duration as people read it: "45 s", "12 min", "3.5 h"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / HOUR:.1f} h"
