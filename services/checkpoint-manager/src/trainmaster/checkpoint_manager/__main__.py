"""Run the checkpoint-manager alone: `python -m trainmaster.checkpoint_manager`."""

from trainmaster.checkpoint_manager.app import build
from trainmaster.runtime.service import main as run


def main() -> None:
    """Run until told to stop."""
    run("checkpoint-manager", build)


if __name__ == "__main__":
    main()
