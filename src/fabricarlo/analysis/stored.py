"""What a store holds, and clear refusals of what it does not."""

import numpy as np
import xarray as xr

from fabricarlo.analysis.checks import AnalysisError, need_names
from fabricarlo.analysis.labelled import TRIPLE, described


def results_of(tree: xr.DataTree, *names: str) -> xr.Dataset:
    """The results per cell of a finished store, and a clear refusal of anything else.

    Takes what `fabricarlo.open` or `xarray.open_datatree` gave; `names` are outputs that must be
    there.
    """
    results = tree.to_dataset()
    if "state" not in results.attrs or "outputs" not in results.attrs:
        raise AnalysisError(
            "this is no store that fabricarlo wrote: its root lacks the attributes 'state' and "
            "'outputs'."
        )
    if not has_results(results):
        raise AnalysisError(
            f"the sweep is not finished (state '{results.attrs['state']}'), so there are no "
            "results yet: run the same command again to go on."
        )
    need_names(names, outputs_of(results), "the store")
    return results


def samples_of(tree: xr.DataTree, *names: str) -> xr.Dataset:
    """The kept samples of a store; `names` are variables that must be there."""
    if "samples" not in tree.children:
        raise AnalysisError(
            "the store kept no samples: set 'keep: {samples: true}' in the spec and run it again, "
            "or ask what its summaries can answer (quantiles, exceedance, means)."
        )
    samples = tree["samples"].to_dataset()
    need_names(names, samples.data_vars, "the group 'samples'")
    return samples


def outputs_of(results: xr.Dataset) -> list[str]:
    """Outputs that a store was asked for, flags among them, in the order of its spec."""
    return [str(n) for n in np.atleast_1d(results.attrs.get("outputs", []))]


def draws_of(results: xr.Dataset, samples: xr.Dataset) -> list[str]:
    """Random quantities of the spec whose values were kept."""
    others = [*outputs_of(results), "weight"]
    return [str(n) for n in samples.data_vars if n not in others]


def has_results(results: xr.Dataset) -> bool:
    """Whether the summaries of a store are there: at least one output has a mean or a share."""
    return any(f"{n}_mean" in results or f"{n}_share" in results for n in outputs_of(results))


def stored_quantiles(results: xr.Dataset, name: str) -> xr.Dataset:
    """The quantiles that a store was asked to keep, as `estimate`, `low` and `high` (95 %)."""
    need_names([name, f"{name}_interval"], results.data_vars, "the store")
    ends = results[f"{name}_interval"].drop_vars("bound")
    made = xr.Dataset(dict(zip(TRIPLE, (results[name], *_both(ends)), strict=True)))
    for end in ("low", "high"):
        made[end].attrs = described(results[name].attrs, f"{end} end of its 95 % interval")
    return made


def _both(ends: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    return ends.isel(bound=0), ends.isel(bound=1)
