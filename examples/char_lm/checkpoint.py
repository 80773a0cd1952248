"""Owns the checkpoint on disk: whole if it has a manifest, worthless if not.

    step-000100/weights.npy       all weights, one flat vector
    step-000100/adam-first.npy    moments of the optimizer, laid out like the weights
    step-000100/adam-second.npy
    step-000100/state.json        schedule, data order, random states, layout, settings
    step-000100/manifest.json     size and BLAKE3 of each file, written last

Every file is written beside its name, synced and renamed. Whatever kills the writer,
a file with its final name is complete, and so is a folder with a manifest.
"""

import io
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from blake3 import blake3
from errors import CannotGoOnError
from numpy.typing import NDArray

FORMAT: Final = "trainmaster-plain-v1"
MANIFEST: Final = "manifest.json"
STATE: Final = "state.json"


class CheckpointError(CannotGoOnError):
    """A checkpoint cannot be written or used."""

    def __init__(self, *, path: Path, why: str) -> None:
        """Say which one and why."""
        super().__init__(f"checkpoint {path}: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Everything that decides the rest of the run."""

    step: int
    world_size: int
    state: Mapping[str, Any]
    vectors: Mapping[str, NDArray[np.float32]]


def save(root: Path, checkpoint: Checkpoint) -> Path:
    """Write a checkpoint durably and return its folder."""
    folder = root / f"step-{checkpoint.step:06d}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # An older try at this step must not vouch for a mixture of its files and ours.
        (folder / MANIFEST).unlink(missing_ok=True)
        _sync_folder(folder)
        contents = {STATE: _json_bytes(checkpoint.state)} | {
            f"{name}.npy": _npy_bytes(vector)
            for name, vector in checkpoint.vectors.items()
        }
        for name, content in contents.items():
            write_durably(folder / name, content)
        write_durably(folder / MANIFEST, _json_bytes(_manifest(checkpoint, contents)))
        _sync_folder(root)
    except OSError as error:
        why = f"not saved, training can go on from the one before: {error}"
        raise CheckpointError(path=folder, why=why) from error
    return folder


def load(folder: Path) -> Checkpoint:
    """Read a checkpoint, believing only what its manifest vouches for."""
    manifest = _read_manifest(folder)
    contents = {
        entry["path"]: _read_checked(folder, entry) for entry in manifest["files"]
    }
    if STATE not in contents:
        raise CheckpointError(path=folder, why=f"its manifest lists no {STATE}")
    return Checkpoint(
        step=manifest["step"],
        world_size=manifest["world_size"],
        state=json.loads(contents[STATE]),
        vectors={
            name.removesuffix(".npy"): np.load(io.BytesIO(content), allow_pickle=False)
            for name, content in contents.items()
            if name.endswith(".npy")
        },
    )


def _manifest(checkpoint: Checkpoint, contents: Mapping[str, bytes]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "step": checkpoint.step,
        "world_size": checkpoint.world_size,
        "files": [
            {
                "path": name,
                "bytes": len(content),
                "blake3": blake3(content).hexdigest(),
            }
            for name, content in contents.items()
        ],
    }


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        why = f"no {MANIFEST}: its save never finished; resume from an earlier one"
        raise CheckpointError(path=folder, why=why) from None
    except (OSError, ValueError) as error:
        raise CheckpointError(path=folder, why=f"{MANIFEST}: {error}") from error
    if manifest.get("format") != FORMAT:
        why = f"format {manifest.get('format')!r} is not {FORMAT!r}"
        raise CheckpointError(path=folder, why=why)
    return manifest


def _read_checked(folder: Path, entry: Mapping[str, Any]) -> bytes:
    name: str = entry["path"]
    try:
        content = (folder / name).read_bytes()
    except OSError as error:
        raise CheckpointError(path=folder, why=str(error)) from error
    if len(content) != entry["bytes"]:
        why = f"{name} has {len(content):,} of {entry['bytes']:,} bytes"
        raise CheckpointError(path=folder, why=why)
    if blake3(content).hexdigest() != entry["blake3"]:
        why = f"{name} is not what was saved: its BLAKE3 differs from the manifest"
        raise CheckpointError(path=folder, why=why)
    return content


def write_durably(path: Path, content: bytes) -> None:
    """Make the file appear under its name whole, or not at all."""
    draft = path.with_name(f".{path.name}.tmp")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _npy_bytes(vector: NDArray[np.float32]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, vector.astype("<f4", copy=False), allow_pickle=False)
    return buffer.getvalue()


def _json_bytes(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, indent=1).encode() + b"\n"
