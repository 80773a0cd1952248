"""A training of two steps in the plain layout; told to fail, it does so once."""

import json
import os
import sys
from pathlib import Path


def save(folder: Path, step: int) -> None:
    """Write one checkpoint, its manifest last."""
    target = folder / f"step-{step:06d}"
    target.mkdir(parents=True, exist_ok=True)
    (target / "weights").write_bytes(b"w" * 100)
    manifest = {
        "format": "trainmaster-plain-v1",
        "step": step,
        "world_size": 1,
        "files": [{"path": "weights", "bytes": 100, "blake3": DIGEST}],
    }
    new = target / "manifest.new"
    new.write_text(json.dumps(manifest))
    new.rename(target / "manifest.json")


# blake3 of a hundred `w`
DIGEST = "b068a5156cb2b72abc49ba18500844ac501fc1714430e16e4ac9eafd88344aa0"

if __name__ == "__main__":
    rank, attempt = os.environ["RANK"], os.environ["TM_ATTEMPT"]
    if rank == "0":
        directory = Path(os.environ["TM_CHECKPOINT_DIR"])
        save(directory, 1)
        if sys.argv[1] == "fail" and attempt == "1":
            sys.exit(3)
        save(directory, 2)
