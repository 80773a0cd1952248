"""Decides who may do what: the one table of roles and actions. Pure.

Documentation (`docs/roles.md`) and the exhaustive test are made from this table. A
grant is a role on one team, or on every team (`*`); it is not inherited by the teams
below. No role is hidden in code: what is not listed here, nobody may do.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

EVERY_TEAM: Final = "*"


class Role(StrEnum):
    """What somebody is on a team; each may do what the one before may, and more."""

    VIEWER = "viewer"
    DATA_READER = "data-reader"
    SUBMITTER = "submitter"
    OPERATOR = "operator"
    ADMIN = "admin"


class Scope(StrEnum):
    """Which grant an action asks for."""

    TEAM = "team"  # one on the team that is concerned, or on every team
    INSTALLATION = "installation"  # one on every team: it concerns all of them
    ANYWHERE = "anywhere"  # any; the answer tells only of teams that may be seen


class Action(StrEnum):
    """What can be asked for; every route declares which one it is."""

    JOB_VIEW = "job.view"
    JOB_READ_OUTPUT = "job.read-output"
    JOB_SUBMIT = "job.submit"
    JOB_CANCEL = "job.cancel"
    JOB_HOLD = "job.hold"
    JOB_RELEASE = "job.release"
    JOB_PRIORITIZE = "job.prioritize"
    JOB_REPORT = "job.report"
    EVENT_FOLLOW = "event.follow"
    NODE_VIEW = "node.view"
    NODE_DRAIN = "node.drain"
    NODE_REPORT = "node.report"
    TEAM_VIEW = "team.view"
    TEAM_CREATE = "team.create"
    TEAM_PAUSE = "team.pause"
    TEAM_SET_QUOTA = "team.set-quota"
    POOL_VIEW = "pool.view"
    POOL_CREATE = "pool.create"
    POOL_CHANGE = "pool.change"
    TOKEN_VIEW = "token.view"  # noqa: S105 - an action's name
    TOKEN_CREATE = "token.create"  # noqa: S105 - as above
    TOKEN_REVOKE = "token.revoke"  # noqa: S105 - as above
    REFUSAL_VIEW = "refusal.view"
    PARKED_VIEW = "parked.view"
    PARKED_REPLAY = "parked.replay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """One line of the table: in words, where it holds, and for whom."""

    does: str
    scope: Scope
    roles: frozenset[Role]


class Grant(NamedTuple):
    """A role on one team, or on every team."""

    team: str
    role: Role


def _from(least: Role) -> frozenset[Role]:
    """List a role and all behind it."""
    order = tuple(Role)
    return frozenset(order[order.index(least) :])


_TEAM, _ALL, _ANY = Scope.TEAM, Scope.INSTALLATION, Scope.ANYWHERE
_VIEWER, _READER, _SUBMITTER, _OPERATOR, _ADMIN = map(_from, Role)

RIGHTS: Final[Mapping[Action, Right]] = {
    action: Right(does=does, scope=scope, roles=roles)
    for action, does, scope, roles in (
        (Action.JOB_VIEW, "see jobs and their events", _TEAM, _VIEWER),
        (Action.JOB_READ_OUTPUT, "read the output of jobs", _TEAM, _READER),
        (Action.JOB_SUBMIT, "submit jobs", _TEAM, _SUBMITTER),
        (Action.JOB_CANCEL, "cancel jobs", _TEAM, _SUBMITTER),
        (Action.JOB_HOLD, "hold jobs", _TEAM, _SUBMITTER),
        (Action.JOB_RELEASE, "release jobs", _TEAM, _SUBMITTER),
        (Action.JOB_PRIORITIZE, "change the priority of jobs", _TEAM, _OPERATOR),
        (Action.JOB_REPORT, "report metrics, checkpoints of jobs", _TEAM, _SUBMITTER),
        (Action.EVENT_FOLLOW, "follow all that happens", _ANY, _VIEWER),
        (Action.NODE_VIEW, "see nodes", _ANY, _VIEWER),
        (Action.NODE_DRAIN, "drain and undrain nodes", _ALL, _OPERATOR),
        (Action.NODE_REPORT, "report the health of nodes", _ALL, _OPERATOR),
        (Action.TEAM_VIEW, "see teams", _ANY, _VIEWER),
        (Action.TEAM_CREATE, "create teams", _ALL, _ADMIN),
        (Action.TEAM_PAUSE, "pause and resume teams", _TEAM, _OPERATOR),
        (Action.TEAM_SET_QUOTA, "set quotas", _ALL, _ADMIN),
        (Action.POOL_VIEW, "see pools", _ANY, _VIEWER),
        (Action.POOL_CREATE, "create pools", _ALL, _ADMIN),
        (Action.POOL_CHANGE, "change pools", _ALL, _ADMIN),
        (Action.TOKEN_VIEW, "see tokens, never their secret", _TEAM, _ADMIN),
        (Action.TOKEN_CREATE, "create tokens", _TEAM, _ADMIN),
        (Action.TOKEN_REVOKE, "revoke tokens", _TEAM, _ADMIN),
        (Action.REFUSAL_VIEW, "see what was refused to whom", _TEAM, _OPERATOR),
        (Action.PARKED_VIEW, "see messages nobody could read", _ALL, _OPERATOR),
        (Action.PARKED_REPLAY, "replay such messages", _ALL, _OPERATOR),
    )
}
"""The table. A team's own admin sets no quota: it would be its own."""


def may(grants: Iterable[Grant], action: Action, team: str) -> bool:
    """Say whether these grants allow an action that concerns a team."""
    right = RIGHTS[action]
    return any(
        grant.role in right.roles and _covers(grant.team, right.scope, team)
        for grant in grants
    )


def may_somewhere(grants: Iterable[Grant], action: Action) -> bool:
    """Say whether there is any team on which these grants allow an action."""
    right = RIGHTS[action]
    return any(
        grant.role in right.roles
        and (grant.team == EVERY_TEAM or right.scope is not Scope.INSTALLATION)
        for grant in grants
    )


def _covers(granted: str, scope: Scope, team: str) -> bool:
    if granted == EVERY_TEAM or scope is Scope.ANYWHERE:
        return True
    return scope is Scope.TEAM and granted == team


def roles_for(action: Action) -> tuple[Role, ...]:
    """List the roles that allow an action, the least one first."""
    return tuple(role for role in Role if role in RIGHTS[action].roles)


def role_named(word: str) -> Role | None:
    """Read a role; None for a word that is none, also one of a later release."""
    return next((role for role in Role if role == word), None)
