"""What the embedded servers are told: text in, text out."""

from pathlib import Path

import pytest

from trainmaster.runtime.embedded.errors import ServerFailedError
from trainmaster.runtime.embedded.nats_configuration import (
    NatsUser,
    nats_configuration,
    quoted,
)
from trainmaster.runtime.embedded.postgres_settings import (
    SETTINGS,
    PostmasterStatus,
    dsn,
    fits_a_socket,
    initdb_arguments,
    parse_postmaster,
    server_arguments,
)

pytestmark = pytest.mark.unit

STORE = Path("/data/nats/store")
GOLDEN = r"""server_name: "trainmaster-4df236b9cb77"
listen: "127.0.0.1:20001"
http: "127.0.0.1:20002"
max_payload: 2097152
log_file: "/data/nats/log"
logfile_size_limit: 8388608
logfile_max_num: 3
jetstream {
  store_dir: "/data/nats/store"
  sync_interval: always
}
authorization {
  timeout: 5
  users: [
    {user: "scheduler", password: "s3cret", permissions: {publish: {allow: ["tm.job.*.*.attempt_placed", "$JS.API.>"]}, subscribe: {allow: ["_INBOX_scheduler.>"]}}}
    {user: "a\"b\\c", password: "x", permissions: {publish: {deny: [">"]}, subscribe: {allow: ["tm.ask.>"]}, allow_responses: true}}
  ]
}
"""  # noqa: E501 - as nats-server gets it
USERS = (
    NatsUser(
        name="scheduler",
        password="s3cret",
        publish=("tm.job.*.*.attempt_placed", "$JS.API.>"),
        subscribe=("_INBOX_scheduler.>",),
    ),
    NatsUser(
        name='a"b\\c', password="x", subscribe=("tm.ask.>",), allow_responses=True
    ),
)


def test_nats_is_told_exactly_this():
    text = nats_configuration(port=20001, monitor_port=20002, store=STORE, users=USERS)
    assert text == GOLDEN


def test_nats_has_no_monitor_unless_asked_for():
    text = nats_configuration(port=20001, monitor_port=None, store=STORE, users=USERS)
    assert text == GOLDEN.replace('http: "127.0.0.1:20002"\n', "")


def test_a_server_without_users_is_refused_because_it_lets_anyone_in():
    with pytest.raises(ValueError, match="let anyone in"):
        nats_configuration(port=20001, monitor_port=None, store=STORE, users=())


def test_a_user_with_no_subjects_is_denied_all_of_them():
    nobody = NatsUser(name="nobody", password="x")
    text = nats_configuration(
        port=20001, monitor_port=None, store=STORE, users=[nobody]
    )
    assert 'publish: {deny: [">"]}, subscribe: {deny: [">"]}' in text


def test_a_line_break_cannot_be_smuggled_into_the_configuration():
    with pytest.raises(ValueError, match="cannot be written"):
        quoted("x\nauthorization: {}")


def test_postgres_is_durable_and_listens_on_loopback_only():
    assert SETTINGS["fsync"] == "on"
    assert SETTINGS["listen_addresses"] == "127.0.0.1"


def test_postgres_settings_win_over_the_files_of_the_cluster():
    arguments = server_arguments(cluster=Path("/c"), port=20003, socket=Path("/s"))
    assert arguments[:2] == ("-D", "/c")
    assert "--port=20003" in arguments
    assert "--unix-socket-directories=/s" in arguments
    assert "--shared-buffers=16MB" in arguments


def test_postgres_without_room_for_a_socket_has_none():
    arguments = server_arguments(cluster=Path("/c"), port=20003, socket=None)
    assert "--unix-socket-directories=" in arguments


def test_a_cluster_trusts_nobody():
    arguments = initdb_arguments(cluster=Path("/c"), password_file=Path("/p"))
    assert "--auth=scram-sha-256" in arguments
    assert "--pwfile=/p" in arguments
    assert not any("trust" in argument for argument in arguments)


@pytest.mark.parametrize(("length", "fits"), [(92, True), (93, False)])
def test_a_socket_path_has_at_most_107_bytes(length: int, fits: bool):  # noqa: FBT001
    directory = Path("/" + "d" * (length - 1))
    assert fits_a_socket(directory) is fits


def test_a_socket_path_is_measured_in_bytes():
    assert fits_a_socket(Path("/" + "d" * 80))
    assert not fits_a_socket(Path("/" + "ö" * 80))


READY = "4711\n/data\n1712346200\n20003\n/s\n127.0.0.1\n  89  65\nready   \n"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (READY, PostmasterStatus(pid=4711, ready=True)),
        (
            READY.replace("ready   ", "starting"),
            PostmasterStatus(pid=4711, ready=False),
        ),
        ("4711\n/data\n", PostmasterStatus(pid=4711, ready=False)),
        ("", None),
    ],
)
def test_a_postmaster_says_when_it_is_ready(text: str, status: PostmasterStatus | None):
    assert parse_postmaster(text) == status


def test_a_connection_string_takes_any_name():
    text = dsn(user="a@b", password="p/w:?", port=20003, database="d e")
    assert text == (
        "postgresql://a%40b:p%2Fw%3A%3F@127.0.0.1:20003/d%20e?sslmode=disable"
    )


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("write: No space left on device", "free space on the disk of /data/nats"),
        ("bind: address already in use", "another port is chosen"),
        ("something new", "remove the cause it names"),
    ],
)
def test_a_failed_server_quotes_its_log_and_says_what_to_do(line: str, step: str):
    error = ServerFailedError(
        server="nats-server",
        what="ended with exit code 1",
        log=Path("/data/nats/log"),
        lines=["first", line],
    )
    assert step in str(error)
    assert str(error).endswith(f"/data/nats/log:\n  | first\n  | {line}")
