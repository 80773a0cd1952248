"""What the simulation itself expects of how jobs ended."""

from trainmaster.core.envelope import Entry
from trainmaster.core.events import Submitted, Succeeded
from trainmaster.core.ids import Key
from trainmaster.core.notes import CheckpointVerified


def unproven(entries: list[Entry]) -> list[str]:
    """Name the successes that rest on nothing the job itself has saved."""
    jobs: dict[Key, int] = {}
    proven: dict[Key, int] = {}
    found: list[str] = []
    for entry in entries:
        match entry.event:
            case Submitted(spec=spec):
                jobs[entry.key] = spec.success.step
            case CheckpointVerified(attempt=attempt, step=step) if attempt:
                proven[entry.key] = max(step, proven.get(entry.key, 0))
            case Succeeded() if proven.get(entry.key, 0) < jobs[entry.key]:
                found.append(f"{entry.key} succeeded at {proven.get(entry.key, 0)}")
            case _:
                pass
    return found


def succeeded(entries: list[Entry]) -> int:
    """Count the jobs that succeeded."""
    return sum(isinstance(entry.event, Succeeded) for entry in entries)
