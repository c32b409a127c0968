"""Reads that an account at AWS refuses: what goes without each, and its right."""

from collections.abc import Iterator, Sequence

from pilotlight.adapters.pools.asg.account_reads import Read, reads, reads_of_prices
from pilotlight.errors import Denied, Forbidden, PilotlightError
from pilotlight.facts.limits.checks import Check, Level
from pilotlight.facts.policy import Policy
from pilotlight.ports.clouds import CloudAccount

FIX = "give its role the statement Look: pilotlight show docs/guides/eks.md"


def aws_rights(where: str, policy: Policy, account: CloudAccount) -> Iterator[Check]:
    """A check of each read that is refused, of the groups behind an address of the settings; one where none is."""
    types = sorted({pool.instance_type for pool in policy.pools.values()})
    asked = (*reads(where, account), *reads_of_prices(where, account, types))
    if asked:
        yield from _checks(asked)


def _checks(asked: Sequence[Read]) -> Iterator[Check]:
    refused = 0
    for read in asked:
        try:
            read.ask()
        except Forbidden as no:
            refused += 1
            yield _check("warning", f"may not {read.right}: {read.without} ({str(no)[:120]})", FIX)
        except Denied:  # The right is there: something is wrong with what was asked for so little of.
            continue
        except PilotlightError as error:
            refused += 1
            yield _check("unknown", f"{read.right} could not be asked: {error}", "try again")
    if not refused:
        yield _check("ok", f"may read what is asked of AWS: {len(asked)} rights asked one by one")


def _check(verdict: Level, what: str, fix: str = "") -> Check:
    return Check(code="right-aws", subject="rights at AWS", verdict=verdict, what=what, fix=fix)
