"""What the project can do: question -> answers. A new answer is a file and a line here."""

from collections.abc import Callable
from typing import Any

from fabric_kernels.calls.switches import nvls_refusal, switch_refusal
from fabric_kernels.collective.all_to_all import direct, pairwise
from fabric_kernels.collective.auto import auto
from fabric_kernels.collective.calibrated import calibrated, calibrated_refusal
from fabric_kernels.collective.hierarchical import (
    hierarchical,
    hierarchical_halving_doubling,
    hierarchical_tree,
    nvls,
    nvls_sharp,
    nvls_sharp_refusal,
    nvls_tree,
    sharp,
)
from fabric_kernels.collective.nccl import nccl
from fabric_kernels.collective.ring import ring
from fabric_kernels.collective.seed_document import seed_document, seed_document_as_written
from fabric_kernels.collective.tree import (
    double_binary_tree,
    doubling_refusal,
    recursive_halving_doubling,
)
from fabric_kernels.congestion.credits import credits, credits_refusal
from fabric_kernels.congestion.dcqcn import buffer_refusal, dcqcn, dcqcn_refusal
from fabric_kernels.congestion.dcqcn_fluid import dcqcn_fluid
from fabric_kernels.congestion.dctcp import dctcp
from fabric_kernels.congestion.dctcp_fluid import dctcp_fluid
from fabric_kernels.congestion.none import none
from fabric_kernels.congestion.pfc import pfc
from fabric_kernels.congestion.spray_trimming import spray_trimming
from fabric_kernels.cooling.air import air
from fabric_kernels.cooling.single_phase import flow_refusal, single_phase, supply_refusal
from fabric_kernels.cooling.two_phase import two_phase
from fabric_kernels.energy.by_phase import by_phase
from fabric_kernels.errors.forward_error_correction import forward_error_correction
from fabric_kernels.errors.given import given, given_population
from fabric_kernels.exchange.additive import additive
from fabric_kernels.expert import all_to_alls as expert
from fabric_kernels.expert.none import none as no_experts
from fabric_kernels.facility.air_handlers import air_handlers
from fabric_kernels.facility.dry_cooler import chilled_water, dry_cooler
from fabric_kernels.incast.traffic import traffic
from fabric_kernels.jitter.barrier import barrier
from fabric_kernels.jitter.conditioned import conditioned
from fabric_kernels.jitter.event_level import event_level, event_level_refusal
from fabric_kernels.jitter.mean import mean
from fabric_kernels.jitter.surrogate import surrogate
from fabric_kernels.loss.go_back_n import go_back_n
from fabric_kernels.loss.go_back_n_single_nak import go_back_n_single_nak
from fabric_kernels.loss.link_retry import link_retry
from fabric_kernels.loss.recovery import timer_refusal
from fabric_kernels.loss.selective_repeat import selective_repeat
from fabric_kernels.loss.trimming import trimming
from fabric_kernels.noise.empirical import empirical
from fabric_kernels.noise.exponential import exponential
from fabric_kernels.noise.gamma import gamma
from fabric_kernels.noise.generalised_pareto import generalised_pareto
from fabric_kernels.noise.lognormal import lognormal
from fabric_kernels.noise.mixture import mixture
from fabric_kernels.noise.normal import normal
from fabric_kernels.noise.spikes import spikes
from fabric_kernels.noise.uniform import uniform
from fabric_kernels.noise.weibull import weibull
from fabric_kernels.operation.gradients import replicated, zero_1, zero_3
from fabric_kernels.operation.single import (
    all_gather,
    all_to_all,
    point_to_point,
    reduce_scatter,
)
from fabric_kernels.optics.ports import ports
from fabric_kernels.path.fat_tree import fat_tree, fat_tree_refusal
from fabric_kernels.path.multi_plane import multi_plane, multi_plane_refusal
from fabric_kernels.path.rail_optimised import rail_optimised, rail_optimised_refusal
from fabric_kernels.pipeline.none import none as no_pipeline
from fabric_kernels.pipeline.none import none_refusal as no_pipeline_refusal
from fabric_kernels.pipeline.one_forward_one_backward import one_forward_one_backward
from fabric_kernels.placement.packed import packed
from fabric_kernels.placement.scattered import scattered
from fabric_kernels.placement.worst import worst
from fabric_kernels.power.rack import rack
from fabric_kernels.routing.adaptive import adaptive
from fabric_kernels.routing.ecmp import ecmp
from fabric_kernels.routing.spraying import spraying
from fabric_kernels.step.overlapped import overlapped, overlapped_refusal
from fabric_kernels.step.synchronous import synchronous
from fabric_kernels.tensor.all_reduces import ring_reduced, switch_reduced
from fabric_kernels.transient.two_node import two_node
from fabric_kernels.window.sliding import sliding
from fabric_kernels.workload.dense import dense, dense_refusal
from fabric_kernels.workload.mixture_of_experts import (
    mixture_of_experts,
    mixture_of_experts_refusal,
)

ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "workload": {"dense": dense, "mixture_of_experts": mixture_of_experts},
    "operation": {
        "replicated": replicated,
        "zero_1": zero_1,
        "zero_3": zero_3,
        "reduce_scatter": reduce_scatter,
        "all_gather": all_gather,
        "all_to_all": all_to_all,
        "point_to_point": point_to_point,
    },
    "placement": {"worst": worst, "packed": packed, "scattered": scattered},
    "routing": {"adaptive": adaptive, "ecmp": ecmp, "spraying": spraying},
    "path": {
        "fat_tree": fat_tree,
        "rail_optimised": rail_optimised,
        "multi_plane": multi_plane,
    },
    "incast": {"traffic": traffic},
    "congestion": {
        "none": none,
        "dcqcn": dcqcn,
        "dcqcn_fluid": dcqcn_fluid,
        "dctcp": dctcp,
        "dctcp_fluid": dctcp_fluid,
        "pfc": pfc,
        "credits": credits,
        "spray_trimming": spray_trimming,
    },
    "collective": {
        "hierarchical": hierarchical,
        "ring": ring,
        "double_binary_tree": double_binary_tree,
        "recursive_halving_doubling": recursive_halving_doubling,
        "hierarchical_tree": hierarchical_tree,
        "hierarchical_halving_doubling": hierarchical_halving_doubling,
        "nvls": nvls,
        "nvls_tree": nvls_tree,
        "sharp": sharp,
        "nvls_sharp": nvls_sharp,
        "direct": direct,
        "pairwise": pairwise,
        "auto": auto,
        "nccl": nccl,
        "calibrated": calibrated,
        "seed_document": seed_document,
        "seed_document_as_written": seed_document_as_written,
    },
    "tensor": {"ring_reduced": ring_reduced, "switch_reduced": switch_reduced},
    "expert": {"none": no_experts, "direct": expert.direct, "relayed": expert.relayed},
    "pipeline": {
        "one_forward_one_backward": one_forward_one_backward,
        "none": no_pipeline,
    },
    "noise": {
        "lognormal": lognormal,
        "exponential": exponential,
        "weibull": weibull,
        "gamma": gamma,
        "normal": normal,
        "generalised_pareto": generalised_pareto,
        "spikes": spikes,
        "uniform": uniform,
        "mixture": mixture,
        "empirical": empirical,
    },
    "jitter": {
        "surrogate": surrogate,
        "barrier": barrier,
        "mean": mean,
        "conditioned": conditioned,
        "event_level": event_level,
    },
    "errors": {
        "given": given,
        "given_population": given_population,
        "forward_error_correction": forward_error_correction,
    },
    "window": {"sliding": sliding},
    "loss": {
        "go_back_n": go_back_n,
        "go_back_n_single_nak": go_back_n_single_nak,
        "selective_repeat": selective_repeat,
        "trimming": trimming,
        "link_retry": link_retry,
    },
    "exchange": {"additive": additive},
    "cooling": {"single_phase": single_phase, "air": air, "two_phase": two_phase},
    "power": {"rack": rack},
    "facility": {
        "dry_cooler": dry_cooler,
        "chilled_water": chilled_water,
        "air_handlers": air_handlers,
    },
    "transient": {"two_node": two_node},
    "optics": {"ports": ports},
    "step": {"synchronous": synchronous, "overlapped": overlapped},
    "energy": {"by_phase": by_phase},
}
"""For every question its answers by name; the first is the default."""

