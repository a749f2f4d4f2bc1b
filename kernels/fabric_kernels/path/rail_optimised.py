"""A fat tree in which the GPUs of equal number in their NVLink domains share leaf switches."""

import dataclasses
import math

import jax.numpy as jnp

from fabric_kernels.inputs import Job, ScaleOut, ScaleUp, UpperTiers
from fabric_kernels.maths.switch_ports import quotient_above
from fabric_kernels.path import Path
from fabric_kernels.path.clos import clos
from fabric_kernels.path.fat_tree import path_over
from fabric_kernels.path.fitting import clos_refusal
from fabric_kernels.path.ways import ways
from fabric_kernels.placement import JobPlacement
from fabric_kernels.quantity import quantities
from fabric_kernels.routing import Routing


def rail_optimised(
    job: Job,
    scale_up: ScaleUp,
    scale_out: ScaleOut,
    upper_tiers: UpperTiers,
    placement: JobPlacement,
    routing: Routing,
) -> Path:
    """GPU i of every NVLink domain on rail i; a leaf and a pod belong to one rail.

    The switches and cables of `fat_tree`, cabled otherwise: a leaf holds one GPU each of as many
    domains as it has ports down (radix / 2 without oversubscription), so that traffic of one rail
    among so many domains stays in its leaf, and within a pod among down_1 down_2. The top tier
    joins the rails. A message to another rail goes over NVLink to that rail first, one NVLink hop
    more: that is the longest way; hop_latency is that of traffic within the rails, which is what
    rings and trees over domains send. As NVIDIA's DGX SuperPOD reference architecture and NCCL's
    PXN have it. bisection_fraction is between two halves of the NVLink domains. Oversubscribed
    leaves cost nothing while the job's rails stay in them.
    """
    network = clos(job.gpus, scale_out.switch_radix, scale_out, upper_tiers)
    domains = quotient_above(job.gpus, scale_up.nvlink_domain)
    found = ways(network, domains, jnp.ones_like(domains), placement)
    path = path_over(network, found, (scale_out, upper_tiers), routing)
    relayed = jnp.where(scale_up.nvlink_domain > 1.0, scale_up.nvlink_latency, 0.0)
    longest = path.longest_hop_latency + relayed
    return dataclasses.replace(path, longest_hop_latency=longest)


def rail_optimised_refusal(
    job: Job, scale_up: ScaleUp, scale_out: ScaleOut, upper_tiers: UpperTiers
) -> str | None:
    """Why no rails hold the job, for records of plain numbers; None where they do."""
    gpus, domain = float(job.gpus), float(scale_up.nvlink_domain)
    if gpus > domain and gpus % domain:
        near = math.floor(gpus / domain) * domain, math.ceil(gpus / domain) * domain
        most = quantities(Job)["gpus"].bounds[1]
        fitting = " or ".join(f"{value:.0f}" for value in near if value <= most)
        return (
            f"gpus is {gpus:.0f}: rails need a whole number of NVLink domains of {domain:.0f} "
            f"GPUs; set gpus to {fitting}."
        )
    return clos_refusal(gpus, float(scale_out.switch_radix), scale_out, upper_tiers)
