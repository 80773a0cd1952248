"""How values read."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.cli import words
from trainmaster.jobfile.writing import to_yaml

pytestmark = pytest.mark.unit

NOW = datetime(2026, 1, 3, tzinfo=UTC)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e6, 1e6) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("seconds", "age"),
    [
        (0, "0s"),
        (59, "59s"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h"),
        (12_000, "3h20m"),
        (86_400, "1d"),
        (187_200, "2d4h"),
        (-5, "0s"),
    ],
)
def test_an_age_has_two_units_at_most(seconds: int, age: str):
    told = (NOW - timedelta(seconds=seconds)).isoformat()
    assert words.age(told, NOW) == age


def test_what_is_not_known_is_a_dash():
    row: dict[str, Any] = {"empty": "", "none": None, "list": [], "zero": 0}
    assert [words.text(row, key) for key in ("empty", "none", "list", "gone")] == [
        "-"
    ] * 4
    assert words.text(row, "zero") == "0"
    assert words.age(None, NOW) == words.age("soon", NOW) == "-"
    assert words.age(NOW.isoformat(), None) == "-"


@pytest.mark.parametrize(
    ("nodes", "told"),
    [(["n1", "n2"], "n1, n2"), ([{"node": "n1"}], "n1"), (2, "2"), ([], "-")],
)
def test_nodes_are_named_or_counted(nodes: Any, told: str):
    assert words.nodes({"nodes": nodes}) == told


@given(VALUES)
def test_yaml_says_what_was_written(value: Any):
    assert yaml.safe_load(to_yaml(value)) == value
