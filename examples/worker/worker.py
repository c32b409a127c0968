"""The worker: takes one message after the other and answers it. On SIGTERM it ends what it has in hand, then itself.

Run: AMQP_URL=amqp://guest:guest@localhost:5672/%2F python worker.py
"""

import logging
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pika

URL = os.environ.get("AMQP_URL", "amqp://guest:guest@localhost:5672/%2F")
WORK = os.environ.get("QUEUE", "speech")
WORK_S = float(os.environ.get("WORK_S", "6"))
LOAD_S = float(os.environ.get("LOAD_S", "0"))
LOOK_S = 0.2


def load() -> None:
    """Load the model: here it only takes time."""
    time.sleep(LOAD_S)


def transcribe(body: bytes) -> bytes:
    """Put your model here."""
    time.sleep(WORK_S)
    return body.upper()


def run() -> None:
    """Take messages until SIGTERM. One is acknowledged once its answer is sent: what a lost worker had comes again."""
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ending.append(number))
    load()
    connection = pika.BlockingConnection(pika.URLParameters(URL))
    channel = connection.channel()
    channel.queue_declare(WORK, durable=True)
    channel.basic_qos(prefetch_count=1)
    logging.info("ready")
    with ThreadPoolExecutor(1) as thread:
        while not ending:
            method, about, body = channel.basic_get(WORK)
            if method is None:
                connection.process_data_events(LOOK_S)
                continue
            work = thread.submit(transcribe, body)
            while not work.done():
                connection.process_data_events(LOOK_S)  # Heartbeats go on while the GPU works.
            if about.reply_to:
                answer = pika.BasicProperties(correlation_id=about.correlation_id)
                channel.basic_publish("", about.reply_to, work.result(), answer)
            channel.basic_ack(method.delivery_tag)
    connection.close()
    logging.info("ended")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    run()
