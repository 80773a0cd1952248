"""Whole lines from pieces: no piece size, repetition or gap makes a wrong one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.core.messages import OutputChunk
from trainmaster.monitor.lines import Stream, Streams
from trainmaster.monitor.settings import LINE_CHARS_MAX, STREAMS_MAX

pytestmark = pytest.mark.unit


def cut(text: str, sizes: list[int]) -> list[OutputChunk]:
    """Cut a file into chunks of so many characters, the rest at the end."""
    chunks: list[OutputChunk] = []
    at = offset = 0
    for size in [*sizes, len(text)]:
        piece = text[at : at + size]
        if piece:
            chunks.append(OutputChunk(offset=offset, text=piece))
        at, offset = at + len(piece), offset + len(piece.encode())
    return chunks


def lines_of(chunks: list[OutputChunk]) -> list[str]:
    stream = Stream()
    return [line for chunk in chunks for line in stream.lines(chunk)]


def test_a_line_may_arrive_in_pieces():
    assert lines_of(cut("step 10 loss 2.5\nstep 11", [6, 5])) == ["step 10 loss 2.5"]


def test_a_line_is_not_read_before_it_is_whole():
    assert lines_of(cut("step 10 loss 2.5", [])) == []


def test_a_carriage_return_ends_a_line():
    assert lines_of(cut("10%\r20%\rdone\n", [])) == ["10%", "20%", "done"]


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"))),
    st.lists(st.integers(1, 20)),
)
def test_the_size_of_pieces_does_not_matter(lines: list[str], sizes: list[int]):
    text = "".join(f"{line}\n" for line in lines)
    assert lines_of(cut(text, sizes)) == lines


@given(st.lists(st.integers(1, 9)), st.integers(0, 60), st.integers(1, 60))
def test_what_is_said_again_makes_no_wrong_line(
    sizes: list[int], start: int, size: int
):
    text = "".join(f"line {n:02}\n" for n in range(10))
    chunks = cut(text, sizes)
    again = OutputChunk(offset=start, text=text[start : start + size])
    tail = cut(text, [])[-1]
    found = lines_of([*chunks, again, tail])
    whole = set(text.splitlines())
    torn = [line for line in found if line not in whole]
    assert len(torn) <= 1  # the piece itself may begin in the middle of a line
    assert all(any(line.endswith(t) for line in whole) for t in torn)
    assert set(found) >= whole


def test_an_old_piece_is_not_shown_again():
    stream = Stream()
    chunks = cut("one\ntwo\nthree\n", [4, 4])
    assert [line for c in chunks for line in stream.lines(c)] == ["one", "two", "three"]
    assert list(stream.lines(chunks[1])) == []


def test_a_gap_drops_the_line_it_tore():
    chunks = [
        OutputChunk(offset=0, text="step 1 loss 2.5\nstep 2 lo"),
        OutputChunk(offset=900, text="ss 9.9\nstep 90 loss 1.5\n"),
    ]
    assert lines_of(chunks) == ["step 1 loss 2.5", "ss 9.9", "step 90 loss 1.5"]


def test_a_file_that_begins_anew_is_read_anew():
    stream = Stream()
    assert list(stream.lines(OutputChunk(offset=0, text="a\nb\n"))) == ["a", "b"]
    assert list(stream.lines(OutputChunk(offset=0, text="c\n"))) == ["c"]


def test_bytes_that_are_no_text_tear_no_line():
    raw = b"\xff\xfe step 1 loss 2\nst"
    first = OutputChunk(offset=0, text=raw.decode(errors="replace"))
    second = OutputChunk(offset=len(raw), text="ep 2 loss 1\n")
    assert lines_of([first, second])[-1] == "step 2 loss 1"


def test_an_endless_line_is_bounded():
    stream = Stream()
    offset = 0
    for _ in range(50):
        assert list(stream.lines(OutputChunk(offset=offset, text="x" * 1000))) == []
        offset += 1000
    assert len(stream.partial) <= LINE_CHARS_MAX
    (line,) = stream.lines(OutputChunk(offset=offset, text="\n"))
    assert len(line) == LINE_CHARS_MAX


def test_the_number_of_ranks_is_bounded():
    streams = Streams[int]()
    first = streams.of(0)
    for rank in range(STREAMS_MAX + 1):
        streams.of(rank)
    assert streams.of(0) is not first
