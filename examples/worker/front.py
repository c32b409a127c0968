"""The front: takes a request, puts it into the queue of work, and waits for its answer in a queue of its own.

Run: AMQP_URL=amqp://guest:guest@localhost:5672/%2F uvicorn front:app
"""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Event, Thread

import pika
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

URL = os.environ.get("AMQP_URL", "amqp://guest:guest@localhost:5672/%2F")
WORK = os.environ.get("QUEUE", "speech")
WITHIN_S = float(os.environ.get("WITHIN_S", "300"))
"""A worker may have to boot first."""


class Speech(BaseModel):
    """What is to be transcribed."""

    text: str


class Calls:
    """Requests on their way. One thread has the connection; what others want done on it is handed to that thread."""

    def __init__(self) -> None:
        self.waiting: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Future[bytes]]] = {}
        self.ready = Event()

    def run(self) -> None:
        """Connect, and take answers until the connection is closed."""
        self.connection = pika.BlockingConnection(pika.URLParameters(URL))
        self.channel = self.connection.channel()
        self.channel.queue_declare(WORK, durable=True)
        self.answers = self.channel.queue_declare("", exclusive=True).method.queue
        self.channel.basic_consume(self.answers, self._answered, auto_ack=True)
        self.ready.set()
        try:
            self.channel.start_consuming()
        finally:
            self.connection.close()

    def stop(self) -> None:
        """End the thread."""
        self.connection.add_callback_threadsafe(self.channel.stop_consuming)

    async def ask(self, body: bytes) -> bytes:
        """The worker's answer. Raises TimeoutError; the work stays in the queue and is done anyway."""
        name, loop = uuid.uuid4().hex, asyncio.get_running_loop()
        self.waiting[name] = loop, loop.create_future()
        about = pika.BasicProperties(reply_to=self.answers, correlation_id=name, delivery_mode=2)
        self.connection.add_callback_threadsafe(lambda: self.channel.basic_publish("", WORK, body, about))
        try:
            return await asyncio.wait_for(self.waiting[name][1], WITHIN_S)
        finally:
            del self.waiting[name]

    def _answered(self, _channel: object, _method: object, about: pika.BasicProperties, body: bytes) -> None:
        found = self.waiting.get(about.correlation_id)
        if found is not None:  # Nobody waits any more for an answer that came late.
            loop, future = found
            loop.call_soon_threadsafe(lambda: future.done() or future.set_result(body))


calls = Calls()


@asynccontextmanager
async def connected(_: FastAPI) -> AsyncIterator[None]:
    """The connection, as long as the front serves."""
    thread = Thread(target=calls.run, daemon=True)
    thread.start()
    if not await asyncio.to_thread(calls.ready.wait, 30):
        raise RuntimeError("no RabbitMQ answers at AMQP_URL")
    yield
    calls.stop()
    thread.join(5)


app = FastAPI(lifespan=connected)


@app.post("/speech")
async def speech(asked: Speech) -> dict[str, str]:
    """The answer of whichever worker is free first."""
    try:
        return {"answer": (await calls.ask(asked.text.encode())).decode()}
    except TimeoutError:
        raise HTTPException(504, "no worker has answered yet; the request stays in the queue") from None
