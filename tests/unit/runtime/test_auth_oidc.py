"""Identity tokens, checked against a provider that is really asked over HTTP."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from pydantic import ValidationError
from tests.unit.runtime.gates import House, bearer
from tests.unit.runtime.issuer import AUDIENCE, Issuer, issuing

from trainmaster.core.errors import UnreachableError
from trainmaster.core.rights import Grant, Role
from trainmaster.runtime.auth_identity import IdentityRefusedError
from trainmaster.runtime.auth_oidc import Oidc, grants_of
from trainmaster.runtime.settings import OidcRule, OidcSettings, Settings

pytestmark = pytest.mark.unit

HOUR = timedelta(hours=1)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuing() as issuer:
        yield issuer


def an_oidc(issuer: Issuer, **told: Any) -> Oidc:
    return Oidc(issuer.settings(**told), ask_again_seconds=0.0)


def now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - beside the provider's own clock


async def test_somebody_a_provider_vouches_for_has_the_roles_of_their_claims(
    issuer: Issuer,
):
    identity = await an_oidc(issuer).identify(issuer.token())
    assert identity.subject == "oidc:ada@example.com"
    assert identity.grants == (Grant("vision", Role.SUBMITTER),)
    assert issuer.asked == ["/.well-known/openid-configuration", "/keys"]


async def test_a_token_is_verified_once_and_known_afterwards(issuer: Issuer):
    oidc, token = an_oidc(issuer), issuer.token()
    first = await oidc.identify(token)
    issuer.away = True
    assert await oidc.identify(token) is first
    assert len(issuer.asked) == 2


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"exp": now() - HOUR}, "has expired; log in again"),
        ({"aud": "somebody-else"}, "udience"),
        ({"iss": "https://evil.example.com"}, "ssuer"),
        ({"nbf": now() + HOUR}, "not yet valid"),
        ({"exp": None}, '"exp"'),
        ({"aud": None}, '"aud"'),
        ({"sub": None}, '"sub"'),
        ({"email": "ada\nadmin"}, "no usable name"),
    ],
)
async def test_a_token_whose_claims_are_wrong_is_refused(
    issuer: Issuer, claims: dict[str, Any], said: str
):
    with pytest.raises(IdentityRefusedError, match=said):
        await an_oidc(issuer).identify(issuer.token(**claims))


async def test_a_small_difference_of_clocks_is_forgiven(issuer: Issuer):
    late = issuer.token(exp=now() - timedelta(seconds=3))
    early = issuer.token(nbf=now() + timedelta(seconds=3))
    oidc = an_oidc(issuer)
    assert await oidc.identify(late)
    assert await oidc.identify(early)


def unsigned(issuer: Issuer) -> str:
    return jwt.encode(issuer.claims(), "", "none", headers={"kid": "k1"})


def signed_with_the_public_key(issuer: Issuer) -> str:
    """The old trick: the public key as the secret of a symmetric signature."""
    pem = issuer.public_key("k1").public_bytes(
        Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
    )
    head = part({"alg": "HS256", "typ": "JWT", "kid": "k1"})
    claims = {k: v for k, v in issuer.claims().items() if k not in {"iat", "exp"}}
    body = part(claims | {"exp": (now() + HOUR).timestamp()})
    mac = hmac.new(pem, f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.mark.parametrize("forged", [unsigned, signed_with_the_public_key])
async def test_a_token_without_a_signature_of_a_key_pair_is_refused(
    issuer: Issuer, forged: Any
):
    with pytest.raises(IdentityRefusedError, match="is signed with"):
        await an_oidc(issuer).identify(forged(issuer))


async def test_a_shared_secret_that_the_provider_shows_is_not_used(issuer: Issuer):
    secret = "a-shared-secret-that-is-long-enough-for-hs256"
    shown = base64.urlsafe_b64encode(secret.encode()).decode().rstrip("=")
    issuer.show({"kty": "oct", "k": shown, "kid": "shared", "alg": "HS256"})
    token = jwt.encode(issuer.claims(), secret, "HS256", headers={"kid": "shared"})
    with pytest.raises(IdentityRefusedError, match="HS256, not with RS256"):
        await an_oidc(issuer).identify(token)


async def test_a_changed_token_is_refused(issuer: Issuer):
    head, _, mac = issuer.token().split(".")
    claims = {**issuer.claims(groups=["gpu-admin"]), "iat": 0, "exp": 2**40}
    with pytest.raises(IdentityRefusedError, match="ignature"):
        await an_oidc(issuer).identify(f"{head}.{part(claims)}.{mac}")


@pytest.mark.parametrize("token", ["a.b.c", "..", "\u00e9.\u00e9.\u00e9"])
async def test_what_is_no_token_is_refused(issuer: Issuer, token: str):
    with pytest.raises(IdentityRefusedError, match="cannot be read"):
        await an_oidc(issuer).identify(token)
    assert issuer.asked == []


async def test_turned_keys_are_found_at_once_and_old_ones_forgotten(issuer: Issuer):
    oidc = an_oidc(issuer)
    old = issuer.token()
    await oidc.identify(old)
    issuer.add_key("k2", "ES256")
    issuer.drop_key("k1")
    assert await oidc.identify(issuer.token("k2"))
    with pytest.raises(IdentityRefusedError, match="unknown key 'k1'"):
        await oidc.identify(issuer.token("k1", sub="another"))


async def test_unknown_keys_do_not_make_us_ask_all_the_time(issuer: Issuer):
    oidc = Oidc(issuer.settings(), ask_again_seconds=60.0)
    await oidc.identify(issuer.token())
    asked = len(issuer.asked)
    issuer.add_key("k2")
    for number in range(5):
        with pytest.raises(IdentityRefusedError, match="unknown key"):
            await oidc.identify(issuer.token("k2", sub=str(number)))
    assert len(issuer.asked) == asked


async def test_a_provider_that_is_away_is_no_reason_to_forget_its_keys(issuer: Issuer):
    oidc = an_oidc(issuer, keys_seconds=1e-9)
    await oidc.identify(issuer.token())
    issuer.away = True
    assert await oidc.identify(issuer.token(sub="another"))


async def test_without_any_key_it_is_said_that_the_provider_cannot_be_reached(
    issuer: Issuer,
):
    issuer.away = True
    with pytest.raises(UnreachableError, match="check TM_OIDC"):
        await an_oidc(issuer).identify(issuer.token())


async def test_a_provider_that_calls_itself_otherwise_is_not_believed(issuer: Issuer):
    issuer.calls_itself = "https://other.example.com"
    with pytest.raises(UnreachableError, match=r"calls itself 'https://other\.exam"):
        await an_oidc(issuer).identify(issuer.token())


async def test_keys_are_not_read_in_the_clear_from_another_host(issuer: Issuer):
    issuer.keys_at = "http://keys.example.com/keys"
    with pytest.raises(UnreachableError, match="is not https"):
        await an_oidc(issuer).identify(issuer.token())


def test_a_claim_inside_another_and_every_rule_that_fits_count():
    rules = (
        OidcRule(claim="realm.roles", value="gpu", team="*", role=Role.OPERATOR),
        OidcRule(claim="dept", value="vision", team="vision", role=Role.VIEWER),
        OidcRule(claim="none.at.all", value="x", team="*", role=Role.ADMIN),
    )
    claims = {"realm": {"roles": ["a", "gpu"]}, "dept": "vision", "none": "x"}
    assert grants_of(claims, rules) == (
        Grant("*", Role.OPERATOR),
        Grant("vision", Role.VIEWER),
    )
    assert grants_of({}, rules) == ()


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_settings_take_only_key_pairs(algorithm: str):
    with pytest.raises(ValidationError):
        OidcSettings(issuer="https://x", audience="y", algorithms=(algorithm,))  # pyright: ignore[reportArgumentType] that is the point


def test_the_provider_is_told_in_the_environment(monkeypatch: pytest.MonkeyPatch):
    told = {"issuer": "https://id.example.com", "audience": AUDIENCE}
    monkeypatch.setenv("TM_OIDC", json.dumps(told))
    oidc = Settings().oidc
    assert oidc is not None
    assert oidc.algorithms == ("RS256", "ES256")


async def test_an_identity_opens_the_gate_until_it_expires(issuer: Issuer):
    house = House(now=now())
    token = issuer.token()
    async with house.open(oidc=an_oidc(issuer)) as http:
        own = await http.post("/jobs/vision/cancel", headers=bearer(token))
        other = await http.post("/jobs/speech/cancel", headers=bearer(token))
        forged = await http.get("/whoami", headers=bearer(token[:-4] + "AAAA"))
        house.now += HOUR
        late = await http.get("/whoami", headers=bearer(token))
        opaque = await http.get(
            "/whoami", headers=bearer(house.give("ci", "v", "viewer"))
        )
    assert own.json()["by"] == "oidc:ada@example.com"
    assert [a.status_code for a in (other, forged, late)] == [403, 401, 401]
    assert opaque.status_code == 200
