"""How many links of a cluster are marginal."""

from jax import Array

from fabric_kernels.inputs import Job
from fabric_kernels.inputs.loss import MarginalLinks
from fabric_kernels.maths.poisson import poisson_quantile
from fabric_kernels.path import Path
from fabric_kernels.uniform import Uniform


def marginal_links(job: Job, path: Path, population: MarginalLinks, u: Uniform) -> Array:
    """Number of marginal links that flows of the job cross, drawn for the cluster.

        Poisson(gpus x fabric_tiers x marginal_link_share)

    A full tree has a link of every tier for each GPU, and each carries about one flow. Poisson
    for the binomial: its distribution is at most one share off (Le Cam). Where packets are
    sprayed, a link between switches serves all flows a little: then only the share of the links
    at the GPUs counts.
    """
    expected = job.gpus * path.fabric_tiers * population.marginal_link_share
    return poisson_quantile(expected, u)
