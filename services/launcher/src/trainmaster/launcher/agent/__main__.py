"""Run one node's agent: `python -m trainmaster.launcher.agent --node n1 --root DIR`."""

import argparse
import asyncio
import signal
from pathlib import Path

import uvloop

from trainmaster.core.errors import TrainmasterError
from trainmaster.launcher.agent.app import run_agent
from trainmaster.launcher.agent.settings import AgentSettings
from trainmaster.runtime.telemetry import configure_logs


def parse(arguments: list[str] | None = None) -> tuple[AgentSettings, str]:
    """Read the command line; what it does not say comes from `TM_*`, then defaults."""
    parser = argparse.ArgumentParser(
        prog="trainmaster-agent", argument_default=argparse.SUPPRESS
    )
    parser.add_argument("--pool", help="the pool this node is in")
    parser.add_argument("--node", help="the node's name, unique in its pool")
    parser.add_argument("--root", type=Path, help="its directory, kept over restarts")
    parser.add_argument("--address", help="where the ranks of other nodes reach it")
    parser.add_argument("--fake-accelerators", type=int, help="for trying things out")
    parser.add_argument("--port-first", type=int, help="first port for ranks")
    parser.add_argument("--port-last", type=int, help="last port for ranks")
    parser.add_argument("--network-interface", help="NCCL and Gloo use this one")
    parser.add_argument("--log-level", default="INFO")
    told = vars(parser.parse_args(arguments))
    level = told.pop("log_level")
    return AgentSettings(**told), level


async def _until_told(settings: AgentSettings) -> None:
    agent = asyncio.ensure_future(run_agent(settings))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, agent.cancel)
    await asyncio.wait({agent})
    if not agent.cancelled():
        agent.result()


def main() -> None:
    """Run until told to stop; the node's ranks go on."""
    settings, level = parse()
    configure_logs(level=level)
    try:
        uvloop.run(_until_told(settings))
    except TrainmasterError as error:
        raise SystemExit(f"agent {settings.node}: {error}") from error


if __name__ == "__main__":
    main()
