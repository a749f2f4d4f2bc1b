"""Loss rates as they are given."""

from typing import Annotated

from fabric_kernels.errors import Errors
from fabric_kernels.errors.population import marginal_links
from fabric_kernels.inputs import Job, LossProcess
from fabric_kernels.inputs.loss import MarginalLinks
from fabric_kernels.path import Path
from fabric_kernels.uniform import Uniform


def given(
    job: Job,
    path: Path,
    loss_process: LossProcess,
    population: MarginalLinks,
    marginal: Annotated[Uniform, "marginal"],
) -> Errors:
    """Packets are lost as often as `packet_loss_rate` says.

        path_loss_rate = packet_loss_rate,  marginal_path_loss_rate = marginal_packet_loss_rate

    Whatever loses them, the wire or a full queue; the number of marginal links is drawn.
    """
    return Errors(
        path_loss_rate=loss_process.packet_loss_rate,
        marginal_path_loss_rate=population.marginal_packet_loss_rate,
        marginal_links=marginal_links(job, path, population, marginal),
    )
