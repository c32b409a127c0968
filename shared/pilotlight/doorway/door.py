"""One request: its events found, each brought to the clusters it is for and answered."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from pilotlight.adapters.logs import LOGGER, bind_context
from pilotlight.codec.events import Delivery, Ignored, Refused, decode
from pilotlight.doorway.answers import (
    Response,
    answer_decision,
    answer_failure,
    answer_stalled_tick,
    kept_back,
    refuse,
    worst,
)
from pilotlight.doorway.functions import Function, House, Request, run, takes
from pilotlight.errors import PilotlightError, Reject, StoreFault, TooMuch
from pilotlight.facts.messages import (
    Alert,
    BudgetNotice,
    CapacityChanged,
    DeadLetter,
    Message,
    NodeJoined,
    PodPending,
    QuotaReserved,
    Tick,
)
from pilotlight.flow.answer import Answer
from pilotlight.settings import EVERY_CLUSTER
from pilotlight.units import Seconds

NOT_SET_UP = "not set up: "

AT_ONCE = "x-pilotlight-at-once"
"""The header of a person's request: its tick waits for no node, as somebody waits for the answer."""

NOT_PODS = "Kueue's Workloads are for kueue_admission; until they are sent there, the next tick looks at this one"
"""A source of all Events sends them to pod_pending, too: no mistake that a dead letter should tell of."""

WHOLE = ("reconcile", "billing")
"""Ticks that look at everything of their kind: what none of them sets apart any more is over."""

MAX_TICKS = 60
"""Ticks in a body: what a queue may have kept of a schedule while nobody took it. They are one look."""

_log = logging.getLogger(LOGGER)


def receive(
    house: House,
    function: Function,
    body: bytes,
    headers: Mapping[str, str],
    *,
    dryrun: bool = False,
    spare_s: Seconds = 0.0,
) -> Response:
    """Answer one request to a function. Never raises. ``spare_s``: so long a schedule's tick may wait for nodes that
    join: nobody waits for its answer.

    ``dryrun`` decides and answers, and changes nothing, not even the state. The header
    ``x-pilotlight-dryrun: true`` and ``dryrun`` on the event ask for it too.
    """
    known = {key.lower(): value for key, value in headers.items()}
    try:
        _check(house)
    except Exception as error:  # A deployment that is set up wrongly must not dead-letter its events.
        return answer_failure(error, NOT_SET_UP)
    dryrun = dryrun or known.get("x-pilotlight-dryrun", "").lower() in ("1", "true")
    request = Request(house=house, function=function, body=body, headers=known, dryrun=dryrun)
    limit = house.settings.max_body
    if len(body) > limit:
        return refuse(request, TooMuch(f"a body of over {limit:,} bytes; send it in parts"), 413)
    try:
        deliveries = _read(request)
    except Reject as error:
        return refuse(request, error)
    if len(deliveries) == 1 and AT_ONCE not in known:
        request = replace(request, watch_s=min(spare_s, house.settings.watch_s))
    answers = list(_each(request, deliveries))
    if len(answers) == 1:
        return answers[0]
    return worst(answers, {"answers": [answer.body for answer in answers]})


def _check(house: House) -> None:
    """Raises what is wrong with the whole deployment; one of many clusters answers for itself when its turn comes."""
    alone = house.clusters[0] if len(house.clusters) == 1 else ""
    _ = house.for_cluster(alone).late if alone else (house.state, house.outbox, house.policy)


def _read(request: Request) -> list[Delivery | Refused]:
    """The events of a body."""
    clusters = request.house.clusters
    found = decode(request.body, request.headers, cluster=clusters[0] if len(clusters) == 1 else EVERY_CLUSTER)
    ticks = sum(isinstance(one, Delivery) and isinstance(one.message, Tick) for one in found)
    if ticks > MAX_TICKS:
        raise TooMuch(f"{ticks} ticks in one body: more than {MAX_TICKS} are no schedule's; send one")
    return found


def _each(request: Request, deliveries: Sequence[Delivery | Refused]) -> Iterator[Response]:
    """The answer of each, in order. Equal ticks ask for one look, and have its answer."""
    looked = dict[tuple[str, str, bool], Response]()
    for one in deliveries:
        tick = one.message if isinstance(one, Delivery) and isinstance(one.message, Tick) else None
        if tick is None:
            yield _one(request, one)
            continue
        key = (tick.what, tick.cluster, isinstance(one, Delivery) and one.dryrun)
        if key not in looked:
            looked[key] = _one(request, one)
        yield looked[key]


