"""Run the console alone: `python -m trainmaster.console`."""

from trainmaster.console.app import build
from trainmaster.runtime.service import main as run


def main() -> None:
    """Run until told to stop."""
    run("console", build)


if __name__ == "__main__":
    main()
