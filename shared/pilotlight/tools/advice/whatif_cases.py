"""Worked examples (YAML) -> cases by name, each with its inputs as exact numbers."""

from decimal import Decimal

import msgspec

from pilotlight.errors import BadInput


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A worked example: what it is about, where its figures come from, and the figures."""

    title: str
    source: str
    inputs: dict[str, Decimal]


def read_cases(text: bytes, where: str) -> dict[str, Case]:
    """The cases in ``text``; ``where`` is what errors call it. Raises ``BadInput``."""
    import yaml

    from pilotlight.codec.bounded_yaml import load

    try:
        # Only strings come out of the base loader, so that no figure passes through a binary float.
        return msgspec.convert(load(text), dict[str, Case], strict=False)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"{where}: not YAML: {error}") from None
    except msgspec.ValidationError as error:
        raise BadInput(f"{where}: {error}") from None
