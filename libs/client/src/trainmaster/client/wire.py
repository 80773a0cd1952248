"""Owns the wire to one server: a question, its answer, a stream that goes on.

Everything that can go wrong on the way becomes one of our errors here.
"""

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Final, cast
from urllib.parse import urlsplit

import httpx

from trainmaster.client.credentials import Credentials
from trainmaster.client.errors import NotReadyError, error_of
from trainmaster.client.sse import ServerSentEvent, parse
from trainmaster.core.errors import TransientError, UnreachableError

AGAIN_SECONDS: Final = (0.2, 0.5, 1.0)
"""How long to wait before each new try of a question."""
_AGAIN_WITHIN_SECONDS: Final = 4.0
AWAY_SECONDS: Final = 30.0
"""How long a server that was heard may be away before a follower gives up."""
SUBMIT_SECONDS: Final = 20.0
"""So long a submission is tried at most, all tries together."""
_BACK_SECONDS: Final = (0.2, 0.5, 1.0, 2.0)
_END: Final = "end"
"""The event with which a server says that nothing more will come."""
_SECONDS: Final = 15.0
_SILENCE_SECONDS: Final = 60.0
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


def _nobody(_said: str) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How patient to be, and who is told that the server is away or back."""

    away_seconds: float = AWAY_SECONDS
    submit_seconds: float = SUBMIT_SECONDS
    told: Callable[[str], None] = _nobody


class Wire:
    """HTTP to one server with one token; safe to share between threads."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        transport: httpx.BaseTransport | None,
        manner: Manner,
    ) -> None:
        parts = urlsplit(credentials.url)
        self._manner = manner
        self._away = _Away(credentials.url, manner)
        self.url = credentials.url
        self.server_time: datetime | None = None
        self._closed = False
        self._http = httpx.Client(
            base_url=credentials.url,
            headers=_authorization(credentials.token),
            timeout=_SECONDS,
            transport=transport,
            # A proxy cannot reach our loopback, and plain HTTP needs no certificates.
            trust_env=parts.hostname not in _LOOPBACK,
            verify=parts.scheme == "https",
        )

    def close(self) -> None:
        """Hang up; a thread that still asks gets UnreachableError."""
        self._closed = True
        self._http.close()

    def ask(self, method: str, path: str, **how: Any) -> httpx.Response:
        """Ask and return the answer. Raises what `errors` lists.

        A question that changes nothing is asked again while the server is not ready.
        """
        began = time.monotonic()
        for seconds in AGAIN_SECONDS if method == "GET" else ():
            try:
                return self._asked(method, path, **how)
            except NotReadyError:
                if time.monotonic() - began > _AGAIN_WITHIN_SECONDS:
                    raise
                time.sleep(seconds)
        return self._asked(method, path, **how)

    def _asked(self, method: str, path: str, **how: Any) -> httpx.Response:
        answer = self.send(method, path, **how)
        self._check(answer)
        return answer

    def send(self, method: str, path: str, **how: Any) -> httpx.Response:
        """Ask and return the answer whatever it is. Raises UnreachableError."""
        with self._speaking():
            answer = self._http.request(method, path, **how)
        told = answer.headers.get("date")
        if told:
            self.server_time = parsedate_to_datetime(told)
        return answer

    def follow(self, path: str, params: dict[str, str]) -> Iterator[ServerSentEvent]:
        """Read a stream until the server says it is over, across lost connections.

        After one it begins anew: the caller moves `params` on with what was read, or
        passes over what comes again.
        """
        failures, lost_at = 0, time.monotonic()
        patience = sum(AGAIN_SECONDS)  # until it is heard for the first time
        while True:
            try:
                for told in self._stream(path, params):
                    failures, patience = 0, self._manner.away_seconds
                    self._away.heard()
                    if told.event == _END:
                        return
                    yield told
                error: TransientError = self._unreachable()  # cut off without an end
            except (UnreachableError, NotReadyError) as caught:
                error = caught
            if not failures:
                lost_at = time.monotonic()
            if self._closed or time.monotonic() - lost_at >= patience:
                raise error
            if patience > sum(AGAIN_SECONDS):
                self._away.lost(error)
            time.sleep(_BACK_SECONDS[min(failures, len(_BACK_SECONDS) - 1)])
            failures += 1

    def _stream(
        self, path: str, params: Mapping[str, str]
    ) -> Iterator[ServerSentEvent]:
        headers = {"Accept": "text/event-stream"}
        timeout = httpx.Timeout(_SECONDS, read=_SILENCE_SECONDS)
        with (
            self._speaking(),
            self._http.stream(
                "GET", path, params=params, headers=headers, timeout=timeout
            ) as answer,
        ):
            if answer.is_error:
                answer.read()
            self._check(answer)
            yield from parse(answer.iter_lines())

    @contextmanager
    def _speaking(self) -> Generator[None]:
        """Tell every way in which a server is not heard alike."""
        try:
            yield
        except httpx.ConnectError as error:
            raise self._unreachable() from error
        except httpx.TransportError as error:
            raise self._unreachable(_SILENT) from error
        except RuntimeError as error:
            if not self._closed:
                raise
            raise self._unreachable() from error

    def _check(self, answer: httpx.Response) -> None:
        if answer.is_success:
            return
        error = error_of(answer.status_code, self._problem(answer))
        if isinstance(error, NotReadyError) and answer.status_code in _AWAY_STATUS:
            raise NotReadyError(
                f"trainmaster at {self.url} cannot answer now: {error}; "
                "`tm status` says what it lacks"
            )
        raise error

    def _problem(self, answer: httpx.Response) -> Mapping[str, Any]:
        try:
            told = answer.json()
        except ValueError:
            told = None
        if isinstance(told, dict) and told.keys() & {"detail", "title"}:
            return cast("dict[str, Any]", told)
        phrase = HTTPStatus(answer.status_code).phrase
        detail = (
            f"{self.url} answered {answer.status_code} {phrase}; is it trainmaster?"
        )
        return {"detail": detail}

    def _unreachable(self, hint: str = "start it with `tm up`") -> UnreachableError:
        return UnreachableError(what="trainmaster", address=self.url, hint=hint)


_AWAY_STATUS: Final = frozenset({502, 503, 504})
_SILENT: Final = (
    "something is there, but no answer came in time; `tm up` says how it is"
)


def _authorization(token: str) -> dict[str, str]:
    """Show the token; without one, have the server say that it wants one."""
    return {"Authorization": f"Bearer {token}"} if token else {}


class _Away:
    """Says once that a server is away, and once that it is back."""

    def __init__(self, url: str, manner: Manner) -> None:
        self._url = url
        self._manner = manner
        self._turn = threading.Lock()
        self._said = False

    def lost(self, error: Exception) -> None:
        with self._turn:
            if not self._said:
                self._said = True
                self._manner.told(
                    f"{error}. Trying again for {self._manner.away_seconds:g} s …"
                )

    def heard(self) -> None:
        with self._turn:
            if self._said:
                self._said = False
                self._manner.told(f"trainmaster at {self._url} is back.")
