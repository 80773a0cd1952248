"""The table of roles and actions, walked whole, and the page that is made of it."""

import subprocess
import sys
from itertools import pairwise, product
from pathlib import Path

import pytest

from trainmaster.core.rights import (
    EVERY_TEAM,
    RIGHTS,
    Action,
    Grant,
    Role,
    Scope,
    may,
    may_somewhere,
    role_named,
    roles_for,
)

pytestmark = pytest.mark.unit

OWN, OTHER = "vision", "speech"
ORDER = tuple(Role)
# By hand, beside the table: the least role for each thing that hurts when it is wrong.
LEAST = {
    Action.JOB_VIEW: Role.VIEWER,
    Action.JOB_READ_OUTPUT: Role.DATA_READER,
    Action.JOB_SUBMIT: Role.SUBMITTER,
    Action.JOB_CANCEL: Role.SUBMITTER,
    Action.JOB_PRIORITIZE: Role.OPERATOR,
    Action.NODE_DRAIN: Role.OPERATOR,
    Action.TEAM_PAUSE: Role.OPERATOR,
    Action.TEAM_SET_QUOTA: Role.ADMIN,
    Action.POOL_CHANGE: Role.ADMIN,
    Action.TOKEN_CREATE: Role.ADMIN,
    Action.TOKEN_REVOKE: Role.ADMIN,
}
OF_ALL = {
    Action.NODE_DRAIN,
    Action.NODE_REPORT,
    Action.PARKED_VIEW,
    Action.PARKED_REPLAY,
    Action.TEAM_CREATE,
    Action.TEAM_SET_QUOTA,
    Action.POOL_CREATE,
    Action.POOL_CHANGE,
}


@pytest.mark.parametrize(
    ("role", "action", "held", "asked"),
    list(product(Role, Action, (OWN, EVERY_TEAM), (OWN, OTHER))),
)
def test_every_role_may_what_the_table_says_and_nothing_else(
    role: Role, action: Action, held: str, asked: str
):
    right = RIGHTS[action]
    reaches = (
        held == EVERY_TEAM
        or {
            Scope.TEAM: asked == held,
            Scope.INSTALLATION: False,
            Scope.ANYWHERE: True,
        }[right.scope]
    )
    assert may([Grant(held, role)], action, asked) is (role in right.roles and reaches)


def test_every_action_is_in_the_table():
    assert set(RIGHTS) == set(Action)


@pytest.mark.parametrize(("action", "least"), LEAST.items())
def test_the_least_role_for_what_hurts_is_written_down_twice(
    action: Action, least: Role
):
    assert roles_for(action) == ORDER[ORDER.index(least) :]


def test_what_concerns_all_teams_needs_a_role_on_all_of_them():
    of_all = {a for a, right in RIGHTS.items() if right.scope is Scope.INSTALLATION}
    assert of_all == OF_ALL
    for action in of_all:
        assert not may([Grant(OWN, Role.ADMIN)], action, OWN)
        assert not may_somewhere([Grant(OWN, Role.ADMIN)], action)
        assert not may([Grant(EVERY_TEAM, Role.VIEWER)], action, OWN)


@pytest.mark.parametrize("action", Action)
def test_without_a_role_nothing_is_allowed(action: Action):
    assert not may([], action, OWN)
    assert not may_somewhere([], action)


@pytest.mark.parametrize(("lower", "higher"), list(pairwise(ORDER)))
def test_each_role_may_what_the_one_before_may(lower: Role, higher: Role):
    for right in RIGHTS.values():
        assert lower not in right.roles or higher in right.roles


def test_whoever_gives_out_tokens_gives_nothing_they_do_not_have():
    givers = roles_for(Action.TOKEN_CREATE)
    for giver, given, action in product(givers, Role, Action):
        if may([Grant(OWN, given)], action, OWN):
            assert may([Grant(OWN, giver)], action, OWN)
    assert not may([Grant(OWN, Role.ADMIN)], Action.TOKEN_CREATE, EVERY_TEAM)


def test_a_role_of_a_later_release_is_none():
    assert role_named("owner") is None
    assert role_named("data-reader") is Role.DATA_READER


def test_the_page_about_roles_is_made_of_the_table():
    check = subprocess.run(
        [sys.executable, "-m", "tools.generate_roles", "--check"],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert check.returncode == 0, check.stderr
