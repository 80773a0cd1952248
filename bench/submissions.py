"""Durable submissions per second over HTTP, one by one from many callers.

The submission service alone in its process, real nats-server (`sync_interval: always`)
and PostgreSQL on the same machine, and so is the load generator. A request counts when
it was answered with 201: then its job is on the log.
"""

import asyncio
import json
import statistics
import time
from typing import Final

import uvloop

from bench.embedded import data_folder, remove
from bench.report import Figure, percentile, report, spread
from trainmaster.testkit.cluster import Cluster, until

ROUNDS, CALLERS, EACH = 3, 32, 100
JOB: Final = {"name": "bench", "command": ["true"], "work_directory": "/", "hold": True}


class Caller:
    """One kept connection of a caller that does nothing but ask."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.seconds: list[float] = []

    async def ask(self, path: str, bodies: list[bytes]) -> int:
        """Post bodies one after the other; returns how many jobs were accepted."""
        port, token = (
            self._cluster.ports["submission"],
            self._cluster.stack.secret("admin-token"),
        )
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        accepted = 0
        for body in bodies:
            began = time.perf_counter()
            writer.write(_request(path, token, body))
            status, answer = await _answer(reader)
            self.seconds.append(time.perf_counter() - began)
            if status not in {200, 201}:
                raise SystemExit(f"{status}: {answer[:300]!r}")
            accepted += len(json.loads(answer).get("jobs", [0]))
        writer.close()
        return accepted


def _request(path: str, token: str, body: bytes) -> bytes:
    return (
        f"POST /api/v1{path} HTTP/1.1\r\nHost: bench\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
    return int(head[9:12]), await reader.readexactly(int(length))


async def _rate(
    cluster: Cluster, path: str, bodies: list[list[bytes]]
) -> tuple[float, list[float]]:
    callers = [Caller(cluster) for _ in bodies]
    began = time.perf_counter()
    accepted = await asyncio.gather(
        *(caller.ask(path, own) for caller, own in zip(callers, bodies, strict=True))
    )
    elapsed = time.perf_counter() - began
    return sum(accepted) / elapsed, [s for c in callers for s in c.seconds]


async def _measure() -> None:
    data = data_folder()
    cluster = Cluster(data)
    try:
        await cluster.stack.start()
        cluster.start_service("submission")
        await until("submission is ready", lambda: cluster.is_ready("submission"))
        one = json.dumps(JOB).encode()
        singles, waits = list[float](), list[float]()
        await _rate(cluster, "/jobs", [[one] * 20] * CALLERS)  # warm
        for _ in range(ROUNDS):
            rate, seconds = await _rate(cluster, "/jobs", [[one] * EACH] * CALLERS)
            singles.append(rate)
            waits += seconds
    finally:
        await cluster.stop()
        remove(data)
    _report(singles, waits)


def _report(singles: list[float], waits: list[float]) -> None:
    report(
        "submissions",
        [
            Figure(
                name="submissions_single",
                value=statistics.median(singles),
                unit="/s",
                budget="> 1,000",
                spread=spread(singles),
            ),
            Figure(
                name="submission_p99",
                value=percentile(waits, 0.99) * 1000,
                unit="ms",
            ),
        ],
        method=f"{CALLERS} callers, {EACH} requests each, {ROUNDS} rounds; "
        "submission alone",
    )


def main() -> None:
    """Measure."""
    uvloop.run(_measure())


if __name__ == "__main__":
    main()
