"""A training of two steps in the plain layout, which notes each of its starts.

Told to `fail` it does so once, after one checkpoint; told to `tear`, in the middle of
the second one.
"""

import json
import os
import sys
from pathlib import Path

BYTES = 100
# blake3 of a hundred `w`
DIGEST = "b068a5156cb2b72abc49ba18500844ac501fc1714430e16e4ac9eafd88344aa0"


def save(folder: Path, step: int, *, written: int = BYTES) -> None:
    """Write one checkpoint, its manifest last, and say so."""
    target = folder / f"step-{step:06d}"
    target.mkdir(parents=True, exist_ok=True)
    (target / "weights").write_bytes(b"w" * written)
    manifest = {
        "format": "trainmaster-plain-v1",
        "step": step,
        "world_size": 1,
        "files": [{"path": "weights", "bytes": BYTES, "blake3": DIGEST}],
    }
    new = target / "manifest.new"
    new.write_text(json.dumps(manifest))
    new.rename(target / "manifest.json")
    sys.stdout.write(f"step: {step} loss: {1 / step}\n")
    sys.stdout.flush()


def note_start(rank: str, attempt: str) -> None:
    """Append one line, whole whatever others write meanwhile."""
    resumed = os.environ.get("TM_RESUME_STEP") or "0"
    with Path(os.environ["TM_OUTPUT_DIR"], "starts").open("a") as starts:
        starts.write(f"{attempt} {rank} {resumed}\n")


if __name__ == "__main__":
    my_rank, my_attempt = os.environ["RANK"], os.environ["TM_ATTEMPT"]
    note_start(my_rank, my_attempt)
    if my_rank == "0":
        directory = Path(os.environ["TM_CHECKPOINT_DIR"])
        how = sys.argv[1] if my_attempt == "1" else "pass"
        save(directory, 1)
        if how == "tear":
            save(directory, 2, written=BYTES - 1)
        if how != "pass":
            sys.exit(3)
        save(directory, 2)
