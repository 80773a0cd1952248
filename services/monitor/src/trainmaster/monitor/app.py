"""What the monitor is made of: READ FIRST.

    nodes, ranks ── telemetry (FastStream) ─ hearing, ear ──▶ facts ──▶ policy ──▶ log
                                              │  board ──▶ progress ──▶ STATUS
                                              └─ history ──▶ store (PostgreSQL)

`node_life` says which nodes there are, `findings` what is wrong with jobs, `rules`
reads step and loss from a line of output.
"""

from trainmaster.monitor.board import Board
from trainmaster.monitor.counts import counts
from trainmaster.monitor.history import History
from trainmaster.monitor.policy import Monitor
from trainmaster.monitor.progress import ProgressEffect
from trainmaster.monitor.store import MetricStore, tables
from trainmaster.monitor.telemetry import Parts, Telemetry
from trainmaster.runtime.service import Env, Service


def build(env: Env) -> Service:
    """Put the monitor together."""
    counted, board = counts(env.metrics.registry), Board()
    store = MetricStore(env.database)
    history = History(store, dropped=counted.dropped.labels("row"))
    effect = ProgressEffect(env.log, board, history, wake=env.facts.changed.set)
    telemetry = Telemetry(
        Parts(env=env, counts=counted, board=board, history=history, effect=effect)
    )
    return Service(
        policy=Monitor(),
        tables=tables(),
        effects=(effect,),
        tasks=(telemetry.run, history.run),
    )
