"""Decides which fields a job file has: the tables put together."""

from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType
from typing import Final

from trainmaster.jobfile import kinds
from trainmaster.jobfile.fields.conduct import CONDUCT
from trainmaster.jobfile.fields.files import FILES
from trainmaster.jobfile.fields.program import ENVIRONMENT, IDENTITY, PROGRAM
from trainmaster.jobfile.fields.queue import QUEUE
from trainmaster.jobfile.fields.resources import RESOURCES
from trainmaster.jobfile.groups import group, pairs_of
from trainmaster.jobfile.names import PLAIN_NAMES
from trainmaster.jobfile.table import Field, Kind, Table

CHAPTERS: Final[Mapping[str, Table]] = MappingProxyType(
    {
        "Who": IDENTITY,
        "What runs": PROGRAM,
        "In which environment": ENVIRONMENT,
        "On what": RESOURCES,
        "What it reads and writes": FILES,
        "How it ends": CONDUCT,
        "How it queues and who watches": QUEUE,
    }
)
"""Every field, in the order in which people read about them."""
PLAIN_FIELDS: Final[Table] = tuple(chain.from_iterable(CHAPTERS.values()))

_READERS: Final = {each.name: each.kind.read for each in PLAIN_FIELDS}
_OVERLAY: Final = Kind(
    read=pairs_of(PLAIN_NAMES, group(_READERS)),
    words="`name: fields`",
    schema={"type": "object", "additionalProperties": {"type": "object"}},
)
META: Final[Table] = (
    Field(
        name="$schema",
        kind=kinds.TEXT,
        means="Where an editor finds the JSON Schema of this file. Nothing else "
        "reads it.",
    ),
    Field(
        name="overlays",
        kind=_OVERLAY,
        means="Fields by the name of an overlay, as `{dev: {nodes: 1}}`: the chosen "
        "one wins over the rest of the file. Groups are merged, lists replaced.",
    ),
)
FIELDS: Final[Table] = (*PLAIN_FIELDS, *META)
"""Every field of a job file, and what it must be."""
read_fields: Final = group({each.name: each.kind.read for each in FIELDS})
