"""Owns the fields of what runs: names, command, code, environment, parameters."""

import re
from typing import Final

from trainmaster.core.spec import Launch
from trainmaster.jobfile import kinds
from trainmaster.jobfile.command import COMMAND, SCRIPT
from trainmaster.jobfile.document import Node, Scalar
from trainmaster.jobfile.groups import Names
from trainmaster.jobfile.limits import RESERVED_NAMES, RESERVED_PREFIXES, SEED_MAX
from trainmaster.jobfile.names import NAME, PLAIN_NAMES, TOKEN_KIND, VARIABLE
from trainmaster.jobfile.report import Where
from trainmaster.jobfile.scalars import choice, path
from trainmaster.jobfile.table import Acts, Field, Kind, Table

_LABELS: Final = Names(
    pattern=re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}"),
    rule="1 to 63 letters, digits, `.`, `_`, `/` or `-`",
)
_LAUNCHERS: Final = ("torchrun", "accelerate", "deepspeed", "mpi")


def _refuse_reserved(name: str) -> str:
    if name in RESERVED_NAMES or name.startswith(RESERVED_PREFIXES):
        return "is reserved: the launcher sets it for every rank; remove it"
    return ""


_VARIABLES: Final = Names(
    pattern=VARIABLE, rule="letters, digits and `_`", objection=_refuse_reserved
)
_LAUNCH_WORDS: Final = [each.value for each in Launch if each]


def _launch(node: Node, where: Where) -> str | None:
    if isinstance(node, Scalar) and node.text in _LAUNCHERS:
        where.wrong(
            f"cannot be `{node.text}` here yet; write `once_per_node` and begin the "
            f"command with `{node.text}`"
        )
        return None
    return choice(_LAUNCH_WORDS)(node, where)


_LAUNCH: Final = Kind(
    read=_launch,
    words=", ".join(f"`{each}`" for each in _LAUNCH_WORDS),
    schema={"enum": _LAUNCH_WORDS},
)
_NEVER_A_PATTERN: Final = Kind(
    read=path, words="a pattern of `.gitignore`", schema={"type": "string"}
)
_ARCHIVED: Final = "the code is read where it lies, in `work_directory`"
_SOURCE: Final = kinds.group(
    Field(name="in_place", kind=kinds.PLAIN_PATH, means="Used where it lies."),
    Field(
        name="archive",
        kind=kinds.PLAIN_PATH,
        means="Packed at submission, unpacked on every node.",
        acts=Acts.REFUSED,
        meanwhile=_ARCHIVED,
    ),
    Field(
        name="exclude",
        kind=kinds.list_of(_NEVER_A_PATTERN),
        means="What the archive leaves out, beside what `.gitignore` does.",
    ),
    Field(
        name="git",
        kind=kinds.TEXT,
        means="A repository, cloned on every node.",
        acts=Acts.REFUSED,
        meanwhile=_ARCHIVED,
    ),
    Field(name="revision", kind=kinds.TEXT, means="A commit, tag or branch."),
    Field(
        name="directory",
        kind=kinds.TEXT,
        means="Where the command starts, below the root of the code.",
    ),
    Field(
        name="credentials",
        kind=kinds.SECRET,
        means="What opens the repository.",
    ),
)
_CONTAINER: Final = kinds.group(
    Field(
        name="image",
        kind=kinds.TEXT,
        means="As the registry calls it.",
        default="required",
    ),
    Field(
        name="runtime",
        kind=kinds.choice(("docker", "podman", "apptainer")),
        means="What runs it.",
        default="the pool's own",
    ),
    Field(
        name="credentials",
        kind=kinds.SECRET,
        means="What opens the registry.",
    ),
    Field(
        name="mounts",
        kind=kinds.list_of(kinds.TEXT),
        means="`/host:/inside`, with `:ro` for reading only.",
    ),
)
_OWN_ENVIRONMENT: Final = "name programs with their paths, or use `venv`"

