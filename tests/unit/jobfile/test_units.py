"""What durations, sizes and whole numbers are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.jobfile import units

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("1800", 1800.0),
        ("0.5", 0.5),
        ("30m", 1800.0),
        ("2h", 7200.0),
        ("1h30m", 5400.0),
        ("1.5d", 129_600.0),
        ("1d2h3m4s", 93_784.0),
    ],
)
def test_a_duration_is_seconds_or_has_units(text: str, seconds: float):
    assert units.duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "h", "30 m", "30min", "m30", "30m1h", "1h1h", "-5", "1e3", "nan", ".5"),
        *("1.", "inf", "1h30", "\N{ARABIC-INDIC DIGIT THREE}0", "9" * 16),
    ],
)
def test_anything_else_is_no_duration(text: str):
    assert units.duration(text) is None


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("30 min", "30m"),
        ("2 hours", "2h"),
        ("2 hours and 5 minutes", "2h5m"),
        ("90 Seconds", "90s"),
        ("30ms", ""),
        ("soon", ""),
    ],
)
def test_a_long_unit_is_understood_but_not_taken(wrong: str, right: str):
    assert units.likely_duration(wrong) == right


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1048576", 2**20),
        ("512Gi", 512 * 2**30),
        ("1.5Ti", 3 * 2**39),
        ("64G", 64 * 10**9),
        ("10k", 10_000),
        ("1099511627776", 2**40),
    ],
)
def test_a_size_is_bytes_or_has_a_unit(text: str, size: int):
    assert units.size(text) == size


@pytest.mark.parametrize(
    "text", ["", "Gi", "512GB", "512gi", "512 Gi", "-1Gi", "1e9", "0x10", "1Gi1Mi"]
)
def test_anything_else_is_no_size(text: str):
    assert units.size(text) is None


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("512GB", "512G"),
        ("512gib", "512Gi"),
        ("512 Gi", "512Gi"),
        ("512m", "512M"),
        ("lots", ""),
    ],
)
def test_a_size_in_another_spelling_is_understood_but_not_taken(wrong: str, right: str):
    assert units.likely_size(wrong) == right


@pytest.mark.parametrize("text", ["010", "+1", "1_000", "1.0", "0x1", "", "1e3", "--1"])
def test_a_whole_number_has_one_spelling(text: str):
    assert units.whole(text) is None


@given(st.integers(-(10**18) + 1, 10**18 - 1))
def test_every_whole_number_is_read_back(number: int):
    assert units.whole(str(number)) == number


@given(st.text())
def test_no_text_breaks_a_reader(text: str):
    for read in (units.duration, units.size, units.whole):
        assert read(text) is None or text
    units.likely_duration(text)
    units.likely_size(text)
