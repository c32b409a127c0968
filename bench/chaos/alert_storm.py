"""Alerts against local servers that answer as each provider does, three in ten requests failing.

``python bench/chaos/alert_storm.py --alerts 10000`` tells them twice: each by itself, and grouped. It exits 1 where one
is lost, where one is shown twice although no connection broke after the provider had taken it and it is no reminder,
where a message is larger than its provider takes, or where a secret shows. All of that is counted where it arrives, by
``bench/chaos/providers.py``. The deliveries are real HTTP; the pauses between attempts pass on a clock that is moved.
"""

import argparse
import io
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import pairwise
from random import Random
from typing import NamedTuple

import msgspec

from pilotlight.adapters import logs
from pilotlight.adapters.outbox.local import MemoryOutbox
from pilotlight.adapters.state.memory import MemoryState
from pilotlight.codec.events import encode
from pilotlight.codec.policy_file import read_policy
from pilotlight.facts.messages import Alert, DeadLetter, Tick
from pilotlight.flow.delivery.desk import UNDELIVERED
from pilotlight.settings import Settings
from pilotlight.wiring import App, app
from pilotlight.world.world_clock import VirtualClock
from providers import BREAKS, LATER, NEVER, SECRET, Kind, Provider, running

KINDS: tuple[Kind, ...] = ("slack", "telegram", "webhook", "pagerduty", "teams", "discord")
URLS = ("SLACK", "BOTS", "HOOK", "EVENTS", "TEAMS", "DISCORD")
"""The variables with the providers' addresses, in their order."""
FAULTY, AGAIN = 0.3, 0.1
"""Share of requests that fail, and of alerts whose sender delivers them again."""
AT_ONCE, WAVE, MOST_ROUNDS = 8, 40, 3000
BETWEEN_S = 5.0
"""The clock moves by so much between two waves."""
AGAIN_AFTER_S = 6 * 3600
"""The same thing is not told again for so long, as docs/guides/alerts.md promises."""
MOST_SLOW = 10
"""Answers of a provider that come too late, in all: each takes its channel's whole patience, on the wall."""

POLICY = """
version: 1
alerts:
  group_after: {group_after}
  channels:
    slack: {{kind: slack, url_env: SLACK, allow_private: true}}
    telegram: {{kind: telegram, token_env: TOKEN, chat: "-100", url_env: BOTS, allow_private: true}}
    webhook: {{kind: webhook, url_env: HOOK, secret_env: SIGN, allow_private: true}}
    pagerduty: {{kind: pagerduty, token_env: KEY, url_env: EVENTS, allow_private: true}}
    teams: {{kind: teams, url_env: TEAMS, allow_private: true}}
    discord: {{kind: discord, url_env: DISCORD, allow_private: true}}
"""


class Outcome(NamedTuple):
    """Counts of a storm's alerts by what became of them, over all channels.

    ``broken`` were shown again after a break: nobody can tell. ``reminded`` is how often a channel that still cannot
    be told was named again after its time.
    """

    told: int
    messages: int
    dead: int
    broken: int
    reminded: int
    lost: int
    doubled: int
    shown: int
    too_large: int
    seconds: float
    met: Counter[str]

    @property
    def violations(self) -> int:
        """Faults, of which there must be none."""
        return self.lost + self.doubled + self.shown + self.too_large


