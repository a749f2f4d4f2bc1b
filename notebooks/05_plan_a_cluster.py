# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Plan a cluster at fixed megawatts
#
# A site has 100 MW. How many GPUs does it feed, and how much do they train, with each fabric,
# cooling and kind of optics? Make the store with
#
# ```sh
# fabricarlo run notebooks/sweeps/plan.yaml --out plan.zarr
# ```

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from fabricarlo import analysis

STORE = os.environ.get("FABRICARLO_PLAN_STORE", "plan.zarr")
FIGURES = os.environ.get("FABRICARLO_FIGURES")  # a folder, to keep the figures
SITE = 100e6  # W
results = xr.open_zarr(STORE)
samples = xr.open_zarr(STORE, group="samples")
replicates = analysis.independent_replicates(results)

# %% [markdown]
# ## How many GPUs does the site feed?
#
# Mean power over a step, building included, is energy over time. The largest cluster of which the
# power stays below the limit in 99 % of samples is where the 99 % quantile meets the limit.

# %%
power = (samples.energy_per_step / samples.step_time).rename("site_power")
power.attrs = {"units": "W", "long_name": "mean power of the site over a step"}
high = (
    analysis.quantiles(power, 0.99, replicates=replicates).sel(quantile=0.99, drop=True).compute()
)
most = analysis.largest_within(high, "gpus", below=SITE).compute()
print(most.estimate.round(0).to_series().unstack(["fabric", "optics"]))
print(f"error of interpolation at most {float(most.interpolation_error.max()):.0f} GPUs")

# %% [markdown]
# ## What do they train?
#
# Median rate of tokens at that size (straight lines between the sizes of the sweep), and how
# reliable the step is: its 99 % quantile over its median.

# %%
median = results.tokens_per_second.sel(quantile=0.5, drop=True)
steady = results.step_time.sel(quantile=0.99, drop=True) / results.step_time.sel(
    quantile=0.5, drop=True
)


def at(values: xr.DataArray, gpus: xr.DataArray) -> xr.DataArray:
    """Values at a size that differs from design to design."""
    return xr.apply_ufunc(
        lambda v, g: np.vectorize(lambda row, x: np.interp(x, values.gpus, row),
                                  signature="(n),()->()")(v, g),
        values, gpus, input_core_dims=[["gpus"], []],
    )  # fmt: skip


plan = xr.Dataset(
    {
        "gpus_fed": most.estimate,
        "tokens_per_second": at(median.compute(), most.estimate),
        "slow_step": at(steady.compute(), most.estimate),
        "pue": results.pue.sel(quantile=0.5, drop=True).mean("gpus").compute(),
    }
)
front = analysis.pareto_front(
    plan, maximise=["tokens_per_second"], minimise=["slow_step", "gpus_fed"]
)
plan.assign(front=front).to_dataframe().round(4)

# %% [markdown]
# ## The front
#
# More tokens, fewer GPUs to buy, steadier steps: no design is best in all. Filled marks are those
# that no other design beats in all three.

# %%
figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
colours = dict(zip(plan.cooling.values, ("#d55e00", "#0072b2"), strict=False))
shapes = dict(zip(plan.fabric.values, "os", strict=False))
flat = plan.assign(front=front).stack(design=("cooling", "optics", "fabric"))
for k, (cooling, optics, fabric) in enumerate(flat.design.values):
    one = flat.isel(design=k)
    fill = colours[cooling] if bool(one.front) else "white"
    axes.scatter(one.gpus_fed, one.tokens_per_second / 1e6, s=90, marker=shapes[fabric],
                 facecolor=fill, edgecolor=colours[cooling], linewidth=2)  # fmt: skip
    if fabric == plan.fabric.values[0]:  # the fabrics lie side by side: one name for both
        axes.annotate(optics, (one.gpus_fed, one.tokens_per_second / 1e6), fontsize=8, ha="center",
                      xytext=(0, 9), textcoords="offset points")  # fmt: skip
for cooling, colour in colours.items():
    axes.scatter([], [], color=colour, label=cooling)
for fabric, shape in shapes.items():
    axes.scatter([], [], marker=shape, color="#666666", label=fabric)
axes.set_xlabel(f"GPUs that {SITE / 1e6:.0f} MW feed in 99 % of samples")
axes.set_ylabel("million tokens a second (median)")
axes.grid(color="#e6e6e6")
axes.set_axisbelow(True)
axes.xaxis.set_major_formatter("{x:,.0f}")
axes.margins(x=0.15)
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
if FIGURES:
    figure.savefig(f"{FIGURES}/plan.png", dpi=144)
plt.show()
