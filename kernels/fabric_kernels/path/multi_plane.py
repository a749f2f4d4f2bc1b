"""Several equal fat trees side by side, one for each lane of a GPU's port."""

import dataclasses

from fabric_kernels.inputs import Job, Planes, ScaleOut, ScaleUp, UpperTiers
from fabric_kernels.path import Path
from fabric_kernels.path.clos import clos
from fabric_kernels.path.fat_tree import path_over
from fabric_kernels.path.fitting import clos_refusal
from fabric_kernels.path.ways import ways
from fabric_kernels.placement import JobPlacement
from fabric_kernels.routing import Routing


def multi_plane(
    job: Job,
    scale_up: ScaleUp,
    scale_out: ScaleOut,
    upper_tiers: UpperTiers,
    planes: Planes,
    placement: JobPlacement,
    routing: Routing,
) -> Path:
    """A port split over `planes` networks, of switches that have so many times more ports.

        radix of a plane = switch_radix planes,  rate of a lane = link_rate / planes
        switches, cables = planes x those of one plane

    800G as 8 x 100G turns a switch of 64 ports into one of 512, and two tiers hold 512 x 256 =
    131,072 GPUs, as OpenAI, AMD, Broadcom, Intel, Microsoft and NVIDIA say of MRC (Open Compute
    Project, May 2026). Packets are sprayed over the planes evenly, so a GPU has the rate of all
    its lanes; a lost plane would take its share of it. A cable is one lane. One plane: a fat tree.
    """
    radix = scale_out.switch_radix * planes.planes
    network = clos(job.gpus, radix, scale_out, upper_tiers)
    found = ways(network, job.gpus, scale_up.nvlink_domain, placement)
    path = path_over(network, found, (scale_out, upper_tiers), routing)
    return dataclasses.replace(
        path,
        network_switches=path.network_switches * planes.planes,
        network_links=path.network_links * planes.planes,
    )


def multi_plane_refusal(
    job: Job, scale_out: ScaleOut, upper_tiers: UpperTiers, planes: Planes
) -> str | None:
    """Why no plane holds the job, for records of plain numbers; None where one does."""
    split = float(planes.planes)
    radix = float(scale_out.switch_radix) * split
    return clos_refusal(float(job.gpus), radix, scale_out, upper_tiers, planes=split)
