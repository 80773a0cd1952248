"""Which other systems may publish: what the file of them says, and wrong files."""

from pathlib import Path

import pytest

from trainmaster.core.rights import Grant, Role
from trainmaster.runtime.sources import Sources, SourcesFileError, read_sources

pytestmark = pytest.mark.unit


def test_a_source_is_a_submitter_unless_the_file_says_more(tmp_path: Path):
    file = tmp_path / "sources.json"
    file.write_text('{"a": {"team": "x"}, "b": {"team": "*", "role": "operator"}}')
    assert read_sources(file) == {
        "a": Grant("x", Role.SUBMITTER),
        "b": Grant("*", Role.OPERATOR),
    }


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"a b": {"team": "x"}}',
        '{"*": {"team": "x"}}',
        '{"a": {"team": "x.y"}}',
        '{"a": {}}',
        '{"a": {"team": "x", "role": "owner"}}',
        '{"a": {"team": "x", "rôle": "viewer"}}',
    ],
)
def test_a_wrong_file_is_named_and_leaves_all_as_it_was(tmp_path: Path, text: str):
    file = tmp_path / "sources.json"
    file.write_text('{"a": {"team": "x"}}')
    sources = Sources(path=file)
    before = sources.grants()
    file.write_text(text)
    with pytest.raises(SourcesFileError, match=r"sources\.json: "):
        read_sources(file)
    assert sources.changed()
    assert sources.grants() == before
    assert not sources.changed()


def test_no_file_lets_nobody_in(tmp_path: Path):
    assert read_sources(tmp_path / "sources.json") == {}
    assert Sources(path=None).grants() == {}
