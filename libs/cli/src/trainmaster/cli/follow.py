"""Owns following a job: its events and its output, until it is over or Ctrl-C.

Ctrl-C only detaches: the job goes on, and the last line says how to come back.
"""

import json
import sys
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from trainmaster.cli import words
from trainmaster.cli.exits import Exit, TimedOutError
from trainmaster.cli.meant import job_meant
from trainmaster.cli.merge import Item, Merged
from trainmaster.cli.output import Format, coloured, say
from trainmaster.cli.output import write as put
from trainmaster.cli.silence import OVER as FINAL
from trainmaster.cli.silence import why_nothing
from trainmaster.client.errors import MissingError, NotReadyError
from trainmaster.core.errors import UnreachableError

if TYPE_CHECKING:
    from trainmaster.client.client import Client
    from trainmaster.client.shapes import JobDetails, JobEvent, LogChunk

_APPEAR_SECONDS: Final = 5.0
_APPEAR_PAUSE_SECONDS: Final = 0.05
_LAST_OUTPUT_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What to show while a job goes on, and how long to wait; 0 is for ever."""

    events: bool
    logs: bool
    seconds: float = 0.0


def until_over(client: "Client", job: str, wish: Wish) -> "JobEvent | None":
    """Follow a job that was just submitted; None when the person detached.

    Raises TimedOutError when it takes longer than wished.
    """
    began = time.monotonic()
    until = began + wish.seconds if wish.seconds else None
    streams: dict[str, Callable[[], Iterable[Any]]] = {
        "events": lambda: client.follow_events(job)
    }
    if wish.logs:
        streams["logs"] = lambda: client.follow_logs(job)
    try:
        printer = Printer(named=_has_several_ranks(_once_known(client, job)))
        over = _watch(Merged(streams), wish, printer, until)
    except KeyboardInterrupt:
        detached(job, f"tm {'logs' if wish.logs else 'events'} -f {job}")
        return None
    if over is None:
        raise TimedOutError(job=job, seconds=wish.seconds)
    return over


def _watch(
    merged: Merged, wish: Wish, printer: "Printer", until: float | None
) -> "JobEvent | None":
    over: JobEvent | None = None
    for told in merged.take(until=until):
        if not isinstance(told, Item):
            if told.error is not None and told.stream == "events":
                raise told.error
        elif told.stream == "logs":
            printer.show(told.value)
        else:
            if wish.events:
                show_event(told.value, how=Format.TABLE)
            if told.value["type"] in FINAL:
                over = told.value
                break
    if over is not None and wish.logs:
        _finish(merged, printer)
    return over


def _finish(merged: Merged, printer: "Printer") -> None:
    """Show the output that is still on its way when a job is over."""
    for told in merged.take(until=time.monotonic() + _LAST_OUTPUT_SECONDS):
        if isinstance(told, Item) and told.stream == "logs":
            printer.show(told.value)
        elif not isinstance(told, Item) and told.stream == "logs":
            break
    printer.close()


def _once_known(client: "Client", job: str) -> "JobDetails":
    """Wait until a job that was just submitted is known where jobs are read."""
    until = time.monotonic() + _APPEAR_SECONDS
    while True:
        try:
            return client.job(job)
        except MissingError:
            if time.monotonic() > until:
                raise
            time.sleep(_APPEAR_PAUSE_SECONDS)


def _has_several_ranks(job: "JobDetails") -> bool:
    spec = words.as_fields(job.get("spec"))
    return int(spec.get("nodes", 1)) * int(spec.get("ranks_per_node", 2)) > 1


def follow_events(client: "Client", reference: str, *, how: Format) -> int:
    """Show events until the job is over."""
    job = str(job_meant(client, reference)["id"])
    again = f"tm events -f {job}"
    _hint()
    with _left_behind(job, again):
        try:
            for event in client.follow_events(job):
                show_event(event, how=how)
                if event["type"] in FINAL:
                    break
        except KeyboardInterrupt:
            detached(job, again)
    return Exit.OK


def follow_logs(
    client: "Client", reference: str, *, attempt: int | None, rank: int | None
) -> int:
    """Show output until there is no more."""
    details = job_meant(client, reference)
    job = str(details["id"])
    again = f"tm logs -f {job}"
    printer = Printer(named=rank is None and _has_several_ranks(details))
    over = details.get("state") in FINAL
    if not over and not details.get("attempt"):
        now = client.server_time
        say(why_nothing(details, now, attempt=attempt, rank=rank))
    _hint()
    with _left_behind(job, again):
        try:
            for chunk in client.follow_logs(job, attempt=attempt, rank=rank):
                printer.show(chunk)
        except KeyboardInterrupt:
            printer.close()
            detached(job, again)
        else:
            printer.close()
    if over and not printer.shown:
        say(why_nothing(details, client.server_time, attempt=attempt, rank=rank))
    return Exit.OK


def _hint() -> None:
    """Tell a person how to leave."""
    if sys.stderr.isatty() and sys.stdout.isatty():
        say("Following; Ctrl-C detaches, the job goes on.")


@contextmanager
def _left_behind(job: str, again: str) -> Generator[None]:
    """Say what becomes of a job whose server stays away."""
    try:
        yield
    except (UnreachableError, NotReadyError):
        say(
            f"The server was stopped or is gone; job {job} goes on without it. "
            f"Come back once it runs: {again}"
        )
        raise


def detached(job: str, again: str) -> None:
    """Say that only we left."""
    say(f"\nDetached; job {job} goes on. Come back: {again}. Stop it: tm cancel {job}")


def show_event(event: "JobEvent", *, how: Format) -> None:
    """Show one event in one line."""
    if how in {Format.JSON, Format.YAML}:
        put(json.dumps(event, ensure_ascii=False) + "\n")
        return
    if how is Format.NAME:
        put(f"{event['type']}\n")
        return
    number = event.get("attempt", 0)
    attempt = f"#{number}" if number else ""
    kind = coloured(f"{event['type']:<20}", event["type"])
    seq = f"{event['seq']:>8}  " if how is Format.WIDE else ""
    line = f"{seq}{words.clock(event['time'])}  {kind} {attempt:<3} "
    put(f"{line}{words.line(event, 'summary')}".rstrip(" -") + "\n")


@dataclass(slots=True)
class Printer:
    """Prints output in whole lines; `named` puts the rank before each."""

    named: bool
    shown: bool = False
    _rests: dict[tuple[int, int], str] = field(
        default_factory=dict[tuple[int, int], str]
    )

    def show(self, chunk: "LogChunk") -> None:
        """Print the lines that are whole now, and keep the rest."""
        self.shown = True
        key = chunk["attempt"], chunk["rank"]
        *lines, rest = (self._rests.get(key, "") + chunk["text"]).split("\n")
        self._rests[key] = rest
        for line in lines:
            self._print(chunk["rank"], line)

    def close(self) -> None:
        """Print what never became a whole line."""
        for (_, rank), rest in sorted(self._rests.items()):
            if rest:
                self._print(rank, rest)
        self._rests.clear()

    def _print(self, rank: int, line: str) -> None:
        put(f"[{rank}] {line}\n" if self.named else f"{line}\n")
