"""Loss rates from what forward error correction cannot repair."""

from typing import Annotated

import jax.numpy as jnp
from jax import Array

from fabric_kernels.errors import Errors, MarginalPaths
from fabric_kernels.errors.population import marginal_links
from fabric_kernels.inputs import Job
from fabric_kernels.inputs.loss import BitErrors, MarginalLinks
from fabric_kernels.maths.codeword import any_of, uncorrectable_codeword
from fabric_kernels.path import Path
from fabric_kernels.uniform import Uniform


def forward_error_correction(
    job: Job,
    path: Path,
    bit_errors: BitErrors,
    population: MarginalLinks,
    marginal: Annotated[Uniform, "marginal"],
) -> Errors:
    """Packets are lost where KP4, RS(544, 514), cannot repair one of their codewords.

        frame = 1 - (1 - uncorrectable(bit_error_rate))^frame_codewords
        path_loss_rate = 1 - (1 - frame)^(2 fabric_tiers)

    Every link of the way corrects for itself, 2 for each tier; on a marginal path one of them is
    marginal. Independent bit errors: bursts of an equaliser make it worse (`maths.codeword`).
    """
    links = 2 * path.fabric_tiers
    ordinary = frame_loss(bit_errors.bit_error_rate, bit_errors.frame_codewords, links)
    bad = frame_loss(
        bit_errors.marginal_bit_error_rate, bit_errors.frame_codewords, jnp.ones_like(links)
    )
    others = frame_loss(bit_errors.bit_error_rate, bit_errors.frame_codewords, links - 1)
    rate = jnp.minimum(bad + others * (1 - bad), 0.9)
    number = marginal_links(job, path, population, marginal)
    return Errors(
        path_loss_rate=jnp.minimum(ordinary, 0.9),
        marginal_path_loss_rate=rate,
        marginal_links=number,
        marginal=(MarginalPaths(rate, number),),
    )


def frame_loss(bit_error_rate: Array, codewords: Array, links: Array) -> Array:
    """Probability that a frame of this many codewords is lost on this many links."""
    return any_of(any_of(uncorrectable_codeword(bit_error_rate), codewords), links).probability
