"""A transformer with experts, of which each token visits a few."""

import jax.numpy as jnp

from fabric_kernels.inputs import Experts, Gpu, Job, ScaleUp
from fabric_kernels.workload import Message, Workload
from fabric_kernels.workload.split import divided, nearest_multiples, split, split_refusal


def mixture_of_experts(job: Job, gpu: Gpu, experts: Experts) -> Workload:
    """A mixture of experts, whose experts are shared out over part of the data-parallel ranks.

        active_parameters = parameters (1 - share + share active_experts / experts)
        dense payload = parameters (1 - share) / (tensor pipeline) x element
        expert payload = parameters share / (expert tensor pipeline) x element

    Times and tokens as in `split`. The gradients of the dense part go over all data_parallel
    ranks, those of an expert over the data_parallel / expert_parallel ranks that hold it
    (Rajbhandari et al., DeepSpeed-MoE, arXiv:2201.05596, section 5); `payload` is their sum. Tokens
    are taken to spread evenly over the experts. expert_parallel must divide data_parallel: NaN
    elsewhere.
    """
    share = experts.expert_parameter_share
    active = job.parameters * (1 - share + share * (experts.active_experts / experts.experts))
    parts = split(job, gpu, active)
    replicas = divided(parts.data_parallel, experts.expert_parallel)
    # NaN where the experts do not divide the ranks
    held = parts.data_parallel / replicas
    dense, expert = 1 - share, share / experts.expert_parallel
    kept = dense + expert
    return Workload(
        data_parallel=parts.data_parallel,
        concurrent_groups=parts.shards,
        payload=job.parameters * kept / parts.shards * job.gradient_element_size,
        active_parameters=active,
        tokens_per_step=parts.tokens,
        full_clock_compute_time=parts.compute_time,
        bubble_share=parts.bubble_share,
        messages=(
            Message(dense / kept, jnp.ones_like(held), job.tensor_parallel),
            Message(expert / kept, held, job.tensor_parallel * experts.expert_parallel),
        ),
    )


def mixture_of_experts_refusal(job: Job, scale_up: ScaleUp, experts: Experts) -> str | None:
    """Why a mixture of experts cannot be split like this; None where it can."""
    if (refusal := split_refusal(job, scale_up)) is not None:
        return refusal
    active, every = float(experts.active_experts), float(experts.experts)
    if active > every:
        return f"active_experts is {active:g} of {every:g} experts: set it to {every:g} or less."
    ranks = float(job.gpus) / (float(job.tensor_parallel) * float(job.pipeline_parallel))
    share = float(experts.expert_parallel)
    if ranks % share:
        fitting = [n for n in range(1, int(ranks) + 1) if ranks % n == 0]
        near = sorted(fitting, key=lambda n: abs(n - share))[:2]
        return (
            f"expert_parallel is {share:.0f} with {ranks:.0f} data-parallel ranks: it must divide "
            f"them; set expert_parallel to {' or '.join(map(str, sorted(near)))}, or data_parallel "
            f"to {nearest_multiples(ranks, share)}."
        )
    return None
