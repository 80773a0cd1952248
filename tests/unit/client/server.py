"""A server on loopback that answers as it was told, and remembers what it was asked."""

import json
import threading
from collections import defaultdict, deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from typing_extensions import override


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question as it came in."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What to say; `drop` cuts it off behind that, `hold` waits before the end."""

    status: int = 200
    body: Any = None
    kind: str = "application/json"
    drop: bool = False
    hold: threading.Event | None = None

    def encoded(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        return text.encode()


def a_problem(status: int, detail: str, **members: Any) -> Answer:
    body = {"type": "about:blank", "status": status, "detail": detail, **members}
    return Answer(status=status, body=body, kind="application/problem+json")


def a_stream(
    events: Sequence[Any],
    *,
    ids: bool = False,
    drop: bool = False,
    hold: threading.Event | None = None,
    ends: bool = True,
) -> Answer:
    """Stream events, and say at the end that it is one unless it is cut off."""
    lines = [": hello\n\n"]
    for number, event in enumerate(events, 1):
        lines += [f"id: {number}\n"] if ids else []
        lines.append(f"data: {json.dumps(event)}\n\n")
    if ends and not drop and hold is None:
        lines.append("event: end\ndata: {}\n\n")
    return Answer(body="".join(lines), kind="text/event-stream", drop=drop, hold=hold)


@dataclass(slots=True)
class Server:
    """The last answer to a question is given for ever."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list[Asked])
    _answers: dict[tuple[str, str], deque[Answer]] = field(
        default_factory=lambda: defaultdict(deque)
    )

    def answers(self, question: str, *answers: Answer) -> None:
        """Answer `GET /path` in this order."""
        method, _, path = question.partition(" ")
        self._answers[method, path].extend(answers)

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        queue = self._answers.get((asked.method, asked.path))
        if not queue:
            return a_problem(404, f"no {asked.method} {asked.path}")
        return queue.popleft() if len(queue) > 1 else queue[0]


class _Handler(BaseHTTPRequestHandler):
    server_answers: Server = Server()

    def do_GET(self) -> None:
        self._talk()

    def do_POST(self) -> None:
        self._talk()

    def _talk(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("content-length", 0))
        answer = self.server_answers.answer(
            Asked(
                method=self.command,
                path=parts.path,
                query={k: v[-1] for k, v in parse_qs(parts.query).items()},
                headers={k.lower(): v for k, v in self.headers.items()},
                body=self.rfile.read(length),
            )
        )
        body = answer.encoded()
        self.send_response(answer.status)
        self.send_header("content-type", answer.kind)
        if answer.drop:
            self.send_header("content-length", str(len(body) + 1))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
        if answer.hold is not None:
            answer.hold.wait(timeout=30)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        del format, args


@contextmanager
def serving() -> Generator[Server]:
    known = Server()
    handler = type("Handler", (_Handler,), {"server_answers": known})
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    known.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield known
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
