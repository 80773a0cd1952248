"""The whole of Trainmaster on one machine: servers, services, nodes, one process.

`python -m trainmaster.runtime.stack up|down|remove`. Everything is below one data
directory. A second `up` finds the first. The servers and the ranks outlive a killed
`up`; the next `up` adopts them. `down` stops services and servers; ranks of running
jobs go on under their shims and are found again.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trainmaster.core import subjects
from trainmaster.core.errors import TrainmasterError, UnreachableError
from trainmaster.runtime.clock import pause
from trainmaster.runtime.embedded.files import Lock, private_directory, write_private
from trainmaster.runtime.embedded.ports import settle_port
from trainmaster.runtime.local import PROVISIONER, Options, Stack
from trainmaster.runtime.log import Log
from trainmaster.runtime.stack_words import found, left_alone
from trainmaster.runtime.telemetry import configure_logs

if TYPE_CHECKING:
    from trainmaster.runtime.service import Build, Running

__all__ = ["Options", "Stack"]
_DOWN_SECONDS: Final = 20.0
_NODES_SECONDS: Final = 10.0
_STOPPED: Final = "Stopped. Ranks of running jobs go on; `tm up` finds them again."
Agent = Callable[[dict[str, Any]], Awaitable[None]]


def default_data() -> Path:
    """Name the data directory: $TM_DATA_DIR, else ~/.trainmaster."""
    told = os.environ.get("TM_DATA_DIR")
    return Path(told) if told else Path.home() / ".trainmaster"


async def up(options: Options) -> int:
    """Run the stack until SIGTERM or SIGINT."""
    began = time.monotonic()
    private_directory(options.data)
    lock = Lock.attempt(options.data / "lock")
    if lock is None:
        seen = await found(options, _pid(options))
        print(seen.said)
        return seen.code
    with lock:
        (options.data / "pid").write_text(f"{os.getpid()}\n")
        stack = Stack(options)
        port = settle_port(options.data / "http.port").number

        async def announce(_running: Sequence["Running"], at: int) -> None:
            warning = await _nodes_are_registered(stack)
            _write_credentials(stack, at)
            print(_welcome(stack, at, time.monotonic() - began), flush=True)
            if warning:
                print(warning, flush=True)

        try:
            # Importing the services takes longer than starting the servers meanwhile.
            programs, _ = await asyncio.gather(
                asyncio.to_thread(_load_programs), stack.start()
            )
            watches = stack.watches()
            await programs.serve(
                programs.builds,
                {name: stack.settings(name, port=port) for name in programs.builds},
                ready=announce,
                health=watches,
                beside=[
                    *(watch.run for watch in watches),
                    stack.follow_sources,
                    *(
                        partial(programs.run_agent, stack.agent_settings(node))
                        for node in options.node_keys
                    ),
                ],
            )
        finally:
            options.credentials.unlink(missing_ok=True)
            await stack.stop()
    print(_STOPPED)
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Programs:
    """What runs in this process: imported late, found by entry points."""

    serve: Callable[..., Awaitable[None]]
    builds: dict[str, "Build"]
    run_agent: Agent


def _load_programs() -> _Programs:
    from trainmaster.runtime.service import serve  # noqa: PLC0415 half of the start

    return _Programs(
        serve=serve,
        builds=_entry_points("trainmaster.services"),
        run_agent=_entry_points("trainmaster.agents")["process"],
    )


async def down(options: Options, *, remove: bool = False) -> int:
    """Stop the stack of a data directory, however it was left; `remove` deletes it."""
    lock = Lock.attempt(options.data / "lock") if options.data.is_dir() else None
    if not options.data.is_dir():
        print(f"Nothing runs below {options.data}.")
        return 0
    if lock is None:
        os.kill(_pid(options), signal.SIGTERM)
        lock = await _wait_for_lock(options)
        ran = True
    else:
        ran = False
    with lock:
        stack = Stack(options)
        ran = await stack.stop() or ran
        if remove:
            await stack.postgres.remove()  # some of it may lie outside of the folder
            shutil.rmtree(options.data)
            print(f"{'Stopped and removed' if ran else 'Removed'} {options.data}.")
            return 0
    print(_STOPPED if ran else f"Nothing runs below {options.data}.")
    return 0


async def _wait_for_lock(options: Options) -> Lock:
    end = time.monotonic() + _DOWN_SECONDS
    while time.monotonic() < end:
        lock = Lock.attempt(options.data / "lock")
        if lock is not None:
            return lock
        await pause(0.02)
    raise UnreachableError(
        what="the stack",
        address=f"process {_pid(options)}",
        hint=f"it did not stop within {_DOWN_SECONDS:g} s; end it with `kill -9`",
    )


async def _nodes_are_registered(stack: Stack) -> str:
    """Wait until every node of this machine is known, so that a job can start.

    Returns what to warn of, "" for nothing.
    """
    bus = await stack.provisioner()
    try:
        log = Log(bus, source=PROVISIONER, epoch=1)
        end = time.monotonic() + _NODES_SECONDS
        for key in stack.options.node_keys:
            subject = f"tm.node.{key.pool}.{key.node}.registered"
            while not await log.last(subjects.NODES, [subject]):
                if time.monotonic() > end:
                    raise UnreachableError(
                        what=f"the agent of {key.node}",
                        address=stack.nats.url,
                        hint="see what it logged above",
                    )
                await pause(0.02)
        return await left_alone(log, stack.options)
    finally:
        await bus.close()


def _write_credentials(stack: Stack, port: int) -> None:
    content = {
        "url": f"http://127.0.0.1:{port}",
        "token": stack.secret("admin-token"),
        "pid": os.getpid(),
        "nats_url": stack.nats.url,
    }
    write_private(stack.options.credentials, json.dumps(content, indent=1) + "\n")


def _pid(options: Options) -> int:
    return int((options.data / "pid").read_text())


def _welcome(stack: Stack, port: int, seconds: float) -> str:
    options = stack.options
    each = options.fake_accelerators
    return (
        f"Trainmaster is ready: http://127.0.0.1:{port} ({seconds:.2f} s)\n"
        f"  nodes  {', '.join(k.node for k in options.node_keys)}"
        f" on {socket.gethostname()}, {each} accelerators each"
        f"{' (fake)' if each else ''}\n"
        f"  data   {options.data}\n"
        "  next   tm submit FILE, tm list, tm logs -f JOB; Ctrl-C or `tm down` stops"
    )


def _entry_points(group: str) -> dict[str, Any]:
    found = {point.name: point.load() for point in entry_points(group=group)}
    if not found:
        raise UnreachableError(
            what=f"entry points `{group}`",
            address=sys.prefix,
            hint="install the services first: `make setup`",
        )
    return found


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="tm", description=__doc__)
    parser.add_argument("verb", choices=("up", "down", "remove"))
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--fake-accelerators", type=int, default=0)
    parser.add_argument("--log-level", default="WARNING")
    told = parser.parse_args()
    configure_logs(level=told.log_level)
    options = Options(
        data=(told.data_dir or default_data()).resolve(),
        nodes=told.nodes,
        fake_accelerators=told.fake_accelerators,
    )
    import uvloop  # noqa: PLC0415 only when something is run

    try:
        if told.verb == "up":
            code = uvloop.run(up(options))
        else:
            code = uvloop.run(down(options, remove=told.verb == "remove"))
    except TrainmasterError as error:
        raise SystemExit(f"tm {told.verb}: {error}") from error
    except KeyboardInterrupt:
        raise SystemExit(130) from None  # interrupted before it was ready
    raise SystemExit(code)


if __name__ == "__main__":
    main()
