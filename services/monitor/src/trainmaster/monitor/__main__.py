"""Run the monitor alone: `python -m trainmaster.monitor`."""

from trainmaster.monitor.app import build
from trainmaster.runtime.service import main as run


def main() -> None:
    """Run until told to stop."""
    run("monitor", build)


if __name__ == "__main__":
    main()