REFUSALS: dict[Callable[..., Any], Callable[..., str | None]] = {
    dense: dense_refusal,
    mixture_of_experts: mixture_of_experts_refusal,
    no_pipeline: no_pipeline_refusal,
    overlapped: overlapped_refusal,
    event_level: event_level_refusal,
    nvls: nvls_refusal,
    nvls_tree: nvls_refusal,
    nvls_sharp: nvls_sharp_refusal,
    sharp: switch_refusal,
    recursive_halving_doubling: doubling_refusal,
    switch_reduced: nvls_refusal,
    calibrated: calibrated_refusal,
    fat_tree: fat_tree_refusal,
    rail_optimised: rail_optimised_refusal,
    multi_plane: multi_plane_refusal,
    single_phase: flow_refusal,
    two_phase: supply_refusal,
    dcqcn: dcqcn_refusal,
    dcqcn_fluid: dcqcn_refusal,
    dctcp: buffer_refusal,
    dctcp_fluid: buffer_refusal,
    pfc: buffer_refusal,
    spray_trimming: buffer_refusal,
    credits: credits_refusal,
    go_back_n: timer_refusal,
    go_back_n_single_nak: timer_refusal,
    selective_repeat: timer_refusal,
}
"""Answer -> why it cannot answer for these numbers. A refusal takes the records of its
annotations, filled with plain numbers, and returns None or a message that says what to do."""

DIMENSIONS: dict[str, int] = {
    "jitter.data.slowest": 63,
    "loss.data.lost": 62,
    "loss.data.timed_out": 61,
    "cooling.slowest": 60,
    "routing.collisions": 59,
    "cooling.bad_part": 48,
    "jitter.slow_rank": 47,
    "jitter.common_pause": 46,
    "jitter.expert.slowest": 58,
    "jitter.pipeline.slowest": 57,
    "loss.expert.lost": 56,
    "loss.expert.timed_out": 55,
    "loss.pipeline.lost": 54,
    "loss.pipeline.timed_out": 53,
    "loss.chain": 50,
    "errors.marginal": 49,
}
"""Sobol' dimension of every stage slot. Append downwards; a number is never used again."""

PERSISTENT: frozenset[str] = frozenset(
    {
        "cooling.slowest",  # the silicon that was bought
        "cooling.bad_part",
        "jitter.slow_rank",  # a host that is slow stays so
        "errors.marginal",  # links stay as bad as they are
    }
)
"""Slots that are drawn once a sample: facts of a cluster and a job. All others are the noise of one
step, drawn anew in every step."""