def storm(alerts: int, seed: int, *, grouped: bool = False, between_s: float = BETWEEN_S) -> Outcome:
    """So many alerts to all channels. Grouped ones meet no break after they were taken: then their counts add up."""
    faults = LATER + NEVER + (() if grouped else BREAKS)
    slow = min(alerts // 100, MOST_SLOW)
    providers = [Provider(kind, Random(f"{seed}{kind}"), FAULTY, faults, slow) for kind in KINDS]
    log, began = io.StringIO(), time.monotonic()
    logs.begin(log)
    with running(providers):
        wired, clock = _wired(providers, 10 if grouped else 0)
        for each in providers:
            each.elapsed = clock.elapsed_s
        said = _deliver(wired, clock, alerts, Random(seed), between_s)
    return _counted(wired, providers, alerts, log.getvalue() + said, time.monotonic() - began)


def _wired(providers: list[Provider], group_after: int) -> tuple[App, VirtualClock]:
    urls = {variable: each.url for variable, each in zip(URLS, providers, strict=True)}
    environ = {**urls, "TOKEN": f"12:{SECRET}", "SIGN": SECRET, "KEY": SECRET}
    clock = VirtualClock(datetime(2026, 11, 20, 12, tzinfo=UTC))
    return app(
        Settings(environ=environ),
        policy=read_policy(POLICY.format(group_after=group_after), "policy"),
        state=MemoryState(clock),
        outbox=MemoryOutbox(),
        clock=clock,
    ), clock


def _deliver(wired: App, clock: VirtualClock, alerts: int, rng: Random, between_s: float) -> str:
    """Wave after wave, then ticks until nothing waits; all that the function answered."""
    bodies = [body for n in range(alerts) for body in [_alert(n)] * (2 if rng.random() < AGAIN else 1)]
    said: list[str] = []
    with ThreadPoolExecutor(AT_ONCE) as senders:
        for first in range(0, len(bodies), WAVE):
            wave = bodies[first : first + WAVE]
            said += [str(answer.body) for answer in senders.map(lambda b: wired.receive("alert_fanout", b, {}), wave)]
            said.append(_tick(wired, clock, between_s))
    for _ in range(MOST_ROUNDS):
        said.append(_tick(wired, clock, 60))
        if not wired.state.scan("waiting/", limit=1).items:
            break
    return "\n".join(said)


def _alert(n: int) -> bytes:
    return encode(
        Alert(
            cluster="local",
            kind=f"kind-{n % 5}",
            severity="warning",
            fingerprint=f"storm/{n}",
            what=f"alert {n} & <more>",
            why="a storm",
            next="it passes",
            how="wait",
            usd_per_hour="1.25",
        ),
        id=f"storm-{n}",
    )


def _tick(wired: App, clock: VirtualClock, seconds: float) -> str:
    clock.advance(clock.elapsed_s() + seconds)
    tick = Tick(cluster="local", what="alerts", at=clock.now())
    return str(wired.receive("alert_fanout", encode(tick, id=f"tick-{clock.elapsed_s():g}"), {}).body)


def _counted(wired: App, providers: list[Provider], alerts: int, said: str, seconds: float) -> Outcome:
    sent = wired.outbox.sent  # type: ignore[attr-defined]
    letters = {m.id: msgspec.json.decode(m.data, type=DeadLetter) for m in sent if m.topic == "dead-letter"}
    stored = "".join(f"{key} {value.value!r}" for key, value in wired.state.scan("", limit=10**6).items)
    lost = doubled = 0
    for each in providers:
        ours = [one for one in letters.values() if one.path == f"alerts.channels.{each.kind}"]
        prints = {msgspec.json.decode(one.body)["data"]["fingerprint"] for one in ours}
        dead = {each for each in prints if not each.startswith("undelivered")}
        doubled += sum(max(0, n - 1 - _reminders(each, key) - each.broke[key]) for key, n in each.took.items())
        if any(key.startswith("group/") for key in each.took):  # Nothing broke there: the counts are exact.
            known = sum(n for key, n in each.sizes.items() if "undelivered" not in key) + len(dead)
            lost, doubled = lost + max(0, alerts - known), doubled + max(0, known - alerts)
        else:
            known_prints = each.took.keys() | dead
            lost += sum(f"storm/{n}" not in known_prints for n in range(alerts))
    return Outcome(
        told=sum(sum(each.sizes.values()) for each in providers),
        messages=sum(sum(each.took.values()) for each in providers),
        dead=len(letters),
        broken=sum(max(0, n - 1 - _reminders(each, key)) for each in providers for key, n in each.took.items()),
        reminded=sum(_reminders(each, key) for each in providers for key in each.took),
        lost=lost,
        doubled=doubled,
        shown=(said + stored + "".join(letter.reason for letter in letters.values())).count(SECRET),
        too_large=sum(each.too_large for each in providers),
        seconds=seconds,
        met=sum((each.met for each in providers), Counter()),
    )


def _reminders(provider: Provider, fingerprint: str) -> int:
    """Times that it was rightly told anew. The storm's own alerts are said once: one of them shown twice is a double
    however late. That a channel cannot be told is said each time, and may be shown once in ``AGAIN_AFTER_S``."""
    if not fingerprint.startswith(f"{UNDELIVERED}/"):
        return 0
    return sum(later - before >= AGAIN_AFTER_S for before, later in pairwise(provider.times[fingerprint]))


def main() -> int:
    """Both storms; the exit code."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--alerts", type=int, default=10_000)
    words.add_argument("--seed", type=int, default=1)
    asked = words.parse_args()
    wrong = 0
    for name, grouped in (("each by itself", False), ("grouped", True)):
        found = storm(asked.alerts, asked.seed, grouped=grouped)
        wrong += found.violations
        print(f"{asked.alerts} alerts to {len(KINDS)} channels, {name}, {found.seconds:.0f} s:")
        print(f"  told {found.told} in {found.messages} messages, dead letters {found.dead}")
        print(
            f"  lost {found.lost}, told twice {found.doubled}, secrets shown {found.shown}, too large {found.too_large}"
        )
        print(f"  shown again after a break that the provider had taken: {found.broken}")
        print(f"  told again after their time: {found.reminded}")
        print(f"  requests: {', '.join(f'{fault} {n}' for fault, n in sorted(found.met.items()))}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
