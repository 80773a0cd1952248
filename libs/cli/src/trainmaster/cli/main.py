"""Owns the `tm` command: its verbs and options; what a verb does is loaded late."""

import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from trainmaster.cli.bus_app import parked_app, sources_app
from trainmaster.cli.office_app import pools_app, teams_app, tokens_app
from trainmaster.cli.options import Data, How, Reason
from trainmaster.cli.output import Format
from trainmaster.core.errors import SpecRejectedError, TrainmasterError

app = typer.Typer(
    help="Trainmaster launches and manages model-training jobs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

nodes_app = typer.Typer(invoke_without_command=True)

Job = Annotated[str, typer.Argument(help="A job's id, its beginning, or its name.")]
Jobs = Annotated[list[str], typer.Argument(help="Ids, their beginnings, or names.")]
Nodes = Annotated[list[str], typer.Argument(help="Names, as `tm nodes` shows them.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on; Ctrl-C detaches.")]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and end with the code that says what happened."""
    from trainmaster.cli.exits import code_of

    try:
        app(args=arguments)
    except SpecRejectedError as error:
        sys.stderr.write(f"{error}\n")  # places first, as editors want them
        raise SystemExit(code_of(error)) from error
    except TrainmasterError as error:
        sys.stderr.write(f"tm: {error}\n")
        raise SystemExit(code_of(error)) from error
    raise SystemExit(0)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        from importlib.metadata import version

        typer.echo(f"trainmaster {version('trainmaster-cli')}")
        raise typer.Exit


@app.callback()
def every_command(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version."
        ),
    ] = False,
) -> None:
    """Trainmaster launches and manages model-training jobs."""


@app.command()
def up(
    *,
    data_dir: Data = None,
    nodes: Annotated[int, typer.Option(min=1, help="Agents on this machine.")] = 1,
    fake_accelerators: Annotated[
        int, typer.Option(min=0, help="Pretended accelerators of each node.")
    ] = 0,
    log_level: Annotated[str, typer.Option(help="What services log.")] = "WARNING",
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Come back once it is ready.")
    ] = False,
) -> None:
    """Start servers, services and nodes on this machine."""
    from trainmaster.cli import stack

    wanted = stack.Wanted(
        data=data_dir,
        nodes=nodes,
        fake_accelerators=fake_accelerators,
        log_level=log_level,
    )
    if detach:
        raise typer.Exit(stack.start_detached(wanted))
    stack.replace_by(wanted.words())


@app.command()
def down(data_dir: Data = None) -> None:
    """Stop what `tm up` started; running jobs go on and are found again."""
    from trainmaster.cli import stack

    stack.replace_by(["down", *(["--data-dir", str(data_dir)] if data_dir else [])])


@app.command()
def demo() -> None:
    """Train a small model on two nodes, kill a rank, watch it resume."""
    from trainmaster.cli.demo import run

    raise typer.Exit(run())


@app.command()
def submit(  # noqa: PLR0913 - one parameter for each option
    file: Annotated[str, typer.Argument(help="A job file, or - for standard input.")],
    *,
    data_dir: Data = None,
    name: Annotated[str, typer.Option(help="Instead of the file's `name`.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Until it is over.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="As --wait, with events and output.")
    ] = False,
    timeout: Annotated[
        float, typer.Option(min=0, help="Seconds to wait at most; the job goes on.")
    ] = 0.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be submitted.")
    ] = False,
    parsable: Annotated[
        bool, typer.Option("--parsable", help="Print the job's id and no more.")
    ] = False,
    key: Annotated[
        str, typer.Option(help="Idempotency key: the same key, the same job.")
    ] = "",
    output: How = Format.TABLE,
) -> None:
    """Submit a job file."""
    from trainmaster.cli import changes

    wanted = changes.Submission(
        file=file,
        name=name,
        key=key,
        dry_run=dry_run,
        wait=wait,
        follow=follow,
        timeout_seconds=timeout,
        parsable=parsable,
        how=output,
    )
    raise typer.Exit(changes.submit(data_dir, wanted))


@app.command("list")
def list_(
    data_dir: Data = None,
    team: Annotated[str, typer.Option(help="Only of this team.")] = "",
    state: Annotated[str, typer.Option(help="Only in this state.")] = "",
    limit: Annotated[int, typer.Option(min=0, help="At most so many.")] = 0,
    output: How = Format.TABLE,
) -> None:
    """List jobs."""
    from trainmaster.cli import reads

    reads.list_jobs(data_dir, team=team, state=state, limit=limit, how=output)


@app.command()
def status(
    job: Annotated[
        str, typer.Argument(help="A job; without one, the server itself.")
    ] = "",
    data_dir: Data = None,
    output: How = Format.TABLE,
) -> None:
    """Show all about a job, or how the server is."""
    from trainmaster.cli import reads

    if job:
        reads.show_job(data_dir, job, how=output)
    else:
        raise typer.Exit(reads.show_server(data_dir, how=output))


@app.command()
def events(
    job: Job,
    *,
    data_dir: Data = None,
    follow: Follow = False,
    output: How = Format.TABLE,
) -> None:
    """Show what happened to a job."""
    from trainmaster.cli import reads

    raise typer.Exit(reads.show_events(data_dir, job, follow=follow, how=output))


@app.command()
def logs(
    job: Job,
    *,
    data_dir: Data = None,
    follow: Follow = False,
    attempt: Annotated[int | None, typer.Option(min=1, help="Only this one.")] = None,
    rank: Annotated[int | None, typer.Option(min=0, help="Only this one.")] = None,
) -> None:
    """Show a job's output."""
    from trainmaster.cli import reads

    code = reads.show_logs(data_dir, job, attempt=attempt, rank=rank, follow=follow)
    raise typer.Exit(code)


@app.command()
def cancel(
    jobs: Jobs, data_dir: Data = None, reason: Reason = "", output: How = Format.TABLE
) -> None:
    """End jobs; asking again is harmless."""
    from trainmaster.cli import changes

    code = changes.change(data_dir, "cancel", jobs, reason=reason, how=output)
    raise typer.Exit(code)


@app.command()
def hold(
    jobs: Jobs, data_dir: Data = None, reason: Reason = "", output: How = Format.TABLE
) -> None:
    """Keep waiting jobs from being placed."""
    from trainmaster.cli import changes

    code = changes.change(data_dir, "hold", jobs, reason=reason, how=output)
    raise typer.Exit(code)


@app.command()
def release(jobs: Jobs, data_dir: Data = None, output: How = Format.TABLE) -> None:
    """Let held jobs be placed again."""
    from trainmaster.cli import changes

    code = changes.change(data_dir, "release", jobs, reason="", how=output)
    raise typer.Exit(code)


app.add_typer(nodes_app, name="nodes")
app.add_typer(teams_app, name="teams")
app.add_typer(pools_app, name="pools")
app.add_typer(tokens_app, name="tokens")
app.add_typer(sources_app, name="sources")
app.add_typer(parked_app, name="parked")


@nodes_app.callback()
def nodes(
    context: typer.Context, data_dir: Data = None, output: How = Format.TABLE
) -> None:
    """List nodes and who holds them; take them out of service and back."""
    context.obj = data_dir  # an option may stand before the verb as well
    if context.invoked_subcommand is None:
        from trainmaster.cli import reads

        reads.list_nodes(data_dir, how=output)


@nodes_app.command()
def drain(
    context: typer.Context,
    nodes: Nodes,
    data_dir: Data = None,
    reason: Reason = "",
    output: How = Format.TABLE,
) -> None:
    """Give nodes no new work; what runs there may end."""
    from trainmaster.cli import changes

    data = data_dir or context.obj
    changes.change_nodes(data, "drain", nodes, reason=reason, how=output)


@nodes_app.command()
def undrain(
    context: typer.Context,
    nodes: Nodes,
    data_dir: Data = None,
    output: How = Format.TABLE,
) -> None:
    """Use nodes again."""
    from trainmaster.cli import changes

    data = data_dir or context.obj
    changes.change_nodes(data, "undrain", nodes, reason="", how=output)


if __name__ == "__main__":
    main()
