"""A folded Clos network (fat tree) of one kind of switch."""

from fabric_kernels.inputs import Job, ScaleOut, ScaleUp, UpperTiers
from fabric_kernels.path import Path
from fabric_kernels.path.clos import Clos, clos
from fabric_kernels.path.fitting import clos_refusal
from fabric_kernels.path.ways import (
    Ways,
    bisection_fraction,
    cable_lengths,
    floor_of_hop,
    path_fraction,
    switches_passed,
    ways,
)
from fabric_kernels.placement import JobPlacement
from fabric_kernels.routing import Routing


def fat_tree(
    job: Job,
    scale_up: ScaleUp,
    scale_out: ScaleOut,
    upper_tiers: UpperTiers,
    placement: JobPlacement,
    routing: Routing,
) -> Path:
    """A fat tree of the fewest tiers that holds every GPU, one port a GPU.

        GPUs that L tiers of radix k hold = k (k / 2)^(L - 1)        (without oversubscription)
        hop = adapters + 2 T (cable 4.9 ns/m + error_correction) + (2 T - 1) switch
        rate = link_rate payload_fraction collision_efficiency / (o_1 ... o_(T-1))
        switches = N (2 L - 1) / k,  cables = N L        (of a full tree without oversubscription)

    Al-Fares, Loukissas, Vahdat, SIGCOMM'08. T is the tier over which a hop goes: L for the longest
    way, less as the placement has it (`ways`), and hop_latency is the mean over the hops. A ring
    passes all of them in turn, so the mean is its critical path; a tree or a barrier waits for the
    longest. o_i is the oversubscription of tier i, whose uplinks carry only the hops that leave it
    (`path_fraction`). Whole ports, and the rule for partly filled tiers: `clos`. More GPUs than
    four tiers hold: NaN.
    """
    network = clos(job.gpus, scale_out.switch_radix, scale_out, upper_tiers)
    found = ways(network, job.gpus, scale_up.nvlink_domain, placement)
    return path_over(network, found, (scale_out, upper_tiers), routing)


def path_over(
    network: Clos, found: Ways, build: tuple[ScaleOut, UpperTiers], routing: Routing
) -> Path:
    """What the ways through a network come to."""
    scale_out, upper_tiers = build
    port = scale_out.link_rate * scale_out.payload_fraction
    return Path(
        fabric_tiers=network.tiers,
        hop_latency=floor_of_hop(found.mean, scale_out, upper_tiers),
        longest_hop_latency=floor_of_hop(found.longest, scale_out, upper_tiers),
        gpu_rate=port * path_fraction(network, found, routing),
        switch_hops=switches_passed(found.mean),
        path_length=cable_lengths(found.mean, scale_out, upper_tiers),
        network_switches=network.switches,
        network_links=network.links,
        bisection_fraction=bisection_fraction(network, found),
    )


def fat_tree_refusal(job: Job, scale_out: ScaleOut, upper_tiers: UpperTiers) -> str | None:
    """Why no `fat_tree` holds the job, for records of plain numbers; None where one does."""
    return clos_refusal(float(job.gpus), float(scale_out.switch_radix), scale_out, upper_tiers)
