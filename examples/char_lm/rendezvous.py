"""Owns how the ranks of one run find each other: all dial rank 0 until it answers."""

import contextlib
import os
import socket
import struct
import time
from dataclasses import dataclass
from typing import Final, Self

from collective import Collective, CollectiveError, receive_exactly

HELLO: Final = struct.Struct("!8sIII")  # magic, attempt, world size, rank
MAGIC: Final = b"char_lm1"
RETRY_SECONDS: Final = 0.05
HELLO_TIMEOUT_SECONDS: Final = 2.0
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


class RendezvousError(CollectiveError):
    """The ranks did not find each other."""

    def __init__(self, *, rank: int, where: str, why: str) -> None:
        """Say which rank waited where."""
        super().__init__(
            f"rank {rank} did not meet the others at {where}: {why}; "
            "check MASTER_ADDR, MASTER_PORT and the log of the missing rank",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendezvous:
    """Who this rank is and where rank 0 listens."""

    rank: int
    local_rank: int
    world_size: int
    address: str
    port: int
    attempt: int
    connect_timeout_seconds: float
    silence_timeout_seconds: float

    @classmethod
    def from_environment(
        cls, *, connect_timeout_seconds: float, silence_timeout_seconds: float
    ) -> Self:
        """Read what the launcher set; without it, this is the only rank."""
        env = os.environ
        rank, world_size = int(env.get("RANK", "0")), int(env.get("WORLD_SIZE", "1"))
        if not 0 <= rank < world_size:
            where, why = "start", f"RANK {rank} is not below WORLD_SIZE {world_size}"
            raise RendezvousError(rank=rank, where=where, why=why)
        return cls(
            rank=rank,
            local_rank=int(env.get("LOCAL_RANK", "0")),
            world_size=world_size,
            address=env.get("MASTER_ADDR", "127.0.0.1"),
            port=int(env.get("MASTER_PORT", "29500")),
            attempt=int(env.get("TM_ATTEMPT") or "0"),
            connect_timeout_seconds=connect_timeout_seconds,
            silence_timeout_seconds=silence_timeout_seconds,
        )

    @property
    def where(self) -> str:
        """The address of rank 0, for people."""
        return f"{self.address}:{self.port}"


def connect(rendezvous: Rendezvous) -> Collective:
    """Bring all ranks together, or raise at the deadline."""
    if rendezvous.world_size == 1:
        return Collective(0, 1, {})
    deadline = time.monotonic() + rendezvous.connect_timeout_seconds
    if rendezvous.rank == 0:
        links = _accept_all(rendezvous, deadline)
    else:
        links = {0: _dial(rendezvous, deadline)}
    for link in links.values():
        _prepare(link, rendezvous.silence_timeout_seconds)
    return Collective(rendezvous.rank, rendezvous.world_size, links)


def _accept_all(rendezvous: Rendezvous, deadline: float) -> dict[int, socket.socket]:
    links: dict[int, socket.socket] = {}
    with _listen(rendezvous) as listener:
        while len(links) < rendezvous.world_size - 1:
            listener.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                link, _ = listener.accept()
            except TimeoutError:
                missing = sorted(set(range(1, rendezvous.world_size)) - set(links))
                raise _not_met(rendezvous, f"ranks {missing} did not come") from None
            peer = _read_hello(link, rendezvous)
            if peer is None:
                link.close()  # a port scan, or a rank of another attempt
            elif peer in links:
                raise _not_met(rendezvous, f"two processes say they are rank {peer}")
            else:
                links[peer] = link
    return links


def _listen(rendezvous: Rendezvous) -> socket.socket:
    # Other hosts may know this one under an address that it does not know itself,
    # so only a loopback address is taken literally.
    local = rendezvous.address in LOOPBACK
    family = socket.AF_INET6 if ":" in rendezvous.address else socket.AF_INET
    host = rendezvous.address if local else ""
    try:
        return socket.create_server((host, rendezvous.port), family=family)
    except OSError as error:
        raise _not_met(rendezvous, f"cannot listen: {error}") from error


def _read_hello(link: socket.socket, rendezvous: Rendezvous) -> int | None:
    link.settimeout(HELLO_TIMEOUT_SECONDS)
    hello = bytearray(HELLO.size)
    try:
        receive_exactly(link, memoryview(hello))
    except OSError:
        return None
    magic, attempt, world_size, peer = HELLO.unpack(hello)
    ours = (MAGIC, rendezvous.attempt, rendezvous.world_size)
    known = (magic, attempt, world_size) == ours and 0 < peer < world_size
    return peer if known else None


def _dial(rendezvous: Rendezvous, deadline: float) -> socket.socket:
    hello = HELLO.pack(
        MAGIC, rendezvous.attempt, rendezvous.world_size, rendezvous.rank
    )
    why = "no try was made"
    while (left := deadline - time.monotonic()) > 0:
        try:
            link = socket.create_connection(
                (rendezvous.address, rendezvous.port), timeout=left
            )
        except OSError as error:
            why = str(error)
            time.sleep(RETRY_SECONDS)
            continue
        # While nobody listens, a local connect can meet itself: the kernel may give
        # it the very port it dials.
        if link.getsockname() != link.getpeername():
            with contextlib.suppress(OSError):  # the first exchange reports a loss
                link.sendall(hello)
            return link
        link.close()
    raise _not_met(rendezvous, why)


def _prepare(link: socket.socket, silence_timeout_seconds: float) -> None:
    link.settimeout(silence_timeout_seconds)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A host that lost power sends no goodbye; probes notice within 15 seconds.
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 5)


def _not_met(rendezvous: Rendezvous, why: str) -> RendezvousError:
    return RendezvousError(rank=rendezvous.rank, where=rendezvous.where, why=why)
