"""Gauss quadrature for the law of Gumbel; writes fabric_kernels/maths/gumbel_nodes.py.

Run: python kernels/constants/gumbel_quadrature.py

With G = -log E, E exponential, G has the moments of log Gamma(1 - t); the nodes are the
eigenvalues of the Jacobi matrix made from them (Golub and Welsch, Math. Comp. 23, 1969), computed
with 120 digits because moments are badly conditioned. The nodes start at the one next to the mean
of G: the sums of squares are taken about the value there.
"""

from pathlib import Path

import mpmath

NODES = 8
TARGET = Path(__file__).parents[1] / "fabric_kernels/maths/gumbel_nodes.py"


def moments(count: int) -> list[mpmath.mpf]:
    """Raw moments of G from its cumulants euler, and (k - 1)! zeta(k) for k >= 2."""
    cumulants = [mpmath.mpf(0), mpmath.euler]
    cumulants += [mpmath.factorial(k - 1) * mpmath.zeta(k) for k in range(2, count)]
    raw = [mpmath.mpf(1)]
    for k in range(1, count):
        raw.append(
            mpmath.fsum(
                mpmath.binomial(k - 1, j - 1) * cumulants[j] * raw[k - j] for j in range(1, k + 1)
            )
        )
    return raw


def gauss(nodes: int) -> list[tuple[mpmath.mpf, mpmath.mpf]]:
    """Nodes and weights for G."""
    raw = moments(2 * nodes + 1)
    hankel = mpmath.matrix(nodes + 1, nodes + 1)
    for i in range(nodes + 1):
        for j in range(nodes + 1):
            hankel[i, j] = raw[i + j]
    factor = mpmath.cholesky(hankel).T
    jacobi = mpmath.matrix(nodes, nodes)
    for i in range(nodes):
        jacobi[i, i] = factor[i, i + 1] / factor[i, i]
        if i > 0:
            jacobi[i, i] -= factor[i - 1, i] / factor[i - 1, i - 1]
        if i + 1 < nodes:
            jacobi[i, i + 1] = jacobi[i + 1, i] = factor[i + 1, i + 1] / factor[i, i]
    values, vectors = mpmath.eigsy(jacobi)
    return [(values[i], vectors[0, i] ** 2) for i in range(nodes)]


def main() -> None:
    """Write the nodes as exponential variates E = exp(-G), with their weights."""
    mpmath.mp.dps = 120
    pairs = sorted(gauss(NODES), key=lambda pair: abs(pair[0] - mpmath.euler))
    lines = ['"""Nodes written by kernels/constants/gumbel_quadrature.py; do not edit."""', ""]
    for name, values in (
        ("EXPONENTIALS", [mpmath.exp(-node) for node, _ in pairs]),
        ("WEIGHTS", [weight for _, weight in pairs]),
    ):
        lines += [f"{name} = (", *(f"    {float(v)!r}," for v in values), ")"]
    TARGET.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
