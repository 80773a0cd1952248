"""Owns the fields of what a job reads and writes: data, checkpoints, output."""

import re
from typing import Final

from trainmaster.jobfile import kinds, scalars
from trainmaster.jobfile.document import Node, Scalar
from trainmaster.jobfile.limits import INT32_MAX
from trainmaster.jobfile.names import PLAIN_NAMES
from trainmaster.jobfile.report import Where
from trainmaster.jobfile.table import Acts, Field, Kind, Table

_NOT_VERIFIED: Final = "it is recorded with the job, nobody compares it yet"
_CHECKSUM: Final = re.compile(r"(blake3|sha256):[0-9a-f]{64}")
_SOURCE: Final = kinds.group(
    Field(
        name="from",
        kind=kinds.PLAIN_PATH,
        means="Where it is.",
        default="required",
    ),
    Field(
        name="checksum",
        kind=kinds.word(_CHECKSUM, "`blake3:` or `sha256:` and 64 hex digits"),
        means="What its content must be.",
        acts=Acts.ANNOUNCED,
        meanwhile=_NOT_VERIFIED,
    ),
    Field(
        name="manifest",
        kind=kinds.PLAIN_PATH,
        means="A list of its files with their checksums.",
        acts=Acts.ANNOUNCED,
        meanwhile=_NOT_VERIFIED,
    ),
    Field(
        name="read_only",
        kind=kinds.FLAG,
        means="The job does not write there; one that does says `false`.",
        default="true",
    ),
    Field(
        name="split",
        kind=kinds.TEXT,
        means="Which part of a data set it is, as `train` or `validation`.",
    ),
)


def _short(node: Node, where: Where) -> dict[str, str] | None:
    found = scalars.plain_path(node, where)
    return None if found is None else {"from": found}


_SHORT: Final = Kind(
    read=_short, words=kinds.PLAIN_PATH.words, schema=kinds.PLAIN_PATH.schema
)
_SOURCES: Final = kinds.pairs(PLAIN_NAMES, kinds.one_of(scalar=_SHORT, fields=_SOURCE))


def _resume(node: Node, where: Where) -> str | None:
    if isinstance(node, Scalar) and node.text == "never":
        where.wrong(
            "cannot be `never` here yet: an attempt goes on from the newest verified "
            "checkpoint; without `checkpoint.directory` it begins anew"
        )
        return None
    return scalars.choice(("last", "never"))(node, where)


_STEPS: Final = kinds.integer(1, INT32_MAX)
_KEEP: Final = kinds.group(
    Field(name="last", kind=_STEPS, means="The newest so many."),
    Field(name="every_steps", kind=_STEPS, means="Those of every so many steps."),
    Field(name="best", kind=_STEPS, means="The best so many, by `metric`."),
    Field(name="metric", kind=kinds.TEXT, means="What says which is best."),
    Field(
        name="mode",
        kind=kinds.choice(("min", "max")),
        means="Whether the least or the most is best.",
        default="`min`",
    ),
    Field(
        name="younger_than",
        kind=kinds.duration(least=0.001),
        means="Those that are younger.",
    ),
)
_CHECKPOINT: Final = kinds.group(
    Field(
        name="directory",
        kind=kinds.PATH,
        means="Below it the training saves. Without `{job}` in it several jobs share "
        "it, and that is then your wish.",
    ),
    Field(
        name="resume_from",
        kind=kinds.PLAIN_PATH,
        means="A checkpoint that the first attempt goes on from, of another job "
        "perhaps.",
    ),
    Field(
        name="resume",
        kind=Kind(read=_resume, words="`last`", schema={"enum": ["last"]}),
        means="What the next attempt goes on from: the newest verified checkpoint.",
        default="`last`",
    ),
    Field(
        name="interval_steps",
        kind=_STEPS,
        means="How many steps apart the training is to save; ranks find it as "
        "`PARAM_CHECKPOINT_INTERVAL_STEPS`.",
    ),
    Field(
        name="keep",
        kind=_KEEP,
        means="Which checkpoints stay; what any rule keeps is kept.",
        default="all",
        acts=Acts.ANNOUNCED,
        meanwhile="no checkpoint is deleted",
    ),
    Field(
        name="verify",
        kind=kinds.choice(("structure", "sampled", "full")),
        means="How thoroughly a checkpoint is verified.",
        default="`full`",
        acts=Acts.ANNOUNCED,
        meanwhile="every checkpoint is verified in full",
    ),
)

FILES: Final[Table] = (
    Field(
        name="data",
        kind=_SOURCES,
        means="What the training reads, by names of yours; ranks find each path as "
        "`DATA_<NAME>`. A path is short for `from`.",
    ),
    Field(
        name="weights",
        kind=_SOURCES,
        means="What it begins with (base weights, a tokenizer), in the same form; "
        "`WEIGHTS_<NAME>`.",
    ),
    Field(
        name="data_directory",
        kind=kinds.PLAIN_PATH,
        means="What ranks find as `TM_DATA_DIR`.",
        default="the first of `data`",
    ),
    Field(
        name="output_directory",
        kind=kinds.PATH,
        means="Where logs and results go; ranks find it as `TM_OUTPUT_DIR`.",
        default="`tm-runs/{job}` in the work directory: every job has its own",
    ),
    Field(
        name="checkpoint",
        kind=_CHECKPOINT,
        means="Where and how the training saves.",
    ),
)
