"""What an agent keeps, follows and leases: whole, bounded, never somebody else's."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.core.facts import MemberClosed, MemberPrepared
from trainmaster.core.ids import JobId
from trainmaster.core.messages import Assignment, Order
from trainmaster.core.values import Proof
from trainmaster.launcher.agent.disk import Disk, MemberRecord, claim
from trainmaster.launcher.agent.ports import NoPortError, Ports
from trainmaster.launcher.agent.tail import (
    BEHIND_BYTES_MAX,
    PIECE_BYTES,
    PIECES_MAX,
    Follower,
    Piece,
    whole_characters,
    whole_lines,
)
from trainmaster.launcher.backends.model import AttemptKey

pytestmark = pytest.mark.unit

FIRST = AttemptKey(job=JobId("j"), number=1)
SECOND = AttemptKey(job=JobId("j"), number=2)
RECORD = MemberRecord(
    boot_id="b",
    assignment=Assignment(team="t", attempt=1, order=Order.START),
    prepared=MemberPrepared(port=20001, versions={"python": "3.11"}),
)
CLOSED = RECORD.model_copy(
    update={"closed": MemberClosed(proof=Proof(node="n", how="swept"))}
)

# ------------------------------------------------------------------------------- disk


def test_what_is_kept_is_read_by_the_next_agent(tmp_path: Path):
    Disk(tmp_path).save(FIRST, RECORD)
    Disk(tmp_path).save(SECOND, CLOSED)
    disk = Disk(tmp_path)
    assert disk.of_job(FIRST.job) == {1: RECORD, 2: CLOSED}
    assert disk.unfinished_jobs() == [FIRST.job]
    assert disk.of_job(JobId("other")) == {}


def test_what_was_told_stays_refused_but_is_not_taken_up_again(tmp_path: Path):
    disk = Disk(tmp_path)
    disk.save(FIRST, CLOSED)
    disk.save(FIRST, CLOSED.model_copy(update={"told": True}))
    assert disk.unfinished_jobs() == []
    assert disk.of_job(FIRST.job)[1].closed == CLOSED.closed


def test_a_torn_record_counts_as_absent(tmp_path: Path):
    disk = Disk(tmp_path)
    disk.save(FIRST, RECORD)
    (tmp_path / "members/j/1/member.json").write_text('{"boot_id": "b"')
    assert disk.of_job(FIRST.job) == {}


def test_only_the_owner_may_read_a_record(tmp_path: Path):
    Disk(tmp_path).save(FIRST, RECORD)
    path = tmp_path / "members/j/1/member.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "members").stat().st_mode & 0o777 == 0o700


def test_what_was_told_long_ago_is_forgotten(tmp_path: Path):
    disk = Disk(tmp_path)
    disk.save(FIRST, CLOSED.model_copy(update={"told": True}))
    disk.save(SECOND, RECORD)
    disk.forget_older(before_unix_seconds=2**40)
    assert disk.of_job(FIRST.job) == {2: RECORD}


def test_offsets_are_kept_beside_the_record(tmp_path: Path):
    disk = Disk(tmp_path)
    disk.save_offsets(FIRST, {"a": 1})
    assert disk.offsets(FIRST) == {}, "there is no such attempt"
    disk.save(FIRST, RECORD)
    disk.save_offsets(FIRST, {"a": 1})
    assert Disk(tmp_path).offsets(FIRST) == {"a": 1}


def test_a_directory_has_one_agent(tmp_path: Path):
    held = claim(tmp_path)
    assert held is not None
    assert claim(tmp_path) is None
    os.close(held)
    again = claim(tmp_path)
    assert again is not None
    os.close(again)


# ------------------------------------------------------------------------------- tail


def follower(path: Path, *, offset: int = 0, uid: int | None = None) -> Follower:
    return Follower(
        path,
        uid=os.geteuid() if uid is None else uid,
        offset=offset,
        cut=whole_characters,
    )


def all_of(tail: Follower, *, final: bool = False) -> str:
    """Read as long as there is something new."""
    text = ""
    while pieces := tail.read(final=final):
        tail.advance(pieces)
        text += "".join(piece.data.decode(errors="replace") for piece in pieces)
    return text


def test_a_file_is_followed_from_where_it_was_left(tmp_path: Path):
    path = tmp_path / "log"
    tail = follower(path)
    assert tail.read() == []
    path.write_text("one")
    assert tail.read() == [Piece(offset=0, data=b"one")]
    tail.advance(tail.read())
    with path.open("a") as file:
        file.write("two")
    assert tail.read() == [Piece(offset=3, data=b"two")]
    assert follower(path, offset=4).read() == [Piece(offset=4, data=b"wo")]


def test_a_character_is_never_cut_in_two(tmp_path: Path):
    path = tmp_path / "log"
    path.write_bytes("aä".encode()[:-1])
    tail = follower(path)
    assert all_of(tail) == "a"
    path.write_bytes("aä".encode())
    assert all_of(tail) == "ä"


def test_the_end_of_a_file_is_read_even_if_it_is_incomplete(tmp_path: Path):
    path = tmp_path / "log"
    path.write_bytes(b"a\xc3")
    assert all_of(follower(path), final=True) == "a\ufffd"


def test_pieces_are_bounded_and_a_long_lag_is_left_out(tmp_path: Path):
    path = tmp_path / "log"
    path.write_bytes(b"x" * (BEHIND_BYTES_MAX + 10))
    pieces = follower(path).read()
    assert len(pieces) == PIECES_MAX
    assert pieces[0].offset == 10
    assert {len(piece.data) for piece in pieces} == {PIECE_BYTES}


def test_a_file_that_became_shorter_is_read_anew(tmp_path: Path):
    path = tmp_path / "log"
    path.write_text("long line")
    tail = follower(path)
    all_of(tail)
    path.write_text("new")
    assert all_of(tail) == "new"


def test_neither_links_nor_pipes_nor_files_of_others_are_read(tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / "link").symlink_to(secret)
    os.mkfifo(tmp_path / "pipe")
    assert follower(tmp_path / "link").read() == []
    assert follower(tmp_path / "pipe").read() == []
    assert follower(secret, uid=os.geteuid() + 1).read() == []
    assert follower(tmp_path / "link").last_bytes(9) == b""


def test_a_closed_follower_reads_nothing(tmp_path: Path):
    path = tmp_path / "log"
    path.write_text("text")
    tail = follower(path)
    assert tail.last_bytes(2) == b"xt"
    tail.close()
    assert tail.read() == []


@given(st.text(max_size=40), st.integers(1, 8))
def test_cut_anywhere_the_text_is_the_same(text: str, size: int):
    data, parts, start = text.encode(), list[str](), 0
    end = size
    while start < len(data):
        whole = whole_characters(data[start:end])
        parts.append(data[start : start + whole].decode())
        start, end = start + whole, end + size
    assert "".join(parts) == text


@given(st.binary(max_size=12))
def test_no_more_than_three_bytes_are_held_back(data: bytes):
    assert len(data) - 3 <= whole_characters(data) <= len(data)


def test_lines_are_read_whole_unless_they_are_absurd():
    assert whole_lines(b"a\nb") == 2
    assert whole_lines(b"ab") == 0
    assert whole_lines(b"x" * PIECE_BYTES) == PIECE_BYTES


# ------------------------------------------------------------------------------ ports


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def test_a_port_is_leased_once_and_again_after_its_release():
    port = free_port()
    ports = Ports(first=port, last=port, seed="n1")
    assert ports.lease(FIRST) == port
    assert ports.lease(FIRST) == port
    with pytest.raises(NoPortError, match=f"no port from {port} to {port}"):
        ports.lease(SECOND)
    ports.release(FIRST)
    ports.release(FIRST)
    assert ports.lease(SECOND) == port


def test_a_port_that_somebody_has_is_left_out():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = int(other.getsockname()[1])
        with pytest.raises(NoPortError):
            Ports(first=port, last=port, seed="n1").lease(FIRST)


def test_the_port_of_x11_is_never_leased():
    with pytest.raises(NoPortError):
        Ports(first=6000, last=6000, seed="n1").lease(FIRST)


def test_an_adopted_lease_is_kept():
    port = free_port()
    ports = Ports(first=port, last=port, seed="n1")
    ports.adopt(FIRST, port)
    with pytest.raises(NoPortError):
        ports.lease(SECOND)
