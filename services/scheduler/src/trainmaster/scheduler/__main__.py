"""Run the scheduler alone: `python -m trainmaster.scheduler`."""

from trainmaster.runtime.service import main as run
from trainmaster.scheduler.app import build


def main() -> None:
    """Run until told to stop."""
    run("scheduler", build)


if __name__ == "__main__":
    main()
