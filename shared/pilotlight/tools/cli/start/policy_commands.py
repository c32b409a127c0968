"""``pilotlight check`` and ``pilotlight schema``: the policy file, before it is used."""

import json
import sys
from collections.abc import Sequence, Sized
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from pilotlight.errors import BadInput, BadPolicy, Reject
from pilotlight.settings import Settings, address_beside, deployed_settings, read
from pilotlight.units import HOUR

if TYPE_CHECKING:
    from pilotlight.facts.offers.catalog import Catalog
    from pilotlight.facts.policy import Policy

EXIT_BAD_INPUT = 2
EXIT_FOUND = 1
NO_POOLS = (
    "no pool is set, so no node is bought or released; next: pilotlight init --context CONTEXT -o NEW.yaml "
    "writes those of a cluster"
)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(check)
    app.command()(schema)


def check(
    policy: Annotated[str, typer.Argument(help="The policy file; - reads stdin.", metavar="POLICY")],
    fix: Annotated[bool, typer.Option("--fix", help="Write what can be mended without a choice, and say it.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The problems as JSON.")] = False,
) -> None:
    """Say what is wrong with a policy file, each problem by its path, and what each pool costs. Exit code 2 when
    something is wrong, 1 where there are only findings.

    Types and prices are those of the catalogue and of the policy's own files. A pool that these cannot price is a
    finding: its cloud may know the price. --fix writes misspelt keys right. Of a
    budget it tells the longest runs that it holds money for, and pools where one is above all of it. Of classes without
    an end it tells what happens at the budget's cap. Where PILOTLIGHT_CLUSTERS names many clusters it notes what is not
    done for all together, and where PILOTLIGHT_BILLS names a bill, why it cannot count.

    Example: [bold]pilotlight check policy.yaml[/bold]
    """
    mended, text = _fix(policy) if fix else [], None
    if policy == "-":
        policy, text = "stdin", sys.stdin.buffer.read()
    seen = _examined(policy, text)
    if as_json:
        told = {"policy": policy, "valid": not seen.problems, "problems": seen.problems, "findings": seen.findings}
        told |= {"run_s_held_by_budget": seen.budgets or {}, "notes": seen.notes, "fixed": mended}
        typer.echo(json.dumps(told, indent=2))
    else:
        _say(seen, [f"fixed: {line}" for line in mended] or ["--fix: no key to mend"] * fix)
    if seen.problems or seen.findings:
        raise typer.Exit(EXIT_BAD_INPUT if seen.problems else EXIT_FOUND)


class _Examined(NamedTuple):
    """All that a look at a policy file tells."""

    problems: list[str]
    findings: Sequence[str] = ()  # Pools that nothing known here prices.
    summary: tuple[str, ...] = ()
    notes: Sequence[str] = ()
    budgets: dict[str, dict[str, float]] | None = None  # Seconds of the longest runs that each holds money for.


def _examined(policy: str, text: bytes | None = None) -> _Examined:
    """The look. Where keys cannot be read, what can be read of the others is examined all the same."""
    from pilotlight.codec.policy_file import examine_policy
    from pilotlight.tools.lint.claim_notes import claim_notes, endless_notes, runs_held
    from pilotlight.tools.lint.policy_sense import pool_costs, runs_above_budgets, unbounded_gates, unpriced_pools
    from pilotlight.tools.lint.rule_words import rule_in_words

    try:
        found, problems = examine_policy(read(policy) if text is None else text, policy)
    except BadPolicy as error:
        return _Examined(error.problems)
    if found is None:
        return _Examined(problems)
    unread = _unreadable(found, policy)
    catalog = None if unread else _catalog(found, policy)
    problems += [*unread, *_unfit(found, policy)]
    findings = [f"{policy}: {one}" for one in unpriced_pools(found, catalog)] if catalog is not None else []
    if problems:
        return _Examined(problems, findings)
    settings = deployed_settings()
    notes = [
        *_of_many_clusters(found, policy, settings),
        *claim_notes(found),
        *endless_notes(found),
        *unbounded_gates(found),
    ]
    notes += [*(runs_above_budgets(found, catalog) if catalog is not None else ()), *_of_state(found, settings)]
    costs = pool_costs(found, catalog) if catalog is not None else ()
    budgets = {budget.name: runs_held(budget, found) for budget in found.budgets}
    size = f"({_several(found.pools, 'pool')}, {_several(found.rules, 'rule')})"
    first = f"{policy}: {_several(findings, 'finding') if findings else 'fine'} {size}"
    none = () if found.pools else (NO_POOLS,)
    runs = [_runs(name, each) for name, each in budgets.items()]
    summary = (first, *none, *costs, *map(rule_in_words, found.rules), *runs)
    return _Examined(problems, findings, summary, [f"{policy}: {note}" for note in notes], budgets)


def _say(seen: _Examined, fixed: list[str]) -> None:
    """Faults on stderr; else the summary, in which findings follow the first line. Before it: what was fixed."""
    from pilotlight.tools.cli.printing import say

    findings = [f"finding: {one}" for one in seen.findings]
    notes = [f"note: {note}" for note in seen.notes]
    say([*fixed, *seen.summary[:1], *findings, *seen.summary[1:], *notes])
    for problem in seen.problems:
        typer.echo(f"error: {problem}", err=True)


def _unfit(found: "Policy", policy: str) -> list[str]:
    """Names that are no labels, and bills that this policy cannot count."""
    from pilotlight.tools.lint.policy_sense import misnamed_pools, unlabelled_names

    bill = _of_bill(found, policy, deployed_settings())
    return [f"{policy}: {problem}" for problem in (*unlabelled_names(found), *misnamed_pools(found), *bill)]


