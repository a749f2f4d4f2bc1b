"""Correlations of draws: Gaussian copulas."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fabricarlo.spec.structure import CopulaBlock
from fabricarlo.sweep import Copula
from fabricarlo.written.document import Document, Key
from fabricarlo.written.settings import chosen

_SMALLEST_PIVOT = 1e-3  # below it a member is a function of the others in float32


def copulas(
    document: Document, blocks: Sequence[CopulaBlock], drawn: Mapping[str, Any]
) -> tuple[Copula, ...]:
    """The copulas of a spec, without those that were refused; `drawn` has the names of draws."""
    taken: set[str] = set()
    found = []
    for index, block in enumerate(blocks):
        key: Key = ("copula", index)
        if _members_fit(document, key, block, drawn, taken):
            matrix = _matrix(document, (*key, "correlation"), block)
            if matrix is not None:
                found.append(Copula(tuple(block.draws), matrix))
        taken.update(name for name in block.draws if isinstance(name, str))
    return tuple(found)


def _members_fit(
    document: Document, key: Key, block: CopulaBlock, drawn: Mapping[str, Any], taken: set[str]
) -> bool:
    names = chosen(document, (*key, "draws"), block.draws, "a draw of this spec", drawn)
    for name in names:
        if name in taken:
            document.refuse((*key, "draws"), f"{name} is in another copula; merge the two.")
    if len(block.draws) < 2:
        document.refuse((*key, "draws"), "needs at least two draws.")
    return len(names) == len(block.draws) >= 2


def _matrix(
    document: Document, key: Key, block: CopulaBlock
) -> tuple[tuple[float, ...], ...] | None:
    size = len(block.draws)
    written: Any = block.correlation
    if isinstance(written, int | float) and not isinstance(written, bool):
        written = [[1.0 if i == j else written for j in range(size)] for i in range(size)]
    rows = written if isinstance(written, list) else []
    if len(rows) != size or any(not isinstance(r, list) or len(r) != size for r in rows):
        document.refuse(key, f"is neither a number nor a matrix of {size} rows of {size} numbers.")
        return None
    cells = [cell for row in rows for cell in row]
    if any(isinstance(c, bool) or not isinstance(c, int | float) for c in cells):
        document.refuse(key, "holds something that is no number.")
        return None
    # a whole number of YAML may be larger than any float
    matrix = np.array([[max(-1e6, min(1e6, cell)) for cell in row] for row in rows], dtype=float)
    problem = _problem(matrix)
    if problem:
        document.refuse(key, problem)
        return None
    return tuple(tuple(float(cell) for cell in row) for row in matrix)


def _problem(matrix: np.ndarray) -> str | None:
    """What keeps a matrix from being a correlation."""
    if not np.all(np.isfinite(matrix)) or np.any(np.abs(matrix) > 1):
        return "has a number outside -1 to 1."
    if not np.array_equal(matrix, matrix.T):
        return "is not symmetric."
    if np.any(np.diag(matrix) != 1):
        return "has a diagonal that is not 1."
    try:
        pivots = np.diag(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        pivots = np.zeros(1)
    if np.min(pivots) < _SMALLEST_PIVOT:
        lowest = round(float(np.min(np.linalg.eigvalsh(matrix))), 6) + 0.0
        return (
            f"is not positive definite (smallest eigenvalue {lowest:.3g}); "
            "no variables have these correlations, make them weaker."
        )
    return None
