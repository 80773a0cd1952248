"""What becomes of requests about teams, pools and tokens."""

from datetime import timedelta

import pytest
from tests.unit.submission.world import World

from trainmaster.core.access import TokenIssued, TokenRevoked
from trainmaster.core.events import Event
from trainmaster.core.facts import (
    PoolChanged,
    PoolCreated,
    QuotaSet,
    TeamCreated,
    TeamPaused,
)
from trainmaster.core.ids import PoolKey, TeamKey
from trainmaster.core.rights import EVERY_TEAM, Grant, Role
from trainmaster.core.teams import Quota
from trainmaster.core.tokens import digest_of, key_of
from trainmaster.submission.requests import Already, Impossible, Missing
from trainmaster.submission.teams import (
    ChangePool,
    CreatePool,
    CreateTeam,
    IssueToken,
    OfficeRequest,
    PauseTeam,
    RevokeToken,
    SetQuota,
    judged,
)
from trainmaster.testkit.builders import START

pytestmark = pytest.mark.unit

VISION, LOCAL, BIG = TeamKey("vision"), PoolKey("local"), PoolKey("big")
ADMIN = (Grant(EVERY_TEAM, Role.ADMIN),)
SECRET = "tm_secret"
DIGEST = digest_of(SECRET)
QUOTA = Quota(accelerators=8, borrowing=2)
END = START + timedelta(days=1)


@pytest.fixture
def world() -> World:
    """A world whose first team and pool are there."""
    world = World()
    world.turn()
    return world


def issue(*, secret: str = SECRET, team: str = "vision") -> IssueToken:
    digest = digest_of(secret)
    return IssueToken(
        key=key_of(digest),
        by="admin",
        origin="10.0.0.7",
        digest=digest,
        name="ci",
        grant=Grant(team, Role.SUBMITTER),
        expires_at=END,
    )


def done(world: World, request: OfficeRequest) -> Event:
    """Judge a request that must become an event, and store that."""
    outcome = judged(world.state, request, START)
    assert isinstance(outcome, Event), outcome
    world.store(request.key, outcome)
    return outcome


def refused(world: World, request: OfficeRequest) -> str:
    outcome = judged(world.state, request, START)
    assert isinstance(outcome, Impossible), outcome
    return outcome.message


def test_a_team_is_created_once_below_its_parent(world: World):
    created = done(world, CreateTeam(key=VISION, by="ada", parent="default"))
    assert created == TeamCreated(by="ada", parent="default")
    again = judged(world.state, CreateTeam(key=VISION, parent="default"), START)
    assert isinstance(again, Already)
    assert "below `default`" in refused(world, CreateTeam(key=VISION))
    other = CreateTeam(key=TeamKey("x"), parent="nobody")
    assert refused(world, other) == "no team is called `nobody`"


def test_a_pause_is_set_moved_and_lifted(world: World):
    done(world, CreateTeam(key=VISION))
    pause = PauseTeam(key=VISION, by="ada", paused=True)
    assert done(world, pause) == TeamPaused(by="ada", paused=True)
    assert judged(world.state, pause, START) == Already(message="it is paused")
    done(world, PauseTeam(key=VISION, paused=True, until=END))
    done(world, PauseTeam(key=VISION, paused=False))
    assert not world.state.teams[VISION].paused
    missing = PauseTeam(key=TeamKey("x"), paused=True)
    assert judged(world.state, missing, START) == Missing()


def test_a_quota_holds_for_one_pool_that_there_is(world: World):
    done(world, CreateTeam(key=VISION))
    quota = SetQuota(key=VISION, by="ada", pool="local", quota=QUOTA)
    told = QuotaSet(by="ada", pool="local", accelerators=8, borrowing=2)
    assert done(world, quota) == told
    assert isinstance(judged(world.state, quota, START), Already)
    assert world.state.teams[VISION].quotas == {"local": QUOTA}
    wrong = SetQuota(key=VISION, pool="big", quota=QUOTA)
    assert refused(world, wrong) == "no pool is called `big`"


def test_a_pool_is_created_and_changed_and_what_is_not_told_stays(world: World):
    create = CreatePool(key=BIG, by="ada", backend="slurm", port_first=0, port_last=0)
    assert done(world, create) == PoolCreated(by="ada", backend="slurm")
    assert isinstance(judged(world.state, create, START), Already)
    ports = ChangePool(key=BIG, port_first=20000, port_last=20999)
    changed = PoolChanged(backend="slurm", port_first=20000, port_last=20999)
    assert done(world, ports) == changed
    assert "no range" in refused(world, ChangePool(key=BIG, port_last=1024))
    assert judged(world.state, ChangePool(key=PoolKey("x")), START) == Missing()


def test_a_token_is_given_out_without_its_secret(world: World):
    done(world, CreateTeam(key=VISION))
    told = done(world, issue())
    assert told == TokenIssued(
        digest=DIGEST,
        name="ci",
        team="vision",
        role="submitter",
        expires_at=END,
        by="admin",
        origin="10.0.0.7",
    )
    assert SECRET not in told.to_json().decode()


def test_two_valid_tokens_never_have_one_name(world: World):
    done(world, issue(team=EVERY_TEAM))
    second = issue(secret="tm_other", team=EVERY_TEAM)
    assert "already; revoke it first (tm tokens revoke ci)" in refused(world, second)
    assert isinstance(judged(world.state, second, END), TokenIssued)
    done(world, RevokeToken(key=key_of(DIGEST), grants=ADMIN))
    done(world, second)


def test_a_token_is_for_a_team_that_there_is(world: World):
    assert refused(world, issue()) == "no team is called `vision`"


def test_a_token_is_revoked_by_whoever_may_and_is_not_there_for_others(world: World):
    done(world, CreateTeam(key=VISION))
    done(world, issue())
    key = key_of(DIGEST)
    speech, operator = Grant("speech", Role.ADMIN), Grant("vision", Role.OPERATOR)
    for grants in ((), (speech,), (operator,)):
        asked = RevokeToken(key=key, grants=grants)
        assert judged(world.state, asked, START) == Missing()
    own = RevokeToken(key=key, by="ada", grants=(Grant("vision", Role.ADMIN),))
    assert done(world, own) == TokenRevoked(by="ada")
    assert judged(world.state, own, START) == Already(message="it is revoked")


def test_of_two_requests_for_one_name_at_once_one_is_refused(world: World):
    for fact, secret in (("a", "tm_1"), ("b", "tm_2")):
        world.facts.put(fact, issue(secret=secret, team=EVERY_TEAM))
    world.turn()
    world.turn()
    assert [token.name for token in world.state.tokens.values()] == ["ci"]
    assert not world.facts.current()
