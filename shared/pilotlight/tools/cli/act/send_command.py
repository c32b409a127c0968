"""``pilotlight send``: hand one event to the function that takes it, served or in process."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

import msgspec
import typer

from pilotlight.codec.redact import without_login
from pilotlight.doorway import RECEIVES, Function, Response, takes
from pilotlight.errors import BadEvent, BadInput, Failed
from pilotlight.settings import Settings, deployed_settings, read
from pilotlight.tools.cli.served import Served, header, lend, running_serve, serve_beside, set_up, settings_of
from pilotlight.tools.cli.state_option import PolicyFile, is_there
from pilotlight.units import Seconds

EXAMPLE_URL = "http://127.0.0.1:8080"

AGAIN_S: Seconds = 0.5
AGAIN_FOR_S: Seconds = 30.0
"""A person wants to see what becomes of the event: while another delivery looks, it is sent again so often, so long."""

Asked = TypeVar("Asked", Response, Response | None)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(send)


def send(
    file: Annotated[
        Path, typer.Argument(help="An event, as pilotlight show events/samples/... prints; - reads stdin.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Decide and answer; change nothing.")] = False,
    url: Annotated[
        str, typer.Option(help=f"Where functions listen, as {EXAMPLE_URL}; else the serve over this state.")
    ] = "",
    policy: PolicyFile = "",
    as_json: Annotated[bool, typer.Option("--json", help="The answer, as JSON.")] = False,
) -> None:
    """Send one event to the function that takes it. The pod it names is first created in the embedded world.

    With no serve over this state, the flow runs in this process, on the same state and a fresh world. So does
    --dry-run, which leaves a running serve alone unless --url names it.

    Example: [bold]pilotlight show events/samples/kubernetes/failed_scheduling.json | pilotlight send - --dry-run[/bold]
    """
    name = "stdin" if str(file) == "-" else str(file)
    body, headers = _unpacked(sys.stdin.buffer.read() if str(file) == "-" else read(str(file)))
    try:
        function = function_of(body, headers)
    except BadEvent as error:
        raise BadInput(f"{name}: {error}") from None
    if function is None:
        said = "no function has anything to do for this event"
        typer.echo(json.dumps({"did": [], "why": said}, indent=2) if as_json else said)
        return
    head, answer = _answer(function, body, headers, url, dry_run, policy)
    if as_json:
        typer.echo(json.dumps(answer.body, indent=2))
    elif lines := _lines(function, answer.body):
        from pilotlight.tools.cli.printing import say

        say([head])
        typer.echo("\n".join(lines))
    if "rejected" in answer.body:
        raise BadInput(f"{name}: {answer.body['rejected']}")
    if answer.status != 200:
        raise Failed(f"{function} answered {answer.status}: {answer.body.get('error', 'no reason given')}")


def _answer(
    function: Function, body: bytes, headers: dict[str, str], url: str, dry_run: bool, policy: str
) -> tuple[str, Response]:
    """The line of what is asked, and the answer: of functions that listen, or of the flow in this process."""
    settings = deployed_settings()
    # Beside a home that asks for tokens nobody may post without one.
    may_post = settings.token or not settings.callers
    found = serve_beside(settings) if may_post else None
    _see_that_no_serve_has_another_world(settings, url, found, dry_run)
    there = url or (found.url if found and not dry_run else "")
    if policy and there:
        raise BadInput(f"the functions at {without_login(there)} go by their own policy: leave --policy or --url out")
    served = _served(there, function, body, headers, dry_run) if there else None
    if served is None and url:
        raise Failed(f"nothing listens at {without_login(url)}; start it, or leave --url out to run in this process")
    if served is not None:
        return _head_of(there), served
    head = header(settings, settings.state, here=True)
    if found is not None and dry_run and not set_up(settings):  # The state is of another world than this one.
        settings = msgspec.structs.replace(settings, state="memory:")
        asks = f"the serve at {found.url} is not asked: --url {found.url} asks it"
        head = f"{header(settings, settings.state, here=True)}; {asks}"
    return head, _in_process(settings, function, body, headers, dry_run, policy)


def _see_that_no_serve_has_another_world(settings: Settings, url: str, found: Served | None, dry_run: bool) -> None:
    asked_here = settings.world and not (url or found or dry_run)
    other = running_serve(settings) if asked_here else None
    if other is not None and other.settings.get("PILOTLIGHT_WORLD") != settings.world:
        raise BadInput(
            f"the serve at {other.url} keeps this state, of another world than PILOTLIGHT_WORLD: leave that out, or "
            "name a state of its own by PILOTLIGHT_STATE"
        )


def _head_of(url: str) -> str:
    """The line of the serve over this state, or of functions elsewhere, whose state is their own."""
    settings = deployed_settings()
    found = running_serve(settings)
    if found is None or found.url != url.rstrip("/"):
        return f"functions at {without_login(url)}, of a cluster and a state that are theirs"
    with lend(settings_of(serve_beside(settings), settings)):
        return header(deployed_settings(), settings.state)


def function_of(body: bytes, headers: dict[str, str]) -> Function | None:
    """The function that takes a body's first message, or None where none does. Raises ``BadEvent``."""
    from pilotlight.codec.events import Refused, decode

    found = decode(body, headers, cluster="")
    if not found:
        raise BadEvent("holds no event; pilotlight show lists samples, as events/samples/pilotlight/pod_pending.json")
    for one in found:
        for function in RECEIVES:
            if not isinstance(one, Refused) and takes(function, one.message):
                return function
    for one in found:
        if isinstance(one, Refused):
            raise one.error
    return None


