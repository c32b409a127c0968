"""``pilotlight notice-agent``: relays what a node's metadata server says of its end. One a node, and no rights."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

import typer

from pilotlight.adapters.webhook_post import Poster, check_url
from pilotlight.codec.events.encoding import CONTENT_TYPE, encode
from pilotlight.codec.policy_values import parse_duration
from pilotlight.errors import BadInput, PilotlightError, Retry
from pilotlight.facts.messages import InterruptionNotice
from pilotlight.settings import deployed_settings
from pilotlight.tools.node_agent.metadata_notices import AZURE, GCP, AzureMetadata, GcpMetadata, MetadataNotices
from pilotlight.units import Seconds

EVERY_S: Seconds = 1.0
"""The server is asked, and what was not taken is sent again, so often."""

Post = Callable[[InterruptionNotice], None]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("notice-agent")(notice_agent)


def notice_agent(
    cloud: Annotated[str, typer.Option(help="Cloud of the machine: gcp or azure.")],
    to: Annotated[str, typer.Option(help="Where notices are posted: the address of Pilotlight's serve.")] = "",
    notice: Annotated[str, typer.Option(help="On Google Cloud, what is left of a preempted machine.")] = "30s",
    metadata: Annotated[str, typer.Option(help="Another metadata server, to try it.", metavar="URL")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what stands now, and end.")] = False,
) -> None:
    """Relay what this machine's metadata server says of its end, each notice until it is taken. Runs on and on.

    The token is read from PILOTLIGHT_TOKEN, the cluster's name from PILOTLIGHT_CLUSTER. It asks no API server.

    Example: [bold]pilotlight notice-agent --cloud gcp --to http://pilotlight.pilotlight:8080[/bold]
    """
    settings = deployed_settings()
    if metadata:
        check_url(metadata, "metadata server")
    source = _source(cloud, settings.cluster_name, notice, metadata)
    if dry_run:
        for found in source.look(_now()):
            typer.echo(encode(found, id=found.identity).decode())
        return
    if not to:
        raise BadInput("--to is missing: name where notices are posted, as --to http://pilotlight.pilotlight:8080")
    told: set[str] = set()
    post = poster(to, settings.token)
    while True:
        relay(source, post, told, _now())
        time.sleep(EVERY_S)


def relay(source: MetadataNotices, post: Post, told: set[str], now: datetime) -> None:
    """One look: every notice that was not taken yet is posted. What fails is said, and tried at the next look."""
    try:
        found = source.look(now)
    except Retry as error:
        typer.echo(f"error: {error}", err=True)
        return
    for one in found:
        if one.identity in told:
            continue
        try:
            post(one)
        except PilotlightError as error:
            typer.echo(f"error: {one.kind} of {one.instance} is not taken yet: {error}", err=True)
        else:
            told.add(one.identity)
            typer.echo(f"{one.kind} of {one.instance} is told, it goes at {one.deadline}")


def poster(to: str, token: str) -> Post:
    """Posts a notice to a serve that this token lets in."""
    posts = Poster(f"{to.rstrip('/')}/spot_interruption", "receiver of notices", allow_private=True)
    shown = {"Authorization": f"Bearer {token}"} if token else {}

    def post(notice: InterruptionNotice) -> None:
        reply = posts.post(encode(notice, id=notice.identity), {"Content-Type": CONTENT_TYPE, **shown})
        if reply.status != 200:
            raise posts.refusal(reply, _now(), "check --to and PILOTLIGHT_TOKEN")

    return post


def _source(cloud: str, cluster: str, notice: str, metadata: str) -> MetadataNotices:
    if cloud not in ("gcp", "azure"):
        raise BadInput(f"--cloud is {cloud!r}: write gcp or azure; AWS tells its notices by EventBridge")
    if cloud == "azure":
        return AzureMetadata(cluster, metadata or AZURE)
    try:
        notice_s = parse_duration(notice)
    except ValueError as error:
        raise BadInput(f"--notice {notice!r} {error}") from None
    return GcpMetadata(cluster, notice_s, metadata or GCP)


def _now() -> datetime:
    return datetime.now(UTC)
