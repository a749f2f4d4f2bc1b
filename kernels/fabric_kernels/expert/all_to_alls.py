"""Four all-to-alls a layer of experts and microbatch."""

from fabric_kernels.calls import Call, Network, PartOf, scaled
from fabric_kernels.calls.placement import placement
from fabric_kernels.calls.straight import at_once, rails
from fabric_kernels.expert import Expert
from fabric_kernels.inputs import Experts, Job, Overlap, Reduction, ScaleUp, Transformer
from fabric_kernels.inputs.activations import activations, microbatches_passed
from fabric_kernels.operation import ALL_TO_ALL
from fabric_kernels.path import Path
from fabric_kernels.pattern import Traffic


def direct(
    job: Job,
    transformer: Transformer,
    experts: Experts,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    reduction: Reduction,
) -> Expert:
    """Every token goes straight to the GPU of its expert (`all_to_alls`, `at_once`)."""
    network = Network(path, scale_up, reduction)
    return all_to_alls(job, transformer, experts, overlap, network, at_once)


def relayed(
    job: Job,
    transformer: Transformer,
    experts: Experts,
    overlap: Overlap,
    path: Path,
    scale_up: ScaleUp,
    reduction: Reduction,
) -> Expert:
    """Tokens first move inside the NVLink domain to their rail (`all_to_alls`, `rails`)."""
    network = Network(path, scale_up, reduction)
    return all_to_alls(job, transformer, experts, overlap, network, rails)


def all_to_alls(
    job: Job,
    transformer: Transformer,
    experts: Experts,
    overlap: Overlap,
    network: Network,
    part_of: PartOf,
) -> Expert:
    """What expert parallelism exchanges in a step.

        calls = 4 expert_layers / pipeline_parallel x (microbatches + (pp - 1) / interleave)
        message = microbatch_size sequence_length active_experts width activation_element_size

    To the experts and back, forward and backward (Rajbhandari et al., DeepSpeed-MoE,
    arXiv:2201.05596, section 5), between the expert_parallel ranks that share a layer's experts.
    Tokens are taken to spread evenly: the slowest expert of an uneven gate is not in it.
    """
    calls = 4 * (experts.expert_layers / job.pipeline_parallel) * microbatches_passed(job)
    payload = experts.active_experts * activations(job, transformer) / overlap.buckets_expert
    place = placement(experts.expert_parallel, job.tensor_parallel, network.scale_up)
    call = Call("expert", ALL_TO_ALL, payload, experts.expert_parallel, place.domains, place.ranks)
    part = scaled(part_of(call, network), calls * overlap.buckets_expert)
    return Expert(
        expert_nvlink_transfer_time=part.nvlink_transfer,
        expert_fabric_transfer_time=part.fabric_transfer,
        expert_latency=part.latency,
        expert_fabric_hops=part.hops,
        traffic=(Traffic(part.patterns, job.gpus / experts.expert_parallel),),
    )
