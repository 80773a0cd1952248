"""Write `docs/roles.md` from the table of roles and actions in `core/rights.py`.

With `--check` it writes nothing and fails when the page is out of date.
"""

import argparse
import sys
from pathlib import Path
from typing import Final

from trainmaster.core.rights import RIGHTS, Action, Role, Scope

PAGE: Final = Path(__file__).parents[1] / "docs" / "roles.md"
_WHERE: Final = {
    Scope.TEAM: "on the team",
    Scope.INSTALLATION: "on every team (`*`)",
    Scope.ANYWHERE: "on any team",
}
_BEFORE: Final = """\
# Roles

Generated from `libs/core/src/trainmaster/core/rights.py` by
`make roles`; a test holds it to the table.

A token, or an identity that a provider vouches for, has a *role* on one *team*, or on
every team (`*`). A role is not inherited by the teams below. Each role may do what the
one before may, and more.

| role | for whom |
|---|---|
| viewer | sees jobs, their events, nodes, teams and pools |
| data-reader | also reads what jobs write: their output |
| submitter | also submits jobs, and cancels, holds and releases those of the team |
| operator | also changes priorities, pauses the team; on `*`, drains nodes |
| admin | also gives out and revokes tokens; on `*`, makes teams, quotas and pools |

| action | to | {roles} | needs the role |
|---|---|{lines}|---|
"""
_AFTER: Final = """
*On the team*: on the team that is concerned, or on `*`. *On every team*: only a role on
`*` counts, because all teams are concerned. *On any team*: any role will do; the answer
tells only of teams, jobs and tokens that may be seen.

## Answers

* **401**: nobody knows who asks: no token, an unknown, expired or revoked one, or an
  identity token that is not accepted. The answer says which of these.
* **403**: known, but without the role. The answer names the roles that would do, on
  which team, and the ones there are (`roles_needed`, `roles_held`).
* **404**: a job, or a token, of a team that may not be seen is not there.
* **413**: the body is larger than the route takes. **429**: the token asks too often;
  `Retry-After` says when to ask again.

Refusals are kept on the log (stream `AUDIT`, `GET /api/v1/refusals`), a few each second
and the others as a count. What was done is told by the events themselves: each that
follows from a request says `by` whom and from which `origin`.

## Tokens

`tm tokens create NAME --team TEAM --role ROLE --expires 30d` shows the secret once.
Only its sha256 is kept, as a fact on the log, so that every service that answers over
HTTP knows of a revocation as soon as it reads it; a stream that is being followed ends
with the next thing it would have told. A service that has not heard the log for 30 s
believes no token any more, because it could not know of a revocation.

The token of `tm up` lies in `credentials.json` (0600) in the data directory. It has the
role admin on `*`, asks as `admin`, and is found by `tm` without being told.

## Logging in with an identity provider

`TM_OIDC` holds the provider as JSON. Its keys are found by discovery; only signatures
with a key pair are taken, never `none` or a shared secret.

```json
{
  "issuer": "https://id.example.com/realms/lab",
  "audience": "trainmaster",
  "subject_claim": "email",
  "grants": [
    {"claim": "groups", "value": "ml-vision", "team": "vision", "role": "submitter"},
    {"claim": "realm_access.roles", "value": "gpu-admin", "team": "*", "role": "admin"}
  ]
}
```

An identity token is sent like any other: `Authorization: Bearer …`, or `TM_TOKEN`. It
is believed until it expires (a minute of clock difference is forgiven); to withdraw one
earlier, change the provider's keys, or keep its tokens short.
"""


def page() -> str:
    """Write the page."""
    head = _BEFORE.format(roles=" | ".join(Role), lines="|".join(":-:" for _ in Role))
    return head + "".join(map(_line, Action)) + _AFTER


def _line(action: Action) -> str:
    right = RIGHTS[action]
    marks = " | ".join("x" if role in right.roles else "" for role in Role)
    return f"| `{action}` | {right.does} | {marks} | {_WHERE[right.scope]} |\n"


def main() -> int:
    """Write or check; the exit status says whether all is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    if not parser.parse_args().check:
        PAGE.write_text(page())
        return 0
    if PAGE.is_file() and PAGE.read_text() == page():
        return 0
    sys.stderr.write(f"{PAGE}: out of date, run `make roles`\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
