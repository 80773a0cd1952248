"""Rows of the launcher's state."""

from trainmaster.core.ids import MemberKey
from trainmaster.launcher.settings import SERVICE, TABLES_VERSION
from trainmaster.launcher.state import Member, Members, State
from trainmaster.runtime.tables import Collection, Tables, jobs_of


def tables() -> Tables[State]:
    """Describe the rows."""
    return Tables(
        service=SERVICE,
        version=TABLES_VERSION,
        empty=State,
        collections=(
            jobs_of(lambda state: state.jobs),
            Collection("member", key=MemberKey, value=Member, of=_members),
        ),
    )


def _members(state: State) -> Members:
    return state.members
