"""Owns the console's routes about teams, pools, tokens and refusals: they only read."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from trainmaster.console import office
from trainmaster.console.reading import Reading
from trainmaster.console.settings import REFUSALS_DEFAULT, REFUSALS_MAX
from trainmaster.core.rights import Action
from trainmaster.runtime.auth import Caller, needs


def add_office(
    router: APIRouter, reading: Reading, now: Callable[[], datetime]
) -> None:
    """Add the routes."""

    @router.get("/teams")
    async def teams(
        caller: Annotated[Caller, needs(Action.TEAM_VIEW)],
    ) -> JSONResponse:
        """List teams with their quotas, and whether they are paused."""
        rows = office.team_rows(reading.state(), caller, now())
        return JSONResponse({"teams": rows})

    @router.get("/pools")
    async def pools(
        caller: Annotated[Caller, needs(Action.POOL_VIEW)],
    ) -> JSONResponse:
        """List pools."""
        del caller  # pools are everybody's
        return JSONResponse({"pools": office.pool_rows(reading.state())})

    @router.get("/tokens")
    async def tokens(
        caller: Annotated[Caller, needs(Action.TOKEN_VIEW)],
    ) -> JSONResponse:
        """List tokens that were given out, also those that open nothing any more."""
        rows = office.token_rows(reading.state(), caller, now())
        return JSONResponse({"tokens": rows})

    @router.get("/refusals")
    async def refusals(
        caller: Annotated[Caller, needs(Action.REFUSAL_VIEW)],
        limit: Annotated[int, Query(ge=1, le=REFUSALS_MAX)] = REFUSALS_DEFAULT,
    ) -> JSONResponse:
        """List what was refused to whom, among the newest refusals."""
        entries = await reading.refusals(limit)
        return JSONResponse({"refusals": office.refusal_rows(entries, caller)})