def _one(request: Request, delivery: Delivery | Refused) -> Response:
    """Answer one event of a request."""
    if isinstance(delivery, Refused):
        return refuse(replace(request, body=delivery.body), delivery.error)
    request = replace(request, dryrun=request.dryrun or delivery.dryrun)
    message = delivery.message
    with bind_context(function=request.function, event=delivery.id, **_subject(message)):
        if isinstance(message, Ignored):
            return _ignore(message)
        if isinstance(message, QuotaReserved) and request.function == "pod_pending":
            return _ignore(Ignored(reason=NOT_PODS))
        clusters = _addressed(request.house, message)
        if isinstance(clusters, Ignored):
            return _ignore(clusters)
        if not clusters:
            return _answer(request, message)
        if len(clusters) == 1:
            return _at(request, message, clusters[0])
        return _abreast(request, message, clusters)


def _ignore(ignored: Ignored) -> Response:
    """``count`` is there to be summed over the log, by source and type."""
    counted = {"source": ignored.source, "type": ignored.type, "count": 1}
    _log.info("ignored", extra={"data": {"why": ignored.reason, **counted}})
    return Response(status=200, body={"ignored": ignored.reason})


def _abreast(request: Request, message: Message, clusters: Sequence[str]) -> Response:
    """Every cluster's answer by its name: one that fails or hangs never delays another."""
    from pilotlight.flow.abreast import abreast

    request = replace(request, watch_s=0.0)
    work = {name: partial(_at, request, message, name) for name in clusters}
    found = abreast(work, request.house.settings.wait_s)
    answers = {name: answer_failure(each) if isinstance(each, Exception) else each for name, each in found.items()}
    return worst(list(answers.values()), {"clusters": {name: answer.body for name, answer in answers.items()}})


def _at(request: Request, message: Message, cluster: str) -> Response:
    """One cluster's answer, under this deployment's name of it."""
    with bind_context(cluster=cluster):
        try:
            site = request.house.for_cluster(cluster)
            _ = site.late
        except Exception as error:  # One of many clusters that is set up wrongly is no fault of the event.
            if isinstance(message, Tick):
                return answer_stalled_tick(request, message, error)
            return answer_failure(error, NOT_SET_UP)
        return _answer(replace(request, house=site), replace(message, cluster=cluster))


def _answer(request: Request, message: Message) -> Response:
    try:
        answer = run(request, message)
        if request.suspects is not None or (isinstance(message, Tick) and message.what in WHOLE):
            _tell_set_apart(request, message, answer)
        return answer_decision(answer, message)
    except Exception as error:  # The one place that answers for what nobody foresaw.
        apart = _without_its_object(request, error)
        if apart is None and isinstance(message, Tick) and takes(request.function, message):
            return answer_stalled_tick(request, message, error)
        if isinstance(error, StoreFault):
            return kept_back(request, error)
        if apart is None:
            return refuse(request, error) if isinstance(error, Reject) else answer_failure(error)
    return _answer(apart, message)


def _without_its_object(request: Request, error: Exception) -> Request | None:
    """The request once more, without the object that an unexpected error is set down to; None where it is of none.

    A run that failed is a worker that died: whatever it has done is found, and taken up, by the next.
    """
    if isinstance(error, PilotlightError):
        return None
    from pilotlight.doorway.blame import Suspects

    suspects = request.suspects or Suspects()
    _log.error("set apart", exc_info=error, extra={"data": {"why": type(error).__name__}})
    return replace(request, suspects=suspects) if suspects.blame(error) else None


def _tell_set_apart(request: Request, message: Message, answer: Answer) -> None:
    """People hear once of what is set apart, and once that it is over, by a look that sees everything."""
    if request.dryrun or answer.outcome in ("at-work", "known"):
        return
    from pilotlight.flow.alerts.isolation import settle

    apart = tuple(request.suspects.apart.values()) if request.suspects is not None else ()
    settle(request.deps, message.what if isinstance(message, Tick) else "", apart)


def _subject(message: Message | Ignored) -> dict[str, str]:
    match message:
        case QuotaReserved():
            return {"cluster": message.cluster, "workload": f"{message.namespace}/{message.name}"}
        case NodeJoined():
            return {"cluster": message.cluster, "node": message.name}
        case PodPending():
            return {"cluster": message.cluster, "pod": f"{message.namespace}/{message.name}"}
        case Ignored():
            return {}
    return {"cluster": message.cluster} if not isinstance(message, DeadLetter) else {}


def _addressed(house: House, message: Message) -> Sequence[str] | Ignored:
    """The clusters a message is for, none where it is about none; a cluster that is not served is let pass.

    One that names no cluster is for all: events are hints, and each cluster looks for itself. A cloud's budget is all
    clusters', and the first one speaks for it. The embedded default takes whatever comes.
    """
    alerts = isinstance(message, Tick) and message.what == "alerts"
    if alerts or isinstance(message, Alert | CapacityChanged | DeadLetter):
        return ()
    if message.cluster in ("", EVERY_CLUSTER) or not (house.settings.cluster or house.settings.clusters):
        return house.clusters[:1] if isinstance(message, BudgetNotice) else house.clusters
    if message.cluster in house.clusters:
        return (message.cluster,)
    return Ignored(reason=f"about cluster {message.cluster}; this deployment serves {', '.join(house.clusters)}")