def _unpacked(body: bytes) -> tuple[bytes, dict[str, str]]:
    """A sample of a binary CloudEvent is a file of ``{"headers", "body"}``."""
    try:
        parts = json.loads(body)
    except (ValueError, RecursionError):
        return body, {}
    if isinstance(parts, dict) and parts.keys() == {"headers", "body"}:
        return json.dumps(parts["body"]).encode(), {str(k): str(v) for k, v in parts["headers"].items()}
    return body, {}


def _served(url: str, function: Function, body: bytes, headers: dict[str, str], dry_run: bool) -> Response | None:
    """The answer of a running serve, or None where nothing listens."""
    if not dry_run and function == "pod_pending":
        created = _post(url, "/world/pods", body, headers)
        if created is None:
            return None
        # 404: it serves a real cluster, whose pods are its own.
        if created.status >= 400 and created.status != 404:
            raise BadInput(f"the pod could not be created in the world: {created.body.get('error')}")
    asked = {**headers, "x-pilotlight-at-once": "true", **({"x-pilotlight-dryrun": "true"} if dry_run else {})}
    return _settled(lambda: _post(url, f"/{function}", body, asked))


def _settled(ask: Callable[[], Asked]) -> Asked:
    """The answer, asked for again while another delivery is at work on the cluster."""
    until = time.monotonic() + AGAIN_FOR_S
    answer = ask()
    while answer is not None and answer.body.get("outcome") == "at-work" and time.monotonic() < until:
        time.sleep(AGAIN_S)
        answer = ask()
    return answer


def _post(url: str, path: str, body: bytes, headers: dict[str, str]) -> Response | None:
    from pilotlight.adapters.call_timeout import Deadline
    from pilotlight.tools.cli.proxied_http import ANSWER_S, ProxiedSite, Unanswered

    target, token = _path(url) + path, deployed_settings().token
    shown = {"Authorization": f"Bearer {token}"} if token else {}
    sent = {"Content-Type": "application/json", **headers, **shown}
    try:
        with Deadline(ANSWER_S) as deadline:
            answer = ProxiedSite(url).ask(deadline, "POST", target, body, sent)
    except Unanswered as error:
        if error.refused:
            return None
        raise Failed(f"{without_login(url)}: {error}; is `pilotlight serve` there?") from None
    if 300 <= answer.status < 400:
        raise Failed(f"{without_login(url)} leads elsewhere ({answer.status}), and is not followed: name that address")
    return Response(status=answer.status, body=_object(answer.body))


def _path(url: str) -> str:
    """A URL's path. Raises ``BadInput`` for what is no URL."""
    try:
        where = urlsplit(url)
        if where.scheme in ("http", "https") and where.hostname and where.port != 0:
            return where.path.rstrip("/")
    except ValueError:
        pass
    raise BadInput(f"--url is {without_login(url)!r}: write it as {EXAMPLE_URL}")


def _object(text: bytes) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {"error": "the answer is no JSON object"}


def _in_process(
    settings: Settings, function: Function, body: bytes, headers: dict[str, str], dry_run: bool, policy: str
) -> Response:
    from pilotlight.tools.serve import pods_to_world
    from pilotlight.wiring import app

    settings = msgspec.structs.replace(settings, policy=policy or settings.policy)
    if dry_run and not is_there(settings):
        settings = msgspec.structs.replace(settings, state="memory:")  # A question makes no file.
    wired = app(settings)
    if not (set_up(settings) or settings.pools):
        from pilotlight.world.machines import WorldPool

        WorldPool.every(wired.policy, wired.catalog)  # Raises for a type that no world can make.
    if function == "pod_pending" and dry_run:
        wired = pods_to_world.app_with_pods(wired, body, headers)
    elif function == "pod_pending":
        pods_to_world.create(wired, body, headers)
    left = not set_up(settings) and is_there(settings) and bool(wired.state.scan("", limit=1).items)
    answer = _settled(lambda: wired.receive(function, body, headers, dryrun=dry_run))
    if left and answer.status == 200:  # An error is told alone.
        sys.stderr.write(
            f"state: {settings.state} was left by a world that has ended; this one is new and has none of its nodes: "
            "PILOTLIGHT_STATE=sqlite:PATH gives it a state of its own\n"
        )
    return answer


def _once(did: str, why: str) -> str:
    """What was done with a call, without the reason where the line above says it."""
    call, _, reason = did.partition(", ")
    return call if reason and reason in why else did


def _lines(function: Function, body: dict[str, Any]) -> list[str]:
    """An answer as people read it."""
    if "answers" in body:
        return [line for answer in body["answers"] for line in _lines(function, answer)]
    if "ignored" in body:
        return [f"{function}: asks for nothing ({body['ignored']})"]
    if "why" not in body:
        return []
    lines = [f"{function}: {body['why']}", *(f"  did: {_once(did, body['why'])}" for did in body["did"])]
    for buy in (body.get("plan") or {}).get("buys", ()):
        lines.append(f"  would buy {buy['count']} x {buy['offering']} at ${buy['usd_per_hour']}/h: {buy['why']}")
    if body["decision"]:
        lines.append(f"  decision {body['decision']}; see: pilotlight why {body['decision']}")
    return lines
