"""Wrong job files, and exactly what is printed about each."""

from pathlib import Path

import pytest

from trainmaster.core.errors import SpecRejectedError
from trainmaster.jobfile.installation import Site
from trainmaster.jobfile.reading import Source, read

pytestmark = pytest.mark.unit

GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(path for path in GOLDEN.iterdir() if path.suffix != ".txt")
SITE = Site(storage_root="/stores")


def printed(path: Path) -> str:
    source = Source(
        text=path.read_text(),
        name=path.name,
        directory="/home/ada",
        json=path.suffix == ".json",
    )
    with pytest.raises(SpecRejectedError) as caught:
        read(source, SITE)
    return f"{caught.value}\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_wrong_file_prints_exactly_this(path: Path):
    assert printed(path) == path.with_suffix(".txt").read_text()


def test_there_are_ten_and_no_text_without_a_file():
    assert len(FILES) >= 10
    assert {p.stem for p in GOLDEN.glob("*.txt")} == {p.stem for p in FILES}


def test_no_message_repeats_a_secret():
    said = printed(GOLDEN / "secrets.yaml")
    for value in ("abc123", "abcdef", "hf_", "pa55word", "0123456789"):
        assert value not in said
