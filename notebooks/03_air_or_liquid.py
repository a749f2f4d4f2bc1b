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
# # Air or liquid?
#
# What does cooling do to the clock, and the clock to the step? Both coolings see the same parts and
# the same luck, so their difference is a subtraction of samples.

# %%
import os

import matplotlib.pyplot as plt
import xarray as xr

from fabricarlo import analysis

STORE = os.environ.get("FABRICARLO_STORE", "first_look.zarr")
results = xr.open_zarr(STORE)
samples = xr.open_zarr(STORE, group="samples")
replicates = analysis.independent_replicates(results)
air, liquid = results.cooling.values[[0, -1]]
print(f"{air} against {liquid}")

# %% [markdown]
# ## What limits the clock?

# %%
flag = results.limiting_reason_flag
meanings = flag.attrs["flag_meanings"].split()
share = results.limiting_reason_share.assign_coords(limiting_reason_flag=meanings)
share = share.isel(fabric=0, gpus=0).to_series().unstack("cooling")
share[share.max(axis=1) > 0].round(3)

# %% [markdown]
# ## How hot, and how fast?
#
# The slowest GPU of the cluster sets the pace of every step.

# %%
figure, panels = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for name, panel in zip(("junction_temperature", "slowest_clock_fraction"), panels, strict=True):
    values = samples[name].isel(fabric=0, gpus=-1)
    for cooling, colour in ((air, "#d55e00"), (liquid, "#0072b2")):
        panel.hist(values.sel(cooling=cooling), bins=60, color=colour, alpha=0.65, label=cooling,
                   density=True)  # fmt: skip
    panel.set_xlabel(f"{name.replace('_', ' ')} ({values.attrs['units']})")
    panel.set_yticks([])
    panel.spines[["top", "right", "left"]].set_visible(False)
panels[0].legend(frameon=False)
plt.show()

# %% [markdown]
# ## What liquid saves, sample by sample

# %%
saved = analysis.paired_difference(
    samples.step_time, "cooling", air, liquid, replicates=replicates, probabilities=[0.5, 0.99]
).compute()
rows = saved.stack(design=("fabric", "gpus"))
for k, (fabric, gpus) in enumerate(rows.design.values):
    one = rows.isel(design=k)
    low, high = float(one.mean_difference_low), float(one.mean_difference_high)
    print(
        f"{fabric}, {int(gpus):,} GPUs: {float(one.mean_difference):+.3f} s ({low:+.3f} to "
        f"{high:+.3f}), faster in {float(one.share_lower):.1%} of samples"
    )

# %%
figure, axes = plt.subplots(figsize=(8, 1.4 + 0.3 * rows.sizes["design"]), layout="constrained")
names = [f"{f} · {int(g):,}" for f, g in rows.design.values]
for q, marker, colour in ((0.5, "o", "#0072b2"), (0.99, "s", "#d55e00")):
    at = rows.sel(quantile=q)
    error = [at.quantile_difference - at.quantile_difference_low,
             at.quantile_difference_high - at.quantile_difference]  # fmt: skip
    error = [e.clip(min=0) for e in error]
    axes.errorbar(at.quantile_difference, names, xerr=error, fmt=marker, color=colour,
                  label=f"{100 * q:g} % quantile")  # fmt: skip
axes.axvline(0, color="#333333", lw=1)
axes.set_xlabel(f"step time with {liquid} less that with {air} (s)")
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
plt.show()
