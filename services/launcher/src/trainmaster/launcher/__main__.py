"""Run the launcher alone: `python -m trainmaster.launcher`."""

from trainmaster.launcher.app import build
from trainmaster.launcher.settings import SERVICE
from trainmaster.runtime.service import main as run


def main() -> None:
    """Run until told to stop."""
    run(SERVICE, build)


if __name__ == "__main__":
    main()
