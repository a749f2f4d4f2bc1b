"""What the project can do: question -> answers. A new answer is a file and a line here."""

from collections.abc import Callable
from typing import Any

from fabric_kernels.collective.hierarchical import hierarchical
from fabric_kernels.collective.ring import ring
from fabric_kernels.collective.seed_document import seed_document, seed_document_as_written
from fabric_kernels.congestion.none import none
from fabric_kernels.cooling.air import air
from fabric_kernels.cooling.single_phase import single_phase
from fabric_kernels.exchange.additive import additive
from fabric_kernels.jitter.barrier import barrier
from fabric_kernels.loss.go_back_n import go_back_n
from fabric_kernels.loss.link_retry import link_retry
from fabric_kernels.noise.exponential import exponential
from fabric_kernels.noise.gamma import gamma
from fabric_kernels.noise.generalised_pareto import generalised_pareto
from fabric_kernels.noise.lognormal import lognormal
from fabric_kernels.noise.normal import normal
from fabric_kernels.noise.spikes import spikes
from fabric_kernels.noise.weibull import weibull
from fabric_kernels.path.fat_tree import fat_tree, fat_tree_refusal
from fabric_kernels.power.rack import rack
from fabric_kernels.step.synchronous import synchronous
from fabric_kernels.workload.dense import dense, dense_refusal

ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "workload": {"dense": dense},
    "path": {"fat_tree": fat_tree},
    "congestion": {"none": none},
    "collective": {
        "hierarchical": hierarchical,
        "ring": ring,
        "seed_document": seed_document,
        "seed_document_as_written": seed_document_as_written,
    },
    "noise": {
        "lognormal": lognormal,
        "exponential": exponential,
        "weibull": weibull,
        "gamma": gamma,
        "normal": normal,
        "generalised_pareto": generalised_pareto,
        "spikes": spikes,
    },
    "jitter": {"barrier": barrier},
    "loss": {"go_back_n": go_back_n, "link_retry": link_retry},
    "exchange": {"additive": additive},
    "cooling": {"single_phase": single_phase, "air": air},
    "power": {"rack": rack},
    "step": {"synchronous": synchronous},
}
"""For every question its answers by name; the first is the default."""

REFUSALS: dict[Callable[..., Any], Callable[..., str | None]] = {
    dense: dense_refusal,
    fat_tree: fat_tree_refusal,
}
"""Answer -> why it cannot answer for these numbers. A refusal takes the records of its
annotations, filled with plain numbers, and returns None or a message that says what to do."""

DIMENSIONS: dict[str, int] = {
    "jitter.data.slowest": 63,
    "loss.data.lost": 62,
    "loss.data.timed_out": 61,
    "cooling.slowest": 60,
}
"""Sobol' dimension of every stage slot. Append downwards; a number is never used again."""
