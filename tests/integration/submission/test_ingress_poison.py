"""What nobody can read is parked with the reason, and holds up nobody."""

from typing import Any

import pytest
from tests.integration.submission.asking import JOB
from tests.integration.submission.publisher import Publisher, attributes

from trainmaster.core.ingress import Outcome
from trainmaster.testkit.cluster import Cluster, until

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

GOOD = attributes("job_requested", "p")
STRUCTURED = {"content-type": "application/cloudevents+json"}
POISON: dict[str, tuple[bytes, dict[str, str], str]] = {
    "not JSON": (b"{", GOOD, "not JSON"),
    "no object": (b"[1]", GOOD, "no object"),
    "one megabyte": (b'{"file":"' + b"x" * 10**6 + b'"}', GOOD, "1,000,011 bytes"),
    "not UTF-8": (b'{"file":"\xff"}', GOOD, "not JSON"),
    "NaN": (b'{"values":{"loss":NaN}}', GOOD, 'the string "NaN"'),
    "deep": (b'{"a":' * 5000, GOOD, "not JSON"),
    "no attributes": (b"{}", {}, "`ce-specversion`, `ce-id`, `ce-source`, `ce-type`"),
    "no id": (b"{}", {**GOOD, "ce-id": ""}, "`ce-id`"),
    "long id": (b"{}", {**GOOD, "ce-id": "x" * 129}, "`ce-id` cannot be used"),
    "unknown type": (b"{}", {**GOOD, "ce-type": "com.example.x"}, "com.example.x"),
    "other type": (b"{}", attributes("node_reported", "p"), "NodeReported"),
    "old version": (b"{}", {**GOOD, "ce-specversion": "0.3"}, "'0.3'"),
    "XML": (b"<a/>", {**GOOD, "content-type": "application/xml"}, "application/xml"),
    "structured, not JSON": (b"{", STRUCTURED, "not JSON"),
    "structured, empty": (b"{}", STRUCTURED, "attributes are missing"),
    "structured, bad base64": (b'{"data_base64":"*"}', STRUCTURED, "base64"),
}


@pytest.mark.parametrize("name", POISON)
async def test_poison_is_parked_with_a_reason_and_holds_up_nobody(
    door: Cluster, ci: Publisher, name: str
):
    body, headers, reason = POISON[name]
    before = len(ci.answers)
    subject = "tm.in.ci.job_requested"
    await ci.say("job_requested", f"before {name}", file=JOB)
    seq = await ci.publish(subject, body, headers)
    await ci.say("job_requested", f"after {name}", file=JOB)
    good = [await ci.told(f"{when} {name}") for when in ("before", "after")]
    assert [answer.outcome for answer in good] == [Outcome.ACCEPTED] * 2
    [told] = [a for a in ci.answers[before:] if a.outcome is Outcome.PARKED]
    assert reason in told.reason
    parked = await parked_of(door, seq)
    assert (parked["subject"], parked["bytes"]) == (subject, len(body))
    assert parked["reason"] == told.reason


async def test_an_unknown_kind_is_parked(door: Cluster, ci: Publisher):
    seq = await ci.publish("tm.in.ci.job_wished", b"{}", GOOD)
    parked = await parked_of(door, seq)
    assert "'job_wished' is not known (known: job_requested" in parked["reason"]


async def test_a_subject_that_is_too_long_is_parked(door: Cluster, ci: Publisher):
    seq = await ci.publish("tm.in.ci.job_requested.x", b"{}", GOOD)
    assert "tm.in.SOURCE.KIND" in (await parked_of(door, seq))["reason"]


async def parked_of(door: Cluster, seq: int) -> dict[str, Any]:
    """Wait until a message of INGRESS is parked, and show it as the API does."""

    def there() -> dict[str, Any]:
        answer = door.ask("GET", "/parked?limit=200", service="submission")
        found = [each for each in answer.json()["parked"] if each["seq"] == seq]
        return found[0] if found else {}

    found: dict[str, Any] = await until(f"message {seq} is parked", there)
    return found


async def test_a_parked_message_is_shown_and_replayed_as_it_was(
    door: Cluster, ci: Publisher
):
    body = b'{"file": "\xff"}'
    seq = await ci.publish("tm.in.ci.job_requested", body, GOOD)
    number = (await parked_of(door, seq))["number"]
    shown = door.ask("GET", f"/parked/{number}", service="submission").json()
    assert shown["text"] == '{"file": "\ufffd"}'
    assert shown["headers"]["ce-id"] == "p"
    assert door.ask("POST", f"/parked/{number}/replay").status_code == 200
    gone = door.ask("GET", f"/parked/{number}", service="submission")
    assert gone.status_code == 404
    again = await parked_of(door, await _newest(door))
    assert again["number"] > number


async def _newest(door: Cluster) -> int:
    """Find the replayed message: it was stored last."""
    return (await (await door.log()).facts("INGRESS")).last_seq
