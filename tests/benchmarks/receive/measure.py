"""Measure the CPU that one accepted delivery costs the real server: `python tests/benchmarks/receive/measure.py`.

The server runs in a process of its own with the real store (fsync before each 2xx); connections send deliveries that
differ in delivery id and event key, signed beforehand. CPU time is judged and not wall time, which others spoil.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import socket
import statistics
import sys
import tempfile
import time
import uuid
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path

import uvicorn

sys.path.insert(0, str(Path(__file__).parents[3]))

from bot.store.opening import open_store
from bot.web.webhook import WebhookReceiver, understanding
from tests.unit.web.support import SECRET, headers, label_event

GOAL_US = 200
"""Microseconds of CPU per accepted delivery, after warm-up."""


def serve(listener: socket.socket, folder: str, orders: Connection) -> None:
    """Run the server until told to stop; each order is answered with CPU seconds and peak memory so far."""
    _, store = open_store(Path(folder), None, now=lambda: datetime.now(UTC))
    understand = understanding(lambda _: True)
    app = WebhookReceiver(store, [SECRET], understand, lambda: datetime.now(UTC), lambda: None)
    config = uvicorn.Config(app, lifespan="off", ws="none", log_config=None, access_log=False)
    server = uvicorn.Server(config)

    def report() -> None:
        if orders.recv() == "stop":
            server.should_exit = True
            return
        used = resource.getrusage(resource.RUSAGE_SELF)
        orders.send((used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))

    async def main() -> None:
        asyncio.get_running_loop().add_reader(orders.fileno(), report)
        await server.serve(sockets=[listener])
        await store.close()

    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(main())


def request(size: int) -> bytes:
    """Write one delivery of about this many bytes as it goes over the wire."""
    payload = {
        **label_event(stamp=str(uuid.uuid4())),
        "padding": [{"url": "https://api.github.com/x" * 4}] * (size // 112),
    }
    body = json.dumps(payload).encode()
    lines = [f"{name}: {value}" for name, value in headers(body, guid=str(uuid.uuid4())).items()]
    head = "\r\n".join(["POST /webhook HTTP/1.1", "host: x", f"content-length: {len(body)}", *lines, "", ""])
    return head.encode() + body


async def send(port: int, requests: list[bytes], connections: int) -> list[float]:
    """Send all requests over kept connections; gives the seconds of each."""
    waiting = list(requests)
    seconds: list[float] = []

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while waiting:
            data = waiting.pop()
            began = time.perf_counter()
            writer.write(data)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            answer = await reader.readexactly(length)
            if b" 202 " not in head or b"accepted" not in answer:
                raise RuntimeError(f"not accepted: {head!r} {answer!r}")
            seconds.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(one() for _ in range(connections)))
    return seconds


def main() -> int:
    """Print figures as one JSON object; 1 where the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--deliveries", type=int, default=4000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--size", type=int, default=11_900, help="bytes of a body; GitHub's issues.labeled has 11,900")
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    here, there = multiprocessing.Pipe()
    with tempfile.TemporaryDirectory() as folder:
        process = multiprocessing.get_context("fork").Process(target=serve, args=(listener, folder, there))
        process.start()
        listener.close()
        warm = [request(options.size) for _ in range(500)]
        load = [request(options.size) for _ in range(options.deliveries)]
        asyncio.run(send(port, warm, options.connections))
        here.send("report")
        before, _ = here.recv()
        began = time.perf_counter()
        seconds = sorted(asyncio.run(send(port, load, options.connections)))
        wall = time.perf_counter() - began
        here.send("report")
        after, peak = here.recv()
        here.send("stop")
        process.join(20)
    cost = (after - before) / options.deliveries * 1e6
    figures = {
        "cpu_us_per_delivery": round(cost, 1),
        "deliveries_per_s": round(options.deliveries / wall),
        "p50_ms": round(statistics.median(seconds) * 1000, 2),
        "p99_ms": round(seconds[int(len(seconds) * 0.99)] * 1000, 2),
        "peak_mib": round(peak),
        "body_bytes": len(load[0]),
        "connections": options.connections,
        "cpus": os.cpu_count(),
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    return int(cost > GOAL_US)


if __name__ == "__main__":
    sys.exit(main())
