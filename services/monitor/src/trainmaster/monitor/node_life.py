"""Whether a node is there: registered, lost, back again, drained. Pure.

Only a heartbeat that came registers a node; only silence that was heard loses one.
Times nobody listened in are no silence, and the silence of a whole pool at once is
first of all a question about the bus.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from trainmaster.core.decision import Decision, Write
from trainmaster.core.facts import Drained, NodeFact, NodeLost, NodeRegistered
from trainmaster.core.ids import NodeKey
from trainmaster.core.moment import Moment
from trainmaster.core.nodes import Node
from trainmaster.monitor.observed import Beat, Heard
from trainmaster.monitor.settings import (
    FACTS_SECONDS,
    POOL_SILENCE_FACTOR,
    SILENCE_BEATS,
    SILENCE_SECONDS,
)
from trainmaster.monitor.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """How long one registered node may go on being silent."""

    key: NodeKey
    since: datetime
    seconds: float


def decide_nodes(state: State, heard: Heard | None, now: Moment) -> Decision:
    """Say what became of nodes, at most one fact for each."""
    facts: dict[NodeKey, NodeFact] = dict(_drained(state))
    if heard is not None and heard is not state.judged:
        as_heard = Moment(at=min(now.at, heard.at), blind=now.blind)
        silences = _silences(state, heard)
        judged = {
            **dict(_lost(silences, state, as_heard)),
            **dict(_registered(state, heard, as_heard)),
        }
        facts |= judged
        if not judged:
            state.judged = heard  # nothing new can be said before more is heard
    return Decision(groups=tuple((Write(key=k, event=f),) for k, f in facts.items()))


# --------------------------------------------------------------------- registered


def _registered(
    state: State, heard: Heard, now: Moment
) -> Iterator[tuple[NodeKey, NodeFact]]:
    for key, beat in heard.beats.items():
        if _to_register(state.nodes.get(key, Node()), beat, now):
            said = beat.said
            yield (
                key,
                NodeRegistered(
                    capacity=said.capacity,
                    facts=said.facts,
                    boot_id=said.boot_id,
                    address=said.address,
                ),
            )


def _to_register(node: Node, beat: Beat, now: Moment) -> bool:
    """Tell whether a heartbeat says what the log does not say yet."""
    if now.overdue(beat.at, _patience(beat)):
        return False
    if node.lost_at is not None:
        return beat.at > node.lost_at
    if node.registered_at is None:
        return True
    said = beat.said
    if beat.at <= node.registered_at:
        return False  # it may be older than what the log says
    known = (node.capacity, node.boot_id, node.address)
    if known != (said.capacity, said.boot_id, said.address):
        return True
    return node.facts != said.facts and now.overdue(node.registered_at, FACTS_SECONDS)


def _patience(beat: Beat | None) -> float:
    beats = SILENCE_BEATS * beat.said.interval_seconds if beat else 0.0
    return max(SILENCE_SECONDS, beats)


# --------------------------------------------------------------------------- lost


def _silences(state: State, heard: Heard) -> list[Silence]:
    """List since when each node that should beat has been silent."""
    found: list[Silence] = []
    for key, node in state.nodes.items():
        if node.registered_at is None or node.lost_at is not None:
            continue
        beat = heard.beats.get(key)
        times = [node.registered_at, heard.since]
        times += [beat.at] if beat else []
        times += [heard.resumed[key.pool]] if key.pool in heard.resumed else []
        found.append(Silence(key=key, since=max(times), seconds=_patience(beat)))
    return found


def _lost(
    silences: list[Silence], state: State, now: Moment
) -> Iterator[tuple[NodeKey, NodeFact]]:
    audible = {s.key.pool for s in silences if not now.overdue(s.since, s.seconds)}
    for silence in silences:
        factor = 1 if silence.key.pool in audible else POOL_SILENCE_FACTOR
        if now.overdue(silence.since, silence.seconds * factor):
            yield (
                silence.key,
                NodeLost(
                    silent_seconds=(now.at - silence.since).total_seconds(),
                    boot_id=state.nodes[silence.key].boot_id,
                ),
            )


# ------------------------------------------------------------------------- drained


def _drained(state: State) -> Iterator[tuple[NodeKey, NodeFact]]:
    draining = {k for k, n in state.nodes.items() if n.draining and not n.drained}
    if not draining:
        return
    held = {
        NodeKey(job.pool, slot.node)
        for job in state.jobs.values()
        for slots in job.unreclaimed.values()
        for slot in slots
    }
    for key in sorted(draining - held):
        yield key, Drained()
