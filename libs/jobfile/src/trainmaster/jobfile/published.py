"""Decides how a job file is described to others: as JSON Schema, made of the tables."""

from typing import Any

from trainmaster.jobfile.kinds import schema_of, schema_of_fields
from trainmaster.jobfile.schema import FIELDS, META, PLAIN_FIELDS
from trainmaster.jobfile.values import DIALECTS


def json_schema() -> dict[str, Any]:
    """Describe a job file in every form, for editors and for other programs.

    It takes what an overlay or a template may still fill in, so it requires nothing.
    """
    body = schema_of_fields(FIELDS)
    overlays = {
        "type": "object",
        "description": next(e.means for e in META if e.name == "overlays"),
        "additionalProperties": schema_of_fields(PLAIN_FIELDS),
    }
    dialects = {
        name: {"description": each.means, **schema_of(each.kind)}
        for name, each in DIALECTS.items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:trainmaster:job-file",
        "title": "Trainmaster job file",
        **body,
        "properties": {**body["properties"], "overlays": overlays, **dialects},
    }
