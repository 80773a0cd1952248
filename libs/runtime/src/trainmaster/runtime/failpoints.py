"""Named places where a test may kill, freeze or fail this process.

`TM_FAILPOINTS="scheduler.before_append=kill@3"` kills the process the third time the
scheduler comes there. Unset, a failpoint costs one dictionary look-up. Where several
tasks work at once, `hold` keeps one of them from going on while the others do: with
`launcher.before_publish=hold@2,launcher.after_publish=kill@1` exactly one of two orders
is out when the launcher dies.
"""

import asyncio
import os
import signal
from typing import Final

_VARIABLE: Final = "TM_FAILPOINTS"
_HOLD: Final = "hold"


class FailpointError(RuntimeError):
    """A failpoint with action `error` was reached."""


class Failpoints:
    """The armed failpoints of one process, parsed once from the environment."""

    def __init__(self, text: str) -> None:
        self._armed: dict[str, tuple[str, int]] = {}
        for item in filter(None, text.split(",")):
            name, _, rest = item.partition("=")
            action, _, count = rest.partition("@")
            self._armed[name] = (action, int(count or "1"))

    def reach(self, name: str) -> None:
        """Act if `name` is armed and its turn has come: kill, stop or error."""
        self._act(name, self._due(name))

    async def pass_by(self, name: str) -> None:
        """Act as `reach` does; armed with `hold`, this task never comes back."""
        action = self._due(name)
        if action == _HOLD:
            await asyncio.Event().wait()
        self._act(name, action)

    def _due(self, name: str) -> str:
        """Count a visit; the action if its turn has come, else nothing."""
        armed = self._armed.get(name)
        if armed is None:
            return ""
        action, left = armed
        if left > 1:
            self._armed[name] = (action, left - 1)
            return ""
        del self._armed[name]
        return action

    def _act(self, name: str, action: str) -> None:
        match action:
            case "":
                return
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            case _:
                raise FailpointError(name)


FAILPOINTS: Final = Failpoints(os.environ.get(_VARIABLE, ""))
