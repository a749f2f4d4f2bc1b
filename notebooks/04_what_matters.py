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
# # What matters most?
#
# Of everything that is uncertain, what would be worth knowing better? A first-order Sobol' index is
# the share of variance that goes away if one quantity becomes known. It can be had from the samples
# of any store; total indices, with all interactions, need `design: sensitivity` in the spec, and
# `analysis.sobol_indices`.

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from fabricarlo import analysis

STORE = os.environ.get("FABRICARLO_STORE", "first_look.zarr")
results = xr.open_zarr(STORE)
samples = xr.open_zarr(STORE, group="samples").isel(sample=slice(0, 2**18))
replicates = analysis.independent_replicates(results)
names = analysis.draws_of(results, samples)
print(names)

# %%
step = samples.step_time.isel(gpus=-1)
draws = samples[names].isel(gpus=-1, missing_dims="ignore")
indices = analysis.first_order_indices(step, draws, replicates=replicates).compute()
ranked = indices.max(["fabric", "cooling"]).sortby("first_order", ascending=True)
ranked = ranked.dropna("parameter", subset=["first_order"])

# %%
figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
designs = indices.sel(parameter=ranked.parameter).stack(design=("fabric", "cooling"))
place = np.arange(designs.sizes["parameter"])
height = 0.8 / designs.sizes["design"]
colours = ["#0072b2", "#56b4e9", "#d55e00", "#e69f00"]
for k, design in enumerate(designs.design.values):
    one = designs.isel(design=k)
    error = [(one.first_order - one.first_order_low).clip(min=0),
             (one.first_order_high - one.first_order).clip(min=0)]  # fmt: skip
    axes.barh(place + (k - 1.5) * height, one.first_order, height, xerr=error,
              color=colours[k % 4], label=", ".join(design))  # fmt: skip
axes.set_yticks(place, [str(p) for p in designs.parameter.values])
axes.set_xlabel("share of the variance of the step time that knowing it would remove")
axes.legend(frameon=False, loc="lower right")
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %% [markdown]
# ## What the first one does
#
# The step time against the quantity that matters most: its mean, and where 80 % of the samples lie.

# %%
most = str(ranked.parameter[-1].item())
one = dict(fabric=0, cooling=0)
x, y = draws[most].isel(one, missing_dims="ignore").values, step.isel(one).values
order = np.argsort(x)
groups = np.array_split(order, 30)
centre = [x[g].mean() for g in groups]
figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
axes.fill_between(centre, [np.quantile(y[g], 0.1) for g in groups],
                  [np.quantile(y[g], 0.9) for g in groups], color="#56b4e9", alpha=0.5)  # fmt: skip
axes.plot(centre, [y[g].mean() for g in groups], color="#0072b2", lw=2)
axes.set_xlabel(f"{most} ({draws[most].attrs.get('units', '1')})")
axes.set_ylabel("step time (s)")
axes.spines[["top", "right"]].set_visible(False)
plt.show()
