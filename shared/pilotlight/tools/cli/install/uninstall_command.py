"""``pilotlight uninstall``: pools go back to whoever kept them before, and nothing of ours stays in the cluster."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from pilotlight.errors import Denied, Failed, Retry
from pilotlight.facts.labels import HANDED_BACK
from pilotlight.tools.cli.install.handover_commands import RoleArn, cloud_of
from pilotlight.tools.cli.real_cluster import Context, Kubeconfig, settings_for
from pilotlight.tools.install.hand_over import Book, hand_back
from pilotlight.tools.install.handover_steps import MARK

if TYPE_CHECKING:
    from pilotlight.adapters.cluster.kubernetes.transport import Api
    from pilotlight.facts.limits.pool_handover import Taken
    from pilotlight.tools.install.connect_account import Step


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(uninstall)


def uninstall(
    context: Context = "",
    kubeconfig: Kubeconfig = "",
    role_arn: RoleArn = None,
    only_taints: Annotated[
        bool, typer.Option("--only-taints", help="Open nodes and NodePools, name what stays, and leave all else.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; do nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The lines as JSON.")] = False,
) -> None:
    """Give every pool back for good, and take out of a cluster all that is Pilotlight's: rights, taints, watchmen.

    No job and no node ends by it. A setting that would end one is left, and said: run it again when they are gone.
    It needs nothing of ours alive. Functions and their state in a cloud go by terraform destroy. A Helm release runs
    it with --only-taints as it goes, for an account that may do no more. Limits and machines of Karpenter's NodePools
    go back; those of claims of ours by handback before a Helm release goes.

    Example: [bold]pilotlight uninstall --context prod --dry-run[/bold]
    """
    from pilotlight.adapters.cluster.kubernetes.access.addresses import source_of
    from pilotlight.adapters.cluster.kubernetes.transport import Api

    settings = settings_for(context, kubeconfig)
    run = Removal(Api(source_of(settings.api, settings.environ, settings.role_arn)), role_arn, dry_run, only_taints)
    lines: list[str] = []
    for line in run.lines():
        lines.append(line)
        if not as_json:
            typer.echo(line)
    if as_json:
        typer.echo(msgspec.json.encode({"dry_run": dry_run, "lines": lines, "left": run.left}).decode())
    elif dry_run or not lines:
        typer.echo("nothing was changed" if lines else "nothing of Pilotlight's is on this cluster")
    if run.left and not dry_run:
        raise Failed(f"left for now: {'; '.join(run.left)}: run it again when that is over")


class Removal:
    """One run. ``left`` are the pools that are not given back whole, each with why: their record stays."""

    def __init__(self, api: "Api", role_arn: str | None, dry: bool, only_taints: bool = False) -> None:
        self._api, self._dry, self._only_taints = api, dry, only_taints
        self._cloud = partial(cloud_of, role_arn)
        self.left: list[str] = []

    def lines(self) -> Iterator[str]:
        """Remove it, a line each step: pools are marked and given back before the rights go, their record goes last."""
        from pilotlight.tools.install import remove_account

        yield from self._limits_back()
        if self._only_taints:
            yield from map(self._line, remove_account.leave(self._api, dry_run=self._dry))
            return
        found, unread = Book(self._api).read()
        self.left += unread
        for taken in found.values():
            yield from self._given_back(taken)
        yield from self._off_queues()
        records = () if self.left else self._forgotten(found)
        yield from map(self._line, remove_account.remove(self._api, dry_run=self._dry, then=records))

    def _line(self, step: "Step") -> str:
        return (
            f"{'would ' if self._dry else ''}{step.verb} {step.kind} {step.name}{f': {step.why}' if step.why else ''}"
        )

    def _limits_back(self) -> Iterator[str]:
        """Machines that we asked Karpenter for, and limits of GPUs, by which it bought what budgets had room for."""
        from pilotlight.tools.install.karpenter.claims_handback import give_claims, may_be_given
        from pilotlight.tools.install.karpenter.nodepool_handback import give_back

        api, now, dry = self._api, datetime.now(UTC), self._dry
        claimed = () if self._only_taints else may_be_given(api, ())
        try:
            for told in (*give_claims(api, claimed, now, dry_run=dry), *give_back(api, (), now, dry_run=dry)):
                yield told.line
        except (Denied, Retry) as no:  # Nodes are opened all the same.
            self.left.append(f"limits and claims of Karpenter's NodePools: {no}")

    def _off_queues(self) -> Iterator[str]:
        """Our check off Kueue's queues: once nobody answers it they admit nothing."""
        from pilotlight.errors import BadInput
        from pilotlight.tools.install import queue_checks

        try:
            for queue in queue_checks.hand_back(self._api, dry_run=self._dry):
                does = "open" if queue.opened else "free" if queue.freed else "take our check off"
                line = f"{does} {queue.kind} {queue.name}"
                if queue.failed:
                    self.left.append(f"{line}: {queue.failed}")
                yield f"{'would ' if self._dry else ''}{line}{f': not done: {queue.failed}' if queue.failed else ''}"
        except BadInput:
            return  # There is no Kueue.

    def _forgotten(self, found: "Mapping[str, Taken]") -> "Iterator[Step]":
        """Our marks and our record, once no right of ours is left to act by."""
        from pilotlight.tools.install import takeover_records
        from pilotlight.tools.install.connect_account import Step
        from pilotlight.tools.install.karpenter.nodepool_handback import take_again

        for told in take_again(self._api, (), dry_run=self._dry):
            yield Step("remove", "mark", "handed back", f"of {told.pool}")

        for taken in found.values():
            if self._unmarked(taken):
                yield Step("remove", "tag", HANDED_BACK, f"of group {taken.group}")
        if found:
            if not self._dry:
                takeover_records.drop(self._api)
            yield Step("remove", "ConfigMap", takeover_records.NAME)

    def _given_back(self, taken: "Taken") -> Iterator[str]:
        try:
            for told in hand_back(taken, self._cloud, Book(self._api), datetime.now(UTC), self._dry):
                yield told.line
                if told.passes:
                    self.left.append(told.line)
        except (Denied, Retry) as error:  # The others are given back all the same.
            self.left.append(f"{taken.pool}: {error}")

    def _unmarked(self, taken: "Taken") -> bool:
        """Take our mark off a group: whoever keeps it now needs no word of ours. Whether there is one."""
        handover = self._cloud(taken)
        state = handover.read().get(taken.pool) if handover is not None else None
        if handover is None or state is None or not state.settings.get(MARK):
            return self._dry and state is not None and state.marks
        if not self._dry:
            handover.put(state.group, MARK, "")
        return True
