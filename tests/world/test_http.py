"""The world's server: pods, faults, what is counted, and requests that are none."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from socketserver import StreamRequestHandler, TCPServer
from threading import Thread
from typing import Any

import msgspec
import pytest
from both_ways import served
from odd_server import OK, Line, talking
from small_cloud import CATALOG, POOLS, START, gang, pod, world

from pilotlight.adapters.clocks import ServedClock
from pilotlight.adapters.world_client import WorldClient
from pilotlight.errors import BadInput, Failed, NoCapacity, Unavailable, Unsure
from pilotlight.facts.workload import PodDemand
from pilotlight.ports.clouds import OPEN
from pilotlight.tools.serve.world_calls import NewPods
from pilotlight.tools.serve.world_server import Service
from pilotlight.world.simulation import World
from pilotlight.world.world_clock import WallClock


@pytest.fixture
def here() -> Service:
    """A small world's answers, without the network."""
    return Service(world())


def _get(service: Service, path: str) -> Any:
    status, body = service.answer("GET", path, b"")
    assert status == 200
    return json.loads(body)


def _create(service: Service, *demands: PodDemand, run_s: float = 60) -> list[str]:
    status, body = service.answer("POST", "/pods", msgspec.json.encode(NewPods(demands=demands, run_s=run_s)))
    assert status == 200, body
    created: list[str] = json.loads(body)["created"]
    return created


def test_a_pod_is_created_once(here: Service) -> None:
    """Creating it again changes nothing while it waits, while it runs, and after it has ended."""
    assert _create(here, pod("a"), pod("b")) == ["default/a", "default/b"]
    here.pools.grow("one", 1)
    for t in (0, 100, 160):
        here.world.advance(t)
        assert _create(here, pod("a")) == []
    assert [p["state"] for p in _get(here, "/pods") if p["uid"] == "a"] == ["finished"]


def test_the_pods_of_a_gang_are_one_job(here: Service) -> None:
    """They start together: a node for one of two starts neither."""
    _create(here, *gang("g", 2))
    here.pools.grow("eight", 1)
    here.world.advance(100)
    assert [p["state"] for p in _get(here, "/pods")] == ["pending", "pending"]
    here.pools.grow("eight", 2)
    here.world.advance(200)
    assert {(p["state"], p["node"]) for p in _get(here, "/pods")} <= {("running", "n1"), ("running", "n2")}


def test_a_report_counts_dollars_nodes_and_pods(here: Service) -> None:
    """The report tells the cost, the launches, each pool's resizes and the pods by state."""
    _create(here, pod("a"), pod("b"))
    here.pools.grow("one", 1)
    here.pools.grow("one", 1)
    here.world.advance(3600)
    report = _get(here, "/report")
    assert (report["cost_usd"], report["launches"], report["resizes"]) == ("1", 1, {"one": 1})
    assert report["pods"] == {"pending": 0, "running": 0, "finished": 2}


@pytest.mark.parametrize(
    ("pods", "grows", "surplus"),
    [
        pytest.param([pod("a")], [("one", 1)], 0, id="a node for a pod"),
        pytest.param([pod("a")], [("one", 1), ("one", 2)], 1, id="a second node for it"),
        pytest.param([pod("a")], [("one", 1), ("four", 1)], 1, id="a second node for it in another pool"),
        pytest.param([pod("a", 2), pod("b", 2)], [("four", 1), ("one", 1)], 1, id="two on one node, and one for none"),
        pytest.param([pod("a"), pod("b", 4)], [("one", 1), ("four", 1)], 0, id="a node each of its own type"),
        pytest.param([], [("one", 2)], 2, id="nodes for nobody"),
    ],
)
def test_what_is_bought_twice_is_counted(
    here: Service, pods: list[PodDemand], grows: list[tuple[str, int]], surplus: int
) -> None:
    """A node counts as surplus when those on their way could hold every pod that waits."""
    _create(here, *pods)
    for pool, to in grows:
        here.pools.grow(pool, to)
    assert _get(here, "/report")["surplus"] == surplus


def test_faults_are_set_while_the_world_runs(here: Service) -> None:
    """From then on the cloud refuses; set back, it sells again."""
    shortage = b'{"shortage": 1.0, "api_errors": [["observe", {"error": "NoCapacity", "message": "odd"}]]}'
    assert here.answer("PUT", "/faults", shortage)[0] == 200
    assert _get(here, "/faults")["api_errors"] == [
        ["observe", {"error": "NoCapacity", "message": "odd", "after_s": None}]
    ]
    with pytest.raises(NoCapacity, match="out of stock"):
        here.pools.grow("one", 1)
    with pytest.raises(NoCapacity, match="odd"):
        here.cluster.observe()
    here.answer("PUT", "/faults", b"{}")
    assert here.pools.grow("one", 1).desired == 1


def test_what_owners_were_told_can_be_read(here: Service) -> None:
    """Events on pods come back in their order."""
    told = b'{"namespace": "default", "name": "a", "reason": "Refused", "message": "4 of 4 GPUs"}'
    assert here.answer("POST", "/cluster/tell", told) == (200, b"null")
    assert _get(here, "/told") == [
        {"at": "2026-07-01T00:00:00Z", "pod": "default/a", "reason": "Refused", "message": "4 of 4 GPUs"}
    ]


