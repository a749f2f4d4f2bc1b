"""Print the polynomial behind `fabric_kernels.maths.lambert`, lowest power first.

Run: python kernels/constants/feedback_growth.py

G = exp(-W0(-c)) is analytic in q = 1 - sqrt(1 - e c) on [0, 1], its nearest singularity at q = 2,
so (G - 1) / q is interpolated in Chebyshev nodes of q; about q = 0 no term cancels.
"""

import mpmath
import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

DEGREE = 9


def growth_share(q: float) -> float:
    """(G - 1) / q, to full double precision."""
    with mpmath.workdps(40):
        root = 1 - mpmath.mpf(q)
        growth = mpmath.exp(-mpmath.lambertw(-(1 - root**2) / mpmath.e).real)
        return float((growth - 1) / q)


if __name__ == "__main__":
    fitted = Chebyshev.interpolate(
        lambda nodes: np.array([growth_share(q) for q in nodes]), DEGREE, domain=[0, 1]
    )
    for coefficient in fitted.convert(kind=Polynomial, domain=[-1, 1], window=[-1, 1]).coef:
        print(f"{coefficient:.10g}")
