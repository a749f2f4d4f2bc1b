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
# # Where is the tail, and what makes it?
#
# A synchronous step waits for the slowest of everything, so a planner pays for the tail. This reads
# the store of `sweeps/first_look.yaml`.

# %%
import os

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from fabricarlo import analysis

STORE = os.environ.get("FABRICARLO_STORE", "first_look.zarr")
FIGURES = os.environ.get("FABRICARLO_FIGURES")  # a folder, to keep the figures
results = xr.open_zarr(STORE)
histograms = xr.open_zarr(STORE, group="histograms")
samples = xr.open_zarr(STORE, group="samples")
replicates = analysis.independent_replicates(results)
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#d55e00"]  # Okabe and Ito

# %% [markdown]
# ## How often is a step slower than ...?
#
# The share of samples above a value, on a logarithmic scale: what looks alike at the median may
# differ by a factor in the tail.

# %%
gpus = float(results.gpus[-1])
levels = np.concatenate([np.linspace(0.01, 0.99, 50), 1 - np.logspace(-2.1, -3.3, 12)])
curves = analysis.histogram_quantiles(histograms, "step_time", levels).estimate.sel(gpus=gpus)
figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
designs = curves.stack(design=("fabric", "cooling"))
for k, (fabric, cooling) in enumerate(designs.design.values):
    values = designs.isel(design=k).values
    axes.plot(values, 1 - levels, color=COLOURS[k % 4], lw=2, label=f"{fabric}, {cooling}")
axes.set_yscale("log")
axes.set_ylim(5e-4, 1)
axes.set_xlabel("step time (s)")
axes.set_ylabel("share of samples above")
axes.set_title(f"{gpus:,.0f} GPUs", loc="left")
axes.grid(color="#e6e6e6")
axes.set_axisbelow(True)
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False)
if FIGURES:
    figure.savefig(f"{FIGURES}/tail.png", dpi=144)
plt.show()

# %% [markdown]
# A threshold, with its interval:

# %%
limit = float(results.step_time_mean.max()) * 1.15
late = analysis.histogram_exceedance(histograms, "step_time", limit).isel(threshold=0)
late.estimate.to_series().unstack("gpus").round(4)

# %% [markdown]
# ## What the median is made of, and what the tail
#
# Parts of a quantile are the means of the parts over the samples that stand at it; they add up.

# %%
parts = analysis.attribution(samples, [0.5, 0.99], replicates=replicates).sel(gpus=gpus).compute()
shares = parts.share.stack(design=("fabric", "cooling"))
figure, panels = plt.subplots(1, 2, figsize=(11, 3.2), sharey=True, layout="constrained")
palette = ["#bbbbbb", "#e69f00", "#0072b2", "#56b4e9", "#d55e00", "#cc79a7", "#009e73", "#000000"]
names = [", ".join(d) for d in shares.design.values]
for panel, q in zip(panels, shares["quantile"].values, strict=True):
    left = np.zeros(len(names))
    for part, colour in zip(shares.part.values, palette, strict=False):
        width = shares.sel(quantile=q, part=part).values
        panel.barh(names, width, left=left, color=colour, label=str(part))
        left += width
    panel.set_title(f"{100 * q:g} % quantile", loc="left")
    panel.set_xlabel("share")
    panel.spines[["top", "right"]].set_visible(False)
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=8,
              frameon=False)  # fmt: skip
plt.show()

# %%
tail = parts.share.sel(quantile=0.99) - parts.share.sel(quantile=0.5)
grown = tail.mean(["fabric", "cooling"]).to_series().sort_values()
print(f"the tail is made by {grown.index[-1]}: its share grows by {grown.iloc[-1]:.1%}")

# %% [markdown]
# ## One fabric against the other, under the same luck

# %%
first, second = results.fabric.values[[0, -1]]
change = analysis.paired_difference(
    samples.step_time, "fabric", first, second, replicates=replicates
).compute()
print(f"{second} is faster in this share of samples:")
change.share_lower.to_series().unstack("gpus").round(3)