@pytest.mark.parametrize(
    ("method", "path", "body", "says"),
    [
        pytest.param("GET", "/nothing", b"", "nothing at GET /nothing", id="an unknown path"),
        pytest.param("GET", "/pools/grow", b"", "nothing at GET /pools/grow", id="a call by GET"),
        pytest.param("POST", "/pools/grow", b"{", "/pools/grow", id="a truncated body"),
        pytest.param("POST", "/pools/grow", b'{"pool": "one", "to": "two"}', "$.to", id="an argument of another type"),
        pytest.param("POST", "/cluster/cordon", b'{"nodes": "n1"}', "nodes", id="an unknown argument"),
        pytest.param("PUT", "/faults", b'{"shortage": []}', "$.shortage", id="a fault of another type"),
        pytest.param("POST", "/pods", b"[" * 5000, "/pods", id="a body too deep"),
    ],
)
def test_a_request_that_is_none_is_400(here: Service, method: str, path: str, body: bytes, says: str) -> None:
    """It is refused in one line that names the place, and nothing changes."""
    status, answer = here.answer(method, path, body)
    problem = json.loads(answer)
    assert (status, problem["error"]) == (400, "BadInput")
    assert says in problem["message"]
    assert here.world.launches == 0


@contextmanager
def _listener(status: str, body: bytes) -> Iterator[str]:
    """A server that answers one request a connection and then closes it without a word; its address."""
    answer = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            if self.request.recv(65536):
                self.request.sendall(answer)

    with TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_connection_that_was_closed_meanwhile_is_made_anew() -> None:
    """A kept connection that the other side has closed is no error."""
    with _listener("200 OK", b'{"created": []}') as url:
        client = WorldClient(url)
        assert [client.create([pod("a")], 60) for _ in range(3)] == [[], [], []]


def test_a_change_whose_answer_is_lost_is_not_sent_again() -> None:
    """A connection that breaks after the request leaves it unknown; a kept one is not used for a change at all."""

    def answers_once(line: Line) -> None:
        line.hear()
        line.say(OK)
        line.hear()
        line.reset()

    with talking(answers_once) as odd:
        client = WorldClient(odd.url)
        client.call("pools/describe")
        client.change("pools/release", OPEN, pool="one", instance="n1")
        assert [heard.count(b"pools/release") for heard in odd.heard] == [0, 1]
    with talking(lambda line: line.reset() if line.hear() else None) as odd:
        with pytest.raises(Unsure):
            WorldClient(odd.url).change("pools/release", OPEN, pool="one", instance="n1")
        assert b"".join(odd.heard).count(b"pools/release") == 1


def test_a_world_whose_answer_drips_is_unavailable() -> None:
    """The call has a deadline, however steadily the answer comes."""

    def drips(line: Line) -> None:
        line.hear()
        line.drip(b"HTTP/1.1 200 OK\r\nX-Long: a")

    with talking(drips) as odd, pytest.raises(Unavailable, match="timed out"):
        WorldClient(odd.url, within_s=0.2).time()


def test_another_server_is_named() -> None:
    """An answer that no world gives is a failure that names the address, not a decoding error."""
    with _listener("404 Not Found", b"<html>") as url, pytest.raises(Failed, match=url):
        WorldClient(url).time()


def test_a_world_that_is_away_is_unavailable() -> None:
    """Nobody listens: later may work, and the line names the address."""
    with served(world()) as server:
        url = server.url
    with pytest.raises(Unavailable, match=url):
        WorldClient(url).time()


@pytest.mark.parametrize("url", ["", "127.0.0.1:80", "https://world", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """The setting is named."""
    with pytest.raises(BadInput, match="PILOTLIGHT_WORLD"):
        WorldClient(url)


def test_a_clock_that_runs_is_reckoned_after_the_first_use() -> None:
    """At a high speed the reckoned moment is near the world's own, and needs no world any more."""
    here = World(CATALOG, POOLS, clock=WallClock(START, speed=1000.0))
    with served(here) as server:
        clock = ServedClock(WorldClient(server.url))
        before = clock.now()
        assert abs((here.clock.now() - before).total_seconds()) < 1000
    assert clock.now() > before


class _Slow(WorldClient):
    """A world whose first answer takes a while on its way back."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.slept = False

    def time(self) -> Any:
        told = super().time()
        if not self.slept:
            self.slept = True
            time.sleep(0.5)
        return told


def test_a_slow_first_answer_does_not_set_the_clock_back() -> None:
    """Half a second is 500 of the world's here: a later answer tells the time better, and counts."""
    here = World(CATALOG, POOLS, clock=WallClock(START, speed=1000.0))
    with served(here) as server:
        clock = ServedClock(_Slow(server.url))
        clock.now()
        apart_s = (here.clock.now() - clock.now()).total_seconds()
    assert abs(apart_s) < 250


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        pytest.param("GET", "/clock", {}, 200, id="a program of this machine comes in"),
        pytest.param("GET", "/clock", {"Host": "evil.example"}, 403, id="not under another name"),
        pytest.param("POST", "/pods", {"Origin": "https://evil.example"}, 403, id="not from a page"),
        pytest.param("POST", "/pods", {"Content-Type": "text/plain"}, 415, id="not as a form"),
        pytest.param("PATCH", "/pods", {}, 405, id="not by a method that it does not take"),
        pytest.param("GET", "/nothing", {}, 404, id="not at a path that is not there"),
        pytest.param("POST", "/pods", {"Content-Length": "999999999999"}, 413, id="not without an end"),
    ],
)
def test_a_served_world_takes_what_the_table_of_paths_says(
    method: str, path: str, headers: dict[str, str], status: int
) -> None:
    """Over HTTP, with one line for what does not come in."""
    with served(world()) as server:
        connection = HTTPConnection("127.0.0.1", server.server_address[1])
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
    assert answer.status == status, said
    assert status == 200 or "\n" not in json.loads(said)["message"]
