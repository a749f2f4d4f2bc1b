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
# # A first sweep
#
# A store is plain Zarr: xarray reads it, and neither JAX nor a GPU is needed. Make one with
#
# ```sh
# fabricarlo run sweeps/first_look.yaml --out first_look.zarr
# ```
#
# It asks what holds back a training step on 64k to 128k GPUs: the fabric, or the cooling.

# %%
import os

import matplotlib.pyplot as plt
import xarray as xr

from fabricarlo import analysis

STORE = os.environ.get("FABRICARLO_STORE", "first_look.zarr")
results = xr.open_zarr(STORE)
print(results.attrs["description"])
results[["step_time", "step_time_mean", "scaling_efficiency"]]

# %% [markdown]
# Every variable says what it is and in which unit; axes of the sweep are dimensions.

# %%
print(results.step_time.attrs)
results.step_time.sel(quantile=0.99).to_series().unstack("gpus").round(2)

# %% [markdown]
# ## How sure is that?
#
# Each number has a 95 % interval. It comes from independent scrambles of the points, so it is an
# honest error bar although the points are not independent.

# %%
slow = analysis.stored_quantiles(results, "step_time").sel(quantile=0.99)
width = (slow.high - slow.low) / slow.estimate
print(f"the 99 % quantiles are known to {float(width.max()):.1%}, the worst of them")

# %% [markdown]
# ## Other quantiles, without the samples
#
# Histograms are kept of every output: any quantile can be had later.

# %%
histograms = xr.open_zarr(STORE, group="histograms")
levels = [0.001, 0.1, 0.5, 0.9, 0.999]
spread = analysis.histogram_quantiles(histograms, "step_time", levels).estimate.compute()

# %%
rows = spread.stack(design=("fabric", "cooling", "gpus")).transpose("design", "quantile")
names = [f"{f} · {c} · {int(g):,}" for f, c, g in rows.design.values]
figure, axes = plt.subplots(figsize=(9, 1.2 + 0.34 * len(names)), layout="constrained")
for row, values in enumerate(rows.values):
    axes.plot(values[[0, -1]], [row, row], color="#0072b2", lw=1.2)
    axes.plot(values[[1, -2]], [row, row], color="#0072b2", lw=5, solid_capstyle="butt")
    axes.plot(values[2], row, "o", color="white", mec="#0072b2", ms=6)
axes.set_yticks(range(len(names)), names)
axes.invert_yaxis()
axes.set_xlabel(f"step time ({results.step_time.attrs['units']})")
axes.set_title("Dot: median; bar: 10 to 90 %; line: 0.1 to 99.9 %", loc="left", fontsize=10)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
