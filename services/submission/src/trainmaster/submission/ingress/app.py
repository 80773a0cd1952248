"""What the door for other systems is made of.

INGRESS ── listening (FastStream) ─▶ clerk ─ envelope ─ store ─▶ acts ─▶ desk ─▶ log
│ parking ─▶ PARKED          └ speech ─▶ METRICS
└ speech ─▶ REPLIES
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fastapi import APIRouter

from trainmaster.runtime.auth_routes import Guard
from trainmaster.runtime.parking import Parking
from trainmaster.runtime.service import Env
from trainmaster.runtime.sources import Sources
from trainmaster.submission.desk import Desk
from trainmaster.submission.ingress.acts import Acts
from trainmaster.submission.ingress.clerk import Clerk
from trainmaster.submission.ingress.http import parked_routes
from trainmaster.submission.ingress.listening import Listening, LoopSight, forget_old
from trainmaster.submission.ingress.speech import Speech
from trainmaster.submission.ingress.store import AnswerBook


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingress:
    """What submission runs and shows of it."""

    api: APIRouter
    tasks: tuple[Callable[[], Awaitable[None]], ...]


def build(env: Env, desk: Desk, *, guard: Guard) -> Ingress:
    """Put the door together."""
    speech = Speech(env.bus, service=env.name)
    parking = Parking(env.log, env.metrics, service=env.name)
    book, told = AnswerBook(env.database), env.settings.sources_file
    clerk = Clerk(
        acts=Acts(desk=desk, sight=LoopSight(env=env), speaker=speech),
        answers=book,
        sources=Sources(path=Path(told) if told else None),
        speaker=speech,
        parking=parking,
    )
    return Ingress(
        api=parked_routes(parking, guard=guard),
        tasks=(Listening(env=env, clerk=clerk).run, partial(forget_old, book)),
    )
