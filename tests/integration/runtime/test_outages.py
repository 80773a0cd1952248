"""How it is told that a part of a service failed."""

import asyncpg
import nats.errors
import pytest
import structlog

from trainmaster.core.errors import (
    LeadershipLostError,
    LogLostError,
    UnreachableError,
)
from trainmaster.runtime.outages import Outages

pytestmark = pytest.mark.integration

GONE = UnreachableError(what="NATS", address="nats://x", hint="is it up?")


def failed(*errors: Exception) -> tuple[Outages, list[dict[str, object]], bool]:
    outages = Outages(log=structlog.get_logger(), troubles={})
    with structlog.testing.capture_logs() as lines:
        group = ExceptionGroup("outer", [ExceptionGroup("inner", list(errors))])
        lost = outages.failed("loop", group)
    return outages, [dict(line) for line in lines], lost


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.InternalClientError("unexpected connection lost"),
        asyncpg.ConnectionDoesNotExistError("connection was closed"),
        asyncpg.InterfaceError("connection is closed"),
        asyncpg.CannotConnectNowError("the database system is starting up"),
        ConnectionResetError("reset by peer"),
        nats.errors.ConnectionReconnectingError(),
        GONE,
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_server_that_went_away_is_one_calm_line(error: Exception):
    outages, [line], lost = failed(LeadershipLostError(service="x"), error)
    assert (line["event"], line["log_level"]) == ("loop_left", "info")
    assert "exc_info" not in line
    assert "\n" not in str(line["error"])
    assert type(error).__name__ in str(line["error"]) or str(error) == line["error"]
    assert not lost
    assert outages.troubles == {"loop": line["error"]}


def test_the_same_outage_is_told_once():
    outages, [_], _ = failed(GONE)
    with structlog.testing.capture_logs() as lines:
        outages.failed("loop", ExceptionGroup("again", [GONE]))
        outages.failed("loop", ExceptionGroup("again", [GONE]))
    assert lines == []


@pytest.mark.parametrize(
    "error", [ValueError("a mistake"), asyncpg.UndefinedTableError()]
)
def test_a_mistake_is_told_with_its_traceback(error: Exception):
    outages, [line], _ = failed(error, GONE)
    assert (line["event"], line["log_level"]) == ("loop_crashed", "error")
    assert line["exc_info"]
    assert outages.troubles == {"loop": "an unexpected error; see the log"}


def test_a_lost_log_is_critical():
    lost = LogLostError(stream="JOBS", expected="an entry 9", found="7 as the last")
    _, [line], told = failed(lost)
    assert told
    assert (line["event"], line["log_level"]) == ("log_lost", "critical")


def test_what_works_again_has_no_trouble():
    outages, _, _ = failed(GONE)
    outages.well("loop")
    assert outages.troubles == {}