IDENTITY: Final[Table] = (
    Field(
        name="name",
        kind=NAME,
        means="What people call the job; several may have the same name.",
        default="required",
    ),
    Field(name="team", kind=TOKEN_KIND, means="Whose job it is.", default="`default`"),
    Field(name="project", kind=NAME, means="What it belongs to, for cost and search."),
    Field(
        name="labels",
        kind=kinds.pairs(_LABELS),
        means="Your own words about the job, to find it by.",
    ),
)
PROGRAM: Final[Table] = (
    Field(
        name="command",
        kind=COMMAND,
        means="What every rank executes. A list is executed as it is; a line is split "
        "like a shell's, and given to `/bin/sh -c` when only a shell understands it.",
        default="required, or `script`",
    ),
    Field(
        name="script",
        kind=SCRIPT,
        means="Instead of `command`: lines for the interpreter that `#!` names, else "
        "for `/bin/sh -e`.",
    ),
    Field(
        name="launch",
        kind=_LAUNCH,
        means="`per_rank` starts one process for each rank; `once_per_node` starts "
        "the command once, which starts the ranks itself, as torchrun does.",
        default="`once_per_node` for a command that begins with torchrun, accelerate, "
        "deepspeed or mpirun, else `per_rank`",
    ),
    Field(
        name="work_directory",
        kind=kinds.one_of(scalar=kinds.PLAIN_PATH, fields=_SOURCE),
        means="Where the command starts; a path is short for `in_place`. Relative "
        "paths begin at the job file's folder.",
        default="the job file's folder",
    ),
    Field(
        name="setup",
        kind=kinds.one_of(
            scalar=Kind(
                read=lambda node, where: (
                    None if (line := kinds.TEXT.read(node, where)) is None else (line,)
                ),
                words="lines",
                schema={"type": "string"},
            ),
            items=kinds.list_of(kinds.TEXT),
        ),
        means="Shell lines that run once on each node before the command.",
        acts=Acts.REFUSED,
        meanwhile="make them the first lines of `script`, or prepare the nodes",
    ),
    Field(
        name="env",
        kind=kinds.pairs(_VARIABLES),
        means="Variables of every rank, exactly as written. Names that the launcher "
        "sets are refused, and so is what looks like a secret.",
    ),
    Field(
        name="secrets",
        kind=kinds.pairs(_VARIABLES, kinds.SECRET),
        means="Variables whose values the node looks up at start; only their names "
        "are in the job.",
        acts=Acts.REFUSED,
        meanwhile="let the program read it from a file that only the job's user may "
        "read",
    ),
    Field(
        name="parameters",
        kind=kinds.pairs(PLAIN_NAMES),
        means="Settings of the training itself; ranks find each as `PARAM_<NAME>`.",
    ),
    Field(
        name="seed",
        kind=kinds.integer(0, SEED_MAX),
        means="The seed the training is to use; ranks find it as `PARAM_SEED`.",
    ),
)
ENVIRONMENT: Final[Table] = (
    Field(
        name="venv",
        kind=kinds.PLAIN_PATH,
        means="A Python virtual environment, as nodes see it: its `bin` comes first "
        "in `PATH`.",
    ),
    Field(
        name="conda",
        kind=kinds.TEXT,
        means="A conda environment, by name or path.",
        acts=Acts.REFUSED,
        meanwhile=_OWN_ENVIRONMENT,
    ),
    Field(
        name="modules",
        kind=kinds.list_of(kinds.TEXT),
        means="Environment modules to load, in order.",
        acts=Acts.REFUSED,
        meanwhile=_OWN_ENVIRONMENT,
    ),
    Field(
        name="container",
        kind=kinds.one_of(
            scalar=Kind(
                read=lambda node, where: (
                    None
                    if (image := kinds.TEXT.read(node, where)) is None
                    else {"image": image}
                ),
                words="an image",
                schema={"type": "string"},
            ),
            fields=_CONTAINER,
        ),
        means="The image the ranks run in.",
        acts=Acts.ANNOUNCED,
        meanwhile="nodes of this installation start processes directly: the ranks run "
        "in the node's own environment, the image is only recorded",
    ),
)
