"""Runs submission alone: `python -m trainmaster.submission`."""

from trainmaster.runtime.service import main as run
from trainmaster.submission.app import build


def main() -> None:
    """Run until SIGTERM."""
    run("submission", build)


if __name__ == "__main__":
    main()
