"""Fit the rational functions behind `fabric_kernels.maths.normal`; writes their coefficients.

Run: python kernels/constants/normal_quantile.py

The standard normal score z of a tail probability p is fitted in two parts: z = x R(c - x^2) with
x = 1/2 - p where c >= x^2, and z = sqrt(2) r - R(r - s) with r = sqrt(-log p) beyond, for
p >= 1e-38. In these variables no term cancels. The truth is a Newton solution of log Q(z) = log p
with 40 digits; the fit is Lawson's iteration (reweighted linear least squares of
numerator - truth * denominator), close to the minimax fit.
"""

from pathlib import Path

import mpmath
import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from scipy.special import ndtri_exp

CENTRE = 185 / 1024  # (1/2 - 0.07496)^2; this and the shift are exact in float32
SHIFT = 51 / 32
DEEPEST = 88.0  # -log p
TARGET = Path(__file__).parents[1] / "fabric_kernels/maths/normal_coefficients.py"


def score(minus_log_tail: float) -> float:
    """Score z with upper tail probability exp(-minus_log_tail), to full double precision."""
    goal = mpmath.mpf(minus_log_tail)
    z = mpmath.mpf(float(-ndtri_exp(-minus_log_tail)))
    for _ in range(3):
        tail = mpmath.erfc(z / mpmath.sqrt(2)) / 2
        density = mpmath.exp(-z * z / 2) / mpmath.sqrt(2 * mpmath.pi)
        z -= (mpmath.log(tail) + goal) * tail / -density
    return float(z)


def fit(
    nodes: np.ndarray, truth: np.ndarray, size: np.ndarray, top: float, degrees: tuple[int, int]
) -> tuple[list[float], list[float], float]:
    """Numerator, denominator (ascending, the latter starts at 1), largest error / size."""
    above, below = (
        np.polynomial.chebyshev.chebvander(2 * nodes / top - 1, degree) for degree in degrees
    )
    weight, denominator, best = np.ones_like(nodes), np.ones_like(nodes), None
    for _ in range(60):
        scale = np.sqrt(weight) / (size * denominator)
        system = np.hstack([above, -truth[:, None] * below[:, 1:]]) * scale[:, None]
        solution = np.linalg.lstsq(system, truth * below[:, 0] * scale, rcond=None)[0]
        numerator, rest = solution[: degrees[0] + 1], np.append(1.0, solution[degrees[0] + 1 :])
        denominator = below @ rest
        error = np.abs(above @ numerator / denominator - truth) / size
        if denominator.min() > 0 and (best is None or error.max() < best[2]):
            best = (numerator, rest, float(error.max()))
        weight = weight * np.clip(error / error.mean(), 1e-3, None)
        weight /= weight.sum()
    assert best is not None
    upper, lower = (
        Chebyshev(c, domain=[0, top]).convert(kind=Polynomial, domain=[-1, 1]).coef
        for c in best[:2]
    )
    return [float(c / lower[0]) for c in upper], [float(c / lower[0]) for c in lower], best[2]


def nodes_on(top: float, count: int = 800) -> np.ndarray:
    """Chebyshev points on [0, top]."""
    return top * (1 - np.cos(np.pi * (np.arange(count) + 0.5) / count)) / 2


def main() -> None:
    """Fit both parts for both precisions and write the coefficients."""
    mpmath.mp.dps = 40
    tail_top = float(np.sqrt(DEEPEST)) - SHIFT
    gaps, roots = nodes_on(CENTRE), nodes_on(tail_top) + SHIFT
    distances = np.sqrt(CENTRE - gaps)
    centre_truth = np.array([score(float(-mpmath.log(0.5 - mpmath.mpf(d)))) / d for d in distances])
    scores = np.array([score(float(r) ** 2) for r in roots])
    tail_truth = np.sqrt(2) * roots - scores
    lines = ['"""Coefficients written by kernels/constants/normal_quantile.py; do not edit."""', ""]
    lines += [f"CENTRE = {CENTRE}", f"SHIFT = {SHIFT}", f"DEEPEST = {DEEPEST}  # -log tail", ""]
    for bits, centre_degrees, tail_degrees in (("32", (3, 3), (3, 3)), ("64", (6, 6), (6, 5))):
        centre = fit(gaps, centre_truth, centre_truth, CENTRE, centre_degrees)
        tail = fit(roots - SHIFT, tail_truth, scores, tail_top, tail_degrees)
        lines.append(f"# float{bits}: relative error of the fit {centre[2]:.1e}, {tail[2]:.1e}")
        for name, part in (("CENTRE", centre), ("TAIL", tail)):
            for kind, values in (("NUMERATOR", part[0]), ("DENOMINATOR", part[1])):
                lines.append(f"{name}_{kind}_{bits} = (")
                lines += [f"    {v!r}," for v in values] + [")"]
        print(f"float{bits}: {centre[2]:.1e}, {tail[2]:.1e}")
    TARGET.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
