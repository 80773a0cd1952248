"""Run the reaper alone: `python -m trainmaster.reaper`."""

from trainmaster.reaper.app import build
from trainmaster.runtime.service import main as run


def main() -> None:
    """Run until told to stop."""
    run("reaper", build)


if __name__ == "__main__":
    main()
