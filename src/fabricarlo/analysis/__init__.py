"""From a stored dataset to an answer: xarray in, xarray out.

Everything here takes and gives labelled arrays, computes lazily where they are backed by dask,
keeps units and meanings, and needs neither JAX nor the device that the store was made on. Every
number comes with an interval; `independent_replicates` says how the samples of a store may be
counted.
"""

from fabricarlo.analysis.attribution import attribution, parts_of
from fabricarlo.analysis.checks import AnalysisError
from fabricarlo.analysis.differences import paired_difference
from fabricarlo.analysis.frontier import pareto_front
from fabricarlo.analysis.histograms import (
    histogram_exceedance,
    histogram_quantiles,
    replicate_quantiles,
)
from fabricarlo.analysis.inverse import largest_within
from fabricarlo.analysis.replicates import independent_replicates
from fabricarlo.analysis.sensitivity import first_order_indices, sobol_indices
from fabricarlo.analysis.stored import (
    draws_of,
    has_results,
    outputs_of,
    results_of,
    samples_of,
    stored_quantiles,
)
from fabricarlo.analysis.tails import exceedance, quantiles

__all__ = [
    "AnalysisError",
    "attribution",
    "draws_of",
    "exceedance",
    "first_order_indices",
    "has_results",
    "histogram_exceedance",
    "histogram_quantiles",
    "independent_replicates",
    "largest_within",
    "outputs_of",
    "paired_difference",
    "pareto_front",
    "parts_of",
    "quantiles",
    "replicate_quantiles",
    "results_of",
    "samples_of",
    "sobol_indices",
    "stored_quantiles",
]
