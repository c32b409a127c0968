"""Label selectors: which objects they cover."""

from collections.abc import Mapping

from pilotlight.codec.kubernetes.typed_objects import Expression, Selector


def covers(selector: Selector, labels: Mapping[str, str]) -> bool:
    """True where labels meet a selector; an empty one covers all."""
    return all(labels.get(k) == v for k, v in selector.match_labels.items()) and all(
        _holds(e, labels) for e in selector.match_expressions
    )


def _holds(expression: Expression, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression.key)
    match expression.operator:
        case "In":
            return value in expression.values
        case "NotIn":
            return value not in expression.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False
