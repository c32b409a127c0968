"""Alerts to a Telegram chat, by sendMessage of the Bot API.

The token is a part of the path, so nothing of the URL is ever shown. 429 says ``parameters.retry_after``; a group that
became a supergroup says ``migrate_to_chat_id`` with its 400: the new id is kept in the state, and used from then on.
"""

from typing import Any

import msgspec

from pilotlight.adapters.http import HttpAnswer
from pilotlight.adapters.webhook_post import LONGEST_WAIT_S, Poster
from pilotlight.codec.alert_bodies.telegram import telegram
from pilotlight.codec.alert_text import clean
from pilotlight.errors import BadInput, PilotlightError, Throttled
from pilotlight.facts.messages import Alert
from pilotlight.ports.state import Clock, State
from pilotlight.state_schema.marks import CHAT, Mark
from pilotlight.units import Seconds

PUBLIC = "https://api.telegram.org"


class TelegramChannel:
    """Sends each alert to one chat."""

    def __init__(
        self,
        token: str,
        chat: str,
        clock: Clock,
        state: State,
        *,
        server: str = PUBLIC,
        timeout_s: Seconds = 10.0,
        allow_private: bool = False,
    ) -> None:
        if not token.replace(":", "").replace("-", "").replace("_", "").isalnum():
            raise BadInput("a Telegram bot's token has letters, digits, dashes and one colon; take it from @BotFather")
        url = f"{server.rstrip('/')}/bot{token}/sendMessage"
        self._poster = Poster(url, "Telegram", timeout_s=timeout_s, allow_private=allow_private)
        self._token = token
        self._chat = chat
        self._clock = clock
        self._state = state

    def deliver(self, alert: Alert) -> str:
        text, chat = telegram(alert), self._moved() or self._chat
        reply, said = self._send(chat, text)
        moved = _parameters(said).get("migrate_to_chat_id")
        if reply.status == 400 and isinstance(moved, int) and not isinstance(moved, bool):
            CHAT.put(self._state, self._chat, Mark(note=str(moved)))
            reply, said = self._send(str(moved), text)
        if reply.status != 200 or said.get("ok") is not True:
            raise self._refusal(reply, said)
        result = said.get("result")
        return str(result.get("message_id", "")) if isinstance(result, dict) else ""

    def _moved(self) -> str:
        found = CHAT.get(self._state, self._chat)
        return found.value.note if found else ""

    def _send(self, chat: str, text: str) -> tuple[HttpAnswer, dict[str, Any]]:
        to: str | int = int(chat) if chat.removeprefix("-").isdigit() else chat
        body = {"chat_id": to, "text": text, "parse_mode": "HTML", "link_preview_options": {"is_disabled": True}}
        reply = self._poster.post(msgspec.json.encode(body), {"Content-Type": "application/json"})
        try:
            said = msgspec.json.decode(reply.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            said = None
        return reply, said if isinstance(said, dict) else {}

    def _refusal(self, reply: HttpAnswer, said: dict[str, Any]) -> PilotlightError:
        asked = _parameters(said).get("retry_after")
        if reply.status == 429 and isinstance(asked, int | float) and not isinstance(asked, bool) and asked >= 0:
            return Throttled(f"{self._poster.name} answered 429", float(min(asked, LONGEST_WAIT_S)))
        why = clean(str(said.get("description", "")))[:200].replace(self._token, "(token)")
        return self._poster.refusal(reply, self._clock.now(), f"{why or 'no reason given'}: check the token and chat")


def _parameters(said: dict[str, Any]) -> dict[str, Any]:
    found = said.get("parameters")
    return found if isinstance(found, dict) else {}
