"""Which server is meant."""

import json
from pathlib import Path

import pytest

from trainmaster.client.credentials import (
    Credentials,
    CredentialsError,
    data_directory,
    find_credentials,
)
from trainmaster.core.errors import UnreachableError

pytestmark = pytest.mark.unit

KEPT = {"url": "http://127.0.0.1:20080/", "token": "kept", "pid": 7}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "credentials.json").write_text(json.dumps(KEPT))
    return tmp_path


def test_what_tm_up_kept_is_used(directory: Path):
    expected = Credentials(url="http://127.0.0.1:20080", token="kept")
    assert find_credentials(directory, {}) == expected
    assert find_credentials(None, {"TM_DATA_DIR": str(directory)}) == expected


def test_the_environment_names_another_server(directory: Path):
    told = {"TM_URL": "https://tm.example/", "TM_TOKEN": "told"}
    assert find_credentials(directory, told) == Credentials(
        url="https://tm.example", token="told"
    )


def test_the_token_of_one_server_is_never_sent_to_another(directory: Path):
    told = {"TM_URL": "https://tm.example"}
    assert find_credentials(directory, told).token == ""


def test_without_a_file_nothing_runs_there(tmp_path: Path):
    with pytest.raises(UnreachableError, match="start it with `tm up`"):
        find_credentials(tmp_path, {})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": "x"}', "null"])
def test_a_damaged_file_is_named(tmp_path: Path, text: str):
    (tmp_path / "credentials.json").write_text(text)
    with pytest.raises(CredentialsError, match=r"credentials\.json is damaged"):
        find_credentials(tmp_path, {})


def test_the_data_directory_is_told_or_known_or_at_home():
    assert data_directory(Path("/a"), {"TM_DATA_DIR": "/b"}) == Path("/a")
    assert data_directory(None, {"TM_DATA_DIR": "/b"}) == Path("/b")
    assert data_directory(None, {}) == Path.home() / ".trainmaster"
