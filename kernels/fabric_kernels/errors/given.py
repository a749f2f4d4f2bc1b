"""Loss rates as they are given."""

from typing import Annotated

import jax.numpy as jnp

from fabric_kernels.errors import Errors, MarginalPaths
from fabric_kernels.errors.population import marginal_links
from fabric_kernels.inputs import Job, LossProcess
from fabric_kernels.inputs.loss import MarginalLinks
from fabric_kernels.path import Path
from fabric_kernels.uniform import Uniform


def given(loss_process: LossProcess) -> Errors:
    """Packets are lost as often as `packet_loss_rate` says, on all paths alike.

    Whatever loses them, the wire or a full queue.
    """
    rate = loss_process.packet_loss_rate
    nothing = jnp.zeros_like(rate)
    return Errors(
        path_loss_rate=rate,
        marginal_path_loss_rate=nothing,
        marginal_links=nothing,
        marginal=(),
    )


def given_population(
    job: Job,
    path: Path,
    loss_process: LossProcess,
    population: MarginalLinks,
    marginal: Annotated[Uniform, "marginal"],
) -> Errors:
    """Loss rates as they are given, of ordinary paths and of those with a marginal link.

        path_loss_rate = packet_loss_rate,  marginal_path_loss_rate = marginal_packet_loss_rate

    The number of marginal links is drawn once for the cluster (`population`).
    """
    rate = population.marginal_packet_loss_rate
    number = marginal_links(job, path, population, marginal)
    return Errors(
        path_loss_rate=loss_process.packet_loss_rate,
        marginal_path_loss_rate=rate,
        marginal_links=number,
        marginal=(MarginalPaths(rate, number),),
    )
