"""End of a cluster's credential: a check that fails when it comes soon."""

from datetime import datetime

from pilotlight.facts.limits.checks import SHORT_LIVED_S, TOKEN_WARNING_S, Check, Level, Token


def token_check(token: Token, now: datetime) -> Check:
    """The check that a credential does not end soon."""
    if token.ends is None:
        return _renew("warning", "a token that never ends")
    left = (token.ends - now).total_seconds()
    ends = f"{token.ends:%Y-%m-%d %H:%M} UTC"
    if left <= 0:
        return _renew("fault", f"its token ended {ends}")
    if token.made is not None and (token.ends - token.made).total_seconds() <= SHORT_LIVED_S:
        return _ok(f"short-lived, until {ends}; where it comes from renews it")
    if left < TOKEN_WARNING_S:
        return _renew("warning", f"its token ends {ends}, in {left / 86_400:.1f} days")
    return _ok(f"until {ends}")


def _renew(verdict: Level, what: str) -> Check:
    return Check(code="token", subject="credential", verdict=verdict, what=what, fix="pilotlight connect --rotate")


def _ok(what: str) -> Check:
    return Check(code="token", subject="credential", verdict="ok", what=what)
