"""Owns the commands about other systems on the bus; what they do is loaded late."""

from typing import Annotated

import typer

from trainmaster.cli.options import Data, How
from trainmaster.cli.output import Format
from trainmaster.core.rights import Role

sources_app = typer.Typer(invoke_without_command=True)
parked_app = typer.Typer(invoke_without_command=True)

Source = Annotated[str, typer.Argument(help="A name of letters, digits, _ and -.")]
Numbers = Annotated[list[int], typer.Argument(help="Numbers, as `tm parked` shows.")]


@sources_app.callback()
def sources(
    context: typer.Context, data_dir: Data = None, output: How = Format.TABLE
) -> None:
    """List systems that may publish; let them in and out."""
    context.obj = data_dir  # an option may stand before the verb as well
    if context.invoked_subcommand is None:
        list_sources(context, data_dir, output)


@sources_app.command("list")
def list_sources(
    context: typer.Context, data_dir: Data = None, output: How = Format.TABLE
) -> None:
    """List systems that may publish."""
    from trainmaster.cli import sources

    sources.list_sources(data_dir or context.obj, how=output)


@sources_app.command("add")
def add_source(
    context: typer.Context,
    name: Source,
    team: Annotated[str, typer.Option(help="Its team; `*` for all.")] = "default",
    role: Annotated[Role, typer.Option(help="What it is there.")] = Role.SUBMITTER,
    data_dir: Data = None,
) -> None:
    """Let a system publish on tm.in.NAME.>; its credentials are a file of its own."""
    from trainmaster.cli import sources

    sources.add_source(data_dir or context.obj, name, team=team, role=role.value)


@sources_app.command("remove")
def remove_source(context: typer.Context, name: Source, data_dir: Data = None) -> None:
    """Let a system publish no more."""
    from trainmaster.cli import sources

    sources.remove_source(data_dir or context.obj, name)


# ---------------------------------------------------------------------------- parked


@parked_app.callback()
def parked(
    context: typer.Context, data_dir: Data = None, output: How = Format.TABLE
) -> None:
    """List messages nobody could work off; show and replay them."""
    context.obj = data_dir
    if context.invoked_subcommand is None:
        list_parked(context, data_dir, 0, output)


@parked_app.command("list")
def list_parked(
    context: typer.Context,
    data_dir: Data = None,
    after: Annotated[int, typer.Option(help="Only later numbers.")] = 0,
    output: How = Format.TABLE,
) -> None:
    """List messages nobody could work off, oldest first."""
    from trainmaster.cli import parked

    parked.list_parked(data_dir or context.obj, after=after, how=output)


@parked_app.command("show")
def show_parked(
    context: typer.Context,
    number: Annotated[int, typer.Argument(help="A number, as `tm parked` shows.")],
    data_dir: Data = None,
    output: How = Format.TABLE,
) -> None:
    """Show one message: its headers and its body."""
    from trainmaster.cli import parked

    parked.show_parked(data_dir or context.obj, number, how=output)


@parked_app.command("replay")
def replay_parked(
    context: typer.Context, numbers: Numbers, data_dir: Data = None
) -> None:
    """Have messages said again as they were, once their cause is mended."""
    from trainmaster.cli import parked

    parked.replay_parked(data_dir or context.obj, numbers)
