"""Owns the commands of teams, pools and tokens; what they do is loaded late."""

from enum import StrEnum
from typing import Annotated

import typer

from trainmaster.cli.options import Data, How, Reason
from trainmaster.cli.output import Format
from trainmaster.core.rights import Role

teams_app = typer.Typer(invoke_without_command=True)
pools_app = typer.Typer(invoke_without_command=True)
tokens_app = typer.Typer(invoke_without_command=True)

Team = Annotated[str, typer.Argument(help="A team's name.")]
Pool = Annotated[str, typer.Argument(help="A pool's name.")]
Port = Annotated[int | None, typer.Option(help="0: the platform chooses.")]


class Backend(StrEnum):
    """What runs a pool's ranks."""

    PROCESS = "process"
    DOCKER = "docker"
    SLURM = "slurm"
    KUBERNETES = "kubernetes"


# ----------------------------------------------------------------------------- teams


@teams_app.callback()
def teams(
    context: typer.Context, data_dir: Data = None, output: How = Format.TABLE
) -> None:
    """List teams and their quotas; create, pause and bound them."""
    context.obj = data_dir  # an option may stand before the verb as well
    if context.invoked_subcommand is None:
        list_teams(context, data_dir, output)


@teams_app.command("list")
def list_teams(
    context: typer.Context, data_dir: Data = None, output: How = Format.TABLE
) -> None:
    """List teams and their quotas."""
    from trainmaster.cli import office

    office.list_teams(data_dir or context.obj, how=output)


@teams_app.command("create")
def create_team(
    context: typer.Context,
    team: Team,
    parent: Annotated[str, typer.Option(help="The team above it.")] = "",
    data_dir: Data = None,
    output: How = Format.TABLE,
) -> None:
    """Create a team; asking again changes nothing."""
    from trainmaster.cli import office

    office.create_team(data_dir or context.obj, team, parent=parent, how=output)


@teams_app.command("pause")
def pause_team(
    context: typer.Context,
    team: Team,
    for_: Annotated[
        str, typer.Option("--for", help="How long, as in 2h; without, until resumed.")
    ] = "",
    data_dir: Data = None,
    output: How = Format.TABLE,
) -> None:
    """Place none of a team's jobs; those that run go on."""
    from trainmaster.cli import office

    office.pause_team(data_dir or context.obj, team, duration=for_, how=output)


@teams_app.command("resume")
def resume_team(
    context: typer.Context,
    team: Team,
    data_dir: Data = None,
    output: How = Format.TABLE,
) -> None:
    """Place a team's jobs again."""
    from trainmaster.cli import office

    office.resume_team(data_dir or context.obj, team, how=output)


@teams_app.command("quota", context_settings={"ignore_unknown_options": True})
def set_quota(  # noqa: PLR0913 - one parameter for each option
    context: typer.Context,
    team: Team,
    accelerators: Annotated[
        int, typer.Argument(help="How many it may hold; -1 is no limit.")
    ],
    *,
    pool: Annotated[str, typer.Option(help="Of which pool.")] = "local",
    borrowing: Annotated[
        int, typer.Option(min=0, help="How many more it may borrow.")
    ] = 0,
    data_dir: Data = None,
    output: How = Format.TABLE,
) -> None:
    """Bound how many accelerators of a pool a team may hold."""
    from trainmaster.cli import office

    wanted = office.Quota(
        team=team, pool=pool, accelerators=accelerators, borrowing=borrowing
    )
    office.set_quota(data_dir or context.obj, wanted, how=output)


# ----------------------------------------------------------------------------- pools


@pools_app.callback()
def pools(
    context: typer.Context, data_dir: Data = None, output: How = Format.TABLE
) -> None:
    """List pools; create and change them."""
    context.obj = data_dir
    if context.invoked_subcommand is None:
        list_pools(context, data_dir, output)


@pools_app.command("list")
def list_pools(
    context: typer.Context, data_dir: Data = None, output: How = Format.TABLE
) -> None:
    """List pools."""
    from trainmaster.cli import office

    office.list_pools(data_dir or context.obj, how=output)


@pools_app.command("create")
def create_pool(  # noqa: PLR0913 - one parameter for each option
    context: typer.Context,
    pool: Pool,
    *,
    backend: Annotated[Backend, typer.Option(help="What runs its ranks.")] = (
        Backend.PROCESS
    ),
    port_first: Port = None,
    port_last: Port = None,
    data_dir: Data = None,
    output: How = Format.TABLE,
) -> None:
    """Create a pool; asking again changes nothing."""
    from trainmaster.cli import office

    settings = office.settings(
        backend=backend.value, port_first=port_first, port_last=port_last
    )
    office.create_pool(data_dir or context.obj, pool, settings, how=output)


@pools_app.command("change")
def change_pool(  # noqa: PLR0913 - one parameter for each option
    context: typer.Context,
    pool: Pool,
    *,
    backend: Annotated[
        Backend | None, typer.Option(help="What runs its ranks.")
    ] = None,
    port_first: Port = None,
    port_last: Port = None,
    data_dir: Data = None,
    output: How = Format.TABLE,
) -> None:
    """Change a pool; what is not told stays."""
    from trainmaster.cli import office

    settings = office.settings(
        backend=backend and backend.value, port_first=port_first, port_last=port_last
    )
    office.change_pool(data_dir or context.obj, pool, settings, how=output)


# ---------------------------------------------------------------------------- tokens


@tokens_app.callback()
def tokens(
    context: typer.Context, data_dir: Data = None, output: How = Format.TABLE
) -> None:
    """List tokens; give them out and revoke them."""
    context.obj = data_dir
    if context.invoked_subcommand is None:
        list_tokens(context, data_dir, output)


@tokens_app.command("list")
def list_tokens(
    context: typer.Context, data_dir: Data = None, output: How = Format.TABLE
) -> None:
    """List tokens, also those that open nothing any more; never their secrets."""
    from trainmaster.cli import office

    office.list_tokens(data_dir or context.obj, how=output)


@tokens_app.command("create")
def create_token(  # noqa: PLR0913 - one parameter for each option
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What it is called in lists and events.")],
    *,
    team: Annotated[
        str, typer.Option(help="On which team it holds; '*' is every team.")
    ] = "default",
    role: Annotated[
        Role, typer.Option(help="What its holder may do; docs/roles.md.")
    ] = Role.VIEWER,
    expires: Annotated[
        str, typer.Option(help="After how long it opens nothing, as in 12h or 90d.")
    ] = "30d",
    data_dir: Data = None,
    output: How = Format.TABLE,
) -> None:
    """Give out a token; it is shown once, on standard output."""
    from trainmaster.cli import office

    wanted = office.NewToken(name=name, team=team, role=role.value, expires=expires)
    office.create_token(data_dir or context.obj, wanted, how=output)


@tokens_app.command("revoke")
def revoke_token(
    context: typer.Context,
    tokens: Annotated[list[str], typer.Argument(help="Names, or beginnings of ids.")],
    data_dir: Data = None,
    reason: Reason = "",
    output: How = Format.TABLE,
) -> None:
    """Let nobody in with a token any more, from now on; asking again is harmless."""
    from trainmaster.cli import office

    office.revoke_tokens(data_dir or context.obj, tokens, reason=reason, how=output)
