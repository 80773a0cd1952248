"""What the log says of a token, folded."""

from datetime import timedelta

import pytest

from trainmaster.core.access import TokenIssued, TokenRevoked
from trainmaster.core.events import Event
from trainmaster.core.ids import TokenKey
from trainmaster.core.rights import Grant, Role
from trainmaster.core.tokens import Token, digest_of, fold_token, key_of
from trainmaster.testkit.builders import START, an_entry

pytestmark = pytest.mark.unit

SECRET = "tm_secret"
DIGEST = digest_of(SECRET)
KEY = key_of(DIGEST)
ISSUED = TokenIssued(digest=DIGEST, name="ci", team="vision", role="submitter")


def told(*events: Event, key: TokenKey = KEY) -> dict[TokenKey, Token]:
    tokens: dict[TokenKey, Token] = {}
    for seq, event in enumerate(events, 1):
        fold_token(tokens, an_entry(event, key=key, seq=seq))
    return tokens


def test_a_token_that_was_given_out_opens_until_it_is_revoked():
    token = told(ISSUED)[KEY]
    assert token.grants == (Grant("vision", Role.SUBMITTER),)
    assert token.opens(START)
    revoked = told(ISSUED, TokenRevoked())[KEY]
    assert not revoked.opens(START)
    assert revoked.state(START) == "revoked"


def test_a_token_opens_until_the_instant_it_expires():
    end = START + timedelta(days=1)
    token = told(ISSUED.model_copy(update={"expires_at": end}))[KEY]
    assert token.opens(end - timedelta(microseconds=1))
    assert not token.opens(end)
    assert token.state(end) == "expired"


def test_a_revoked_token_is_never_given_out_again():
    assert not told(ISSUED, TokenRevoked(), ISSUED)[KEY].opens(START)


def test_a_digest_that_does_not_belong_to_the_key_opens_nothing():
    assert told(ISSUED, key=TokenKey("0" * 16)) == {}


def test_revoking_what_nobody_has_changes_nothing():
    assert told(TokenRevoked()) == {}


def test_a_role_of_a_later_release_allows_nothing():
    assert told(ISSUED.model_copy(update={"role": "owner"}))[KEY].grants == ()


def test_the_secret_is_neither_in_the_key_nor_in_the_event():
    assert SECRET not in ISSUED.to_json().decode()
    assert SECRET.removeprefix("tm_") not in KEY.token
    assert key_of(digest_of("another")) != KEY