def _fix(policy: str) -> list[str]:
    """Mend a file of this machine; what was written."""
    from pathlib import Path

    from pilotlight.tools.cli.whole_file import write_whole
    from pilotlight.tools.lint.policy_fix import fix_policy

    before = b"" if policy == "-" else read(policy)
    if not Path(policy).is_file():
        raise BadInput(f"{policy}: --fix writes a file of this machine, and this is none; copy it to one first")
    try:
        text, said = fix_policy(before.decode(), policy)
    except UnicodeDecodeError:
        return []  # The look at it says what is wrong.
    if said:
        write_whole(policy, text)
    return list(said)


def _catalog(found: "Policy", policy: str) -> "Catalog":
    """The catalogue with the price files that lie beside the policy."""
    from pilotlight.adapters.prices.price_files import FilePrices
    from pilotlight.settings import default_file
    from pilotlight.wiring import DEFAULT_CATALOG

    first = deployed_settings().catalog or str(default_file(DEFAULT_CATALOG))
    return FilePrices([first, *(address_beside(policy, name) for name in found.prices.files)], read).catalog()


def _of_state(found: "Policy", settings: Settings) -> list[str]:
    """Budgets that the state still counts for, and that this policy has no more; none where the state does not tell."""
    from pathlib import Path
    from types import SimpleNamespace

    from pilotlight.connections import state_at
    from pilotlight.errors import PilotlightError
    from pilotlight.flow.budgets.recounts import vanished_budgets
    from pilotlight.flow.records.ledger import recall

    kind, _, where = settings.state.partition(":")
    if kind == "memory" or (kind == "sqlite" and not (Path(where).exists() and Path(where).stat().st_size)):
        return []
    notes: list[str] = []
    for name in tuple(settings.clusters) or (settings.cluster_name,):
        try:
            state = state_at(settings.state, None, settings.environ)
            site = SimpleNamespace(name=name, state=state, policy=found)
            gone, _ = vanished_budgets(site, recall(state, name).memory.periods, state.now())
        except PilotlightError:
            continue
        notes += [f"{one.subject} is not in it any more: {one.message}" for one in gone]
    return notes


def _unreadable(found: "Policy", where: str) -> list[str]:
    """Faults of the files of prices that a policy names: they lie beside it."""
    from pilotlight.codec.bills.rates import read_rates
    from pilotlight.codec.catalog_file import read_catalog

    named = [("files", read_catalog, found.prices.files), ("charges", read_rates, found.prices.charges)]
    problems: list[str] = []
    for key, read_one, names in named:
        for n, name in enumerate(names):
            file = address_beside(where, name)
            try:
                read_one(read(file), file)
            except Reject as error:
                problems.append(f"{where}: prices.{key}[{n}]: {error}")
    return problems


def _of_bill(found: "Policy", policy: str, settings: Settings) -> list[str]:
    """Why the bill that the environment names cannot be counted by this policy."""
    if not settings.bills:
        return []
    problems: list[str] = []
    if settings.bills.startswith("civo:") and not found.prices.charges:
        problems.append(
            "prices.charges: names no file, and PILOTLIGHT_BILLS is Civo's, which bills hours without money: "
            "write what an hour of each code costs (8. The bill of pilotlight show docs/guides/civo.md)"
        )
    users = [name for name, own in settings.clusters.items() if (own.policy or settings.policy or policy) == policy]
    if len(settings.clusters) > 1 and users and found.bill is None:
        problems.append(
            f"bill: is missing: {', '.join(settings.clusters)} have one bill, and none says what is its own"
        )
    tags = found.bill.tags.values() if found.bill else ()
    if len(users) > 1 and found.bill is not None and not any("{cluster}" in value for value in tags):
        problems.append(
            f"bill: {', '.join(users)} would each count the same lines: name a tag, as eks:cluster-name: '{{cluster}}'"
        )
    return problems


def _of_many_clusters(found: "Policy", policy: str, settings: Settings) -> list[str]:
    """Notes on a policy of many clusters: what people expect of it and do not get."""
    named = {name: own.policy or settings.policy or policy for name, own in settings.clusters.items()}
    own = [name for name, used in named.items() if used == policy]
    notes: list[str] = []
    if len(own) > 1:
        notes += [
            f"budgets.{budget.name} is a cap in each of {', '.join(own)}, not one for all of them: "
            "give each a policy with its own share"
            for budget in found.budgets
        ]
    if own and settings.policy != policy and found.alerts != type(found.alerts)():
        notes.append(
            f"alerts are not used for {', '.join(own)}: alerts of all clusters go by those of the policy that "
            f"PILOTLIGHT_POLICY names ({settings.policy or 'the built-in one'})"
        )
    return notes


def _several(found: Sized, name: str) -> str:
    return f"1 {name}" if len(found) == 1 else f"{len(found)} {name}s"


def _runs(budget: str, runs: dict[str, float]) -> str:
    longest = ", ".join(f"{name} {seconds / HOUR:.4g} h" for name, seconds in runs.items())
    return f"budget {budget} holds for each node: {longest or 'its price'}"


def schema() -> None:
    """Print the JSON Schema of the policy file, for editors.

    Example: [bold]pilotlight schema > policy.schema.json[/bold]
    """
    from pilotlight.tools.lint.policy_schema import policy_schema

    typer.echo(json.dumps(policy_schema(), indent=2))
