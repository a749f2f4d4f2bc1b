"""Gaussian copula: correlated uniforms from independent ones."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import erfc

from fabric_kernels.maths.normal import normal_quantile
from fabric_kernels.uniform import Uniform


def correlated(
    uniforms: Sequence[Uniform], correlation: Sequence[Sequence[float]]
) -> list[Uniform]:
    """Uniforms whose normal scores have this correlation matrix.

        z' = L z,  L L^T = correlation (Cholesky), u' = Phi(z')

    A member depends on the members before it only, so the first one keeps its numbers. Source: the
    definition of the Gaussian copula (Nelsen, An Introduction to Copulas, 2006, 2.4).
    """
    factor = np.linalg.cholesky(np.asarray(correlation, np.float64))
    scores = [normal_quantile(u) for u in uniforms]
    members = [uniforms[0]]
    for row in range(1, len(uniforms)):
        score = jnp.zeros_like(scores[0])
        for weight, other in zip(factor[row, : row + 1].tolist(), scores, strict=False):
            score = score + weight * other
        members.append(_uniform_of(score, type(uniforms[row])))
    return members


def _uniform_of(score: Array, kind: type[Uniform]) -> Uniform:
    # the tail, never 1 - tail: both ends stay dense
    distance = 0.5 * erfc(jnp.abs(score) * 0.7071067811865476)
    return kind(score > 0, jnp.maximum(distance, 2.0**-65))
