"""Write what follows from the models and the `.proto` files: schemas, samples and more.

Without arguments it writes; with `--check` it only names what is out of date and fails.
Schemas and tables are made anew. Samples and field numbers are append-only: what was
published once stays, and a change of it is refused.
"""

import argparse
import sys
from pathlib import Path
from typing import Final

from tools.contract import asyncapi, models, numbers, protos, samples, schemas, tables

PROTO: Final = Path(__file__).parents[1] / "proto"


def main() -> int:
    """Write or check; the exit status says whether all is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument(
        "--proto", type=Path, default=PROTO, help="the contract's folder"
    )
    arguments = parser.parse_args()
    root: Path = arguments.proto
    try:
        wanted = generated(root)
    except (numbers.NumberChangedError, samples.MeaningChangedError) as error:
        return report([str(error)])
    stale = [path for path, text in sorted(wanted.items()) if text != read(path)]
    strays = sorted({*root.glob("schemas/*"), *root.glob("samples/*")} - wanted.keys())
    problems = [f"{path}: no such message, delete it" for path in strays]
    if arguments.check:
        problems += [f"{path}: out of date, run `make contract`" for path in stale]
    else:
        write({path: wanted[path] for path in stale})
    return report(problems)


def generated(root: Path) -> dict[Path, str]:
    """Every generated file with the text it should have."""
    written = protos.compiled(root)
    lock, readme = root / "numbers.json", root / "README.md"
    wanted = {
        lock: numbers.extended(read(lock), written),
        readme: tables.inserted(read(readme)),
        root / "asyncapi.json": asyncapi.rendered(),
    }
    for name, model in models.travelling().items():
        sample = root / "samples" / f"{name}.json"
        wanted[sample] = samples.extended(read(sample), model, written)
        wanted[root / "schemas" / f"{name}.json"] = schemas.rendered(model, written)
    return wanted


def read(path: Path) -> str:
    """Read a text that may not be there yet."""
    return path.read_text() if path.is_file() else ""


def write(texts: dict[Path, str]) -> None:
    """Put the texts in their places and say so."""
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        sys.stdout.write(f"wrote {path}\n")


def report(problems: list[str]) -> int:
    """Show every problem; the exit status is 1 when there is one."""
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
