"""What of a rank's output is new, how it reads, and what a slow reader is told."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.console.live import Queue
from trainmaster.console.output import Lines, Piece, Seen
from trainmaster.console.settings import BEHIND_BYTES_MAX

pytestmark = pytest.mark.unit


def a_piece(text: str, *, offset: int = 0, rank: int = 0) -> Piece:
    return Piece(attempt=1, rank=rank, offset=offset, text=text)


def handed_on(pieces: list[Piece]) -> str:
    seen = Seen()
    return "".join(new.text for piece in pieces for new in seen.new(piece))


@given(
    st.text(min_size=1, max_size=40),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 9)), max_size=20),
)
def test_output_said_again_in_other_pieces_comes_once(
    text: str, repeats: list[tuple[int, int]]
):
    whole = text.replace("\ufffd", "?")
    ends = [len(whole[: i + 1].encode()) for i in range(len(whole))]
    starts = [0, *ends]
    told: list[Piece] = []
    said = 0
    for back, length in [*repeats, (0, len(whole))]:
        first = min(max(0, said - back), said)
        part = whole[first : max(said, first) + length]
        told.append(a_piece(part, offset=starts[first]))
        said = max(said, first + len(part))
    assert handed_on(told) == whole


def test_what_is_no_text_never_swallows_what_follows():
    assert handed_on([a_piece("\ufffd" * 9), a_piece("next", offset=9)]).endswith(
        "next"
    )


def test_ranks_do_not_hide_each_other():
    assert handed_on([a_piece("a"), a_piece("b", rank=1)]) == "ab"


def test_lines_of_several_ranks_name_theirs():
    lines = Lines(named=True)
    parts = [
        lines.add(a_piece("on")),
        lines.add(a_piece("two\n", rank=1)),
        lines.add(a_piece("e\nres", offset=2)),
        lines.end(),
    ]
    assert parts == ["", "[1] two\n", "[0] one\n", "[0] res\n"]


def test_output_of_one_rank_is_given_as_it_is():
    lines = Lines(named=False)
    assert lines.add(a_piece("a\nb")) + lines.end() == "a\nb"


async def test_a_slow_reader_is_told_how_much_it_missed():
    queue = Queue(wake=asyncio.Event())
    for number in range(4):
        queue.offer(a_piece("x" * (BEHIND_BYTES_MAX // 2), offset=number))
    taken = queue.take()
    assert [piece.skipped for piece in taken] == [0, 0, BEHIND_BYTES_MAX // 2 * 2]
    assert "1,000,000 bytes skipped" in taken[-1].told()["text"]
    assert queue.take() == []


async def test_only_the_wanted_rank_is_queued():
    wake = asyncio.Event()
    queue = Queue(wake=wake, rank=1)
    queue.offer(a_piece("a"))
    assert not wake.is_set()
    queue.offer(a_piece("b", rank=1))
    assert [piece.text for piece in queue.take()] == ["b"]
