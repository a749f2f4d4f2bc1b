"""Reference tables: numbers computed by programs that share no code with this project."""

import csv
import os
from pathlib import Path

import pytest

_BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[2] / "shared" / "reference"


def reference_path(name: str) -> Path:
    """Path of a reference file; skips the running test where the file is not at hand.

    The folder is `../shared/reference` beside the repository, or FABRICARLO_REFERENCE.
    """
    folder = Path(os.environ.get("FABRICARLO_REFERENCE") or _BESIDE_THE_REPOSITORY)
    path = folder / name
    if not path.is_file():
        pytest.skip(f"no reference table {path}: set FABRICARLO_REFERENCE to the folder of tables")
    return path


def reference_table(name: str) -> list[dict[str, str]]:
    """Rows of a reference CSV, every cell as text; lines that start with # are comments."""
    with reference_path(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))
