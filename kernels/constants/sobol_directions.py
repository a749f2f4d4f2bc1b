"""Write the table of Sobol' direction numbers that `fabricarlo.sampling.joe_kuo` holds.

Source: the file new-joe-kuo-6.21201 of S. Joe and F. Y. Kuo, "Constructing Sobol sequences with
better two-dimensional projections", SIAM Journal on Scientific Computing 30, 2635-2654, 2008, as
SciPy packages it. Run: python sobol_directions.py > .../sampling/joe_kuo.py
"""

from pathlib import Path

import numpy as np
import scipy.stats

DIMENSIONS = 96
HEADER = '''\
"""Primitive polynomials and initial numbers of the Sobol' sequence, one row a dimension.

S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections", SIAM
Journal on Scientific Computing 30, 2635-2654, 2008; written by kernels/constants/
sobol_directions.py. A polynomial is the integer of its coefficients, highest power first; the
first dimension, van der Corput's, has none.
"""

JOE_KUO: tuple[tuple[int, tuple[int, ...]], ...] = (
'''


def rows() -> list[tuple[int, tuple[int, ...]]]:
    """(polynomial, initial numbers) of every dimension, as many numbers as the degree."""
    file = Path(scipy.stats.__file__).with_name("_sobol_direction_numbers.npz")
    with np.load(file) as table:
        polynomials, initial = table["poly"][:DIMENSIONS], table["vinit"][:DIMENSIONS]
    degrees = [int(polynomial).bit_length() - 1 for polynomial in polynomials]
    return [
        (int(polynomial), tuple(int(number) for number in numbers[:degree]))
        for polynomial, numbers, degree in zip(polynomials, initial, degrees, strict=True)
    ]


def main() -> None:
    """Print the module."""
    print(HEADER + "".join(f"    {row!r},\n" for row in rows()) + ")")


if __name__ == "__main__":
    main()
