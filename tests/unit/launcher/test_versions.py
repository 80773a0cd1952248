"""Equal members start; the odd one is named with the field in which it differs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.launcher.versions import Reported, odd_one

pytestmark = pytest.mark.unit


def reported(**versions_by_node: str) -> list[Reported]:
    return [
        Reported(node=node, versions={"spec": "s", "python": version})
        for node, version in versions_by_node.items()
    ]


def test_equal_members_have_no_odd_one():
    assert odd_one(reported(n1="3.11", n2="3.11")) is None


def test_the_minority_is_odd():
    odd = odd_one(reported(n1="3.12", n2="3.11", n3="3.11"))
    assert odd is not None
    assert (odd.node, odd.failure.field) == ("n1", "python")
    assert (odd.failure.seen, odd.failure.expected) == ("3.12", "3.11")
    assert "n1 has python 3.12, the others have 3.11" in odd.sentence


def test_of_two_the_one_with_the_higher_ranks_is_odd():
    odd = odd_one(reported(n1="3.12", n2="3.11"))
    assert odd is not None
    assert odd.node == "n2"


def test_a_field_that_one_member_does_not_report_is_odd():
    members = [*reported(n1="3.11", n2="3.11"), Reported(node="n3", versions={})]
    odd = odd_one(members)
    assert odd is not None
    assert (odd.node, odd.failure.field, odd.failure.seen) == (
        "n3",
        "python",
        "nothing",
    )


@given(st.lists(st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"))))
def test_there_is_an_odd_one_exactly_when_members_differ(
    versions: list[dict[str, str]],
):
    members = [Reported(node=f"n{i}", versions=v) for i, v in enumerate(versions)]
    equal = all(v == versions[0] for v in versions)
    assert (odd_one(members) is None) == equal
