"""Owns the servers of a stack on one machine: nats-server and PostgreSQL.

Both come from wheels, listen on loopback only and live below one data directory, as
one user or as root::

    <data>/nats/      nats.conf  store/  log  pid  lock  port  [monitor_port]
    <data>/postgres/  data/  socket/  log  pid  lock  port  password
    <data>/{nats,postgres}.starting   held while one process starts a server

* Everything secret is 0600 in a 0700 directory. Passwords are random and stay in it.
* A server outlives whoever started it: a terminal's Ctrl-C does not reach it, and the
  next `start` adopts it, if it answers. `start` and `stop` may come from any process.
* The server itself holds `lock` (an inherited file lock). The kernel lets go of it when
  the last of its processes is gone, so two servers never work on one directory,
  whatever the pid file says.
* Ports are chosen once, outside the range the kernel hands out, and kept. When a
  stranger has taken one, another is chosen, kept, and reported in `Started`.
* `Watch` brings a server back that died under a running stack, on the same port.
* PostgreSQL refuses to run as root. Started by root it runs as an account of its own,
  see `account` and `home` for where its files then are.
"""

from trainmaster.runtime.embedded.errors import (
    ServerBusyError,
    ServerFailedError,
    ServerMissingError,
    ServerPlaceError,
)
from trainmaster.runtime.embedded.files import kept_password
from trainmaster.runtime.embedded.nats import EmbeddedNats
from trainmaster.runtime.embedded.nats_configuration import NatsUser, nats_configuration
from trainmaster.runtime.embedded.postgres import EmbeddedPostgres
from trainmaster.runtime.embedded.server import Started, Stopped
from trainmaster.runtime.embedded.watch import Watch

__all__ = [
    "EmbeddedNats",
    "EmbeddedPostgres",
    "NatsUser",
    "ServerBusyError",
    "ServerFailedError",
    "ServerMissingError",
    "ServerPlaceError",
    "Started",
    "Stopped",
    "Watch",
    "kept_password",
    "nats_configuration",
]
