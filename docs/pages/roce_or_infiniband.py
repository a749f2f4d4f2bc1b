"""RoCEv2 or InfiniBand: what a step is worth on each, in the middle and in the tail."""

from pathlib import Path

import numpy as np
import xarray as xr

from docs.pages.drawing import COLOURS, panels, plain, save, seconds, table
from docs.pages.fabrics import QUANTILES, Cells, cells, deciding, difference, pairs, rate_of
from docs.pages.page import Page, Stores
from fabricarlo.analysis import attribution, histogram_quantiles

NETWORK = ("bandwidth", "latency", "congestion", "jitter", "loss")


def times(cell: Cells) -> str:
    """p50, p99 and p99.9 of the step of every fabric, with the half widths of their intervals."""
    found = histogram_quantiles(cell.histograms, "step_time", QUANTILES)
    rows = []
    for label in map(str, cell.root.fabric.values):
        one = found.sel(fabric=label)
        half = (one.high - one.low) / 2
        row = [
            f"{float(one.estimate.sel(quantile=q)):.2f} ± {float(half.sel(quantile=q)):.2g}"
            for q in QUANTILES
        ]
        exchange = seconds(float(cell.root.allreduce_time.sel(fabric=label, quantile=0.5)))
        rows.append([f"`{label}`", *row, exchange])
    head = ["fabric", *(f"p{100 * q:g} (s)" for q in QUANTILES), "all-reduce, p50"]
    return table(head, rows)


def regimes(cell: Cells) -> str:
    """What the network is like: collisions, queues, and what governs them."""
    rows = []
    for label in map(str, cell.root.fabric.values):
        one = cell.root.sel(fabric=label)
        codes = cell.samples.congestion_regime.sel(fabric=label)
        meanings = str(codes.attrs["flag_meanings"]).split()
        values, counts = np.unique(codes, return_counts=True)
        most = meanings[int(values[counts.argmax()])].replace("_", " ")
        share = counts.max() / counts.sum()
        middle = one.sel(quantile=0.5)
        rows.append([
            f"`{label}`", f"{float(middle.collision_efficiency):.0%}",
            f"{float(middle.congestion_efficiency):.1%}", seconds(float(middle.queueing_delay)),
            f"{most} ({share:.0%})",
        ])  # fmt: skip
    head = ["fabric", "after collisions", "after congestion control", "queue of a hop", "regime"]
    return table(head, rows)


def parts(cell: Cells) -> xr.DataArray:
    """Seconds of the step time at its median and p99 that each effect makes."""
    return attribution(cell.samples, (0.5, 0.99), replicates=cell.replicates).value


def attributed(found: xr.DataArray) -> str:
    """The parts of the network at the median and at p99; the rest is compute."""
    rows = []
    for label in map(str, found.fabric.values):
        row = [f"`{label}`"]
        for name in NETWORK:
            both = [float(found.sel(fabric=label, part=name, quantile=q)) for q in (0.5, 0.99)]
            row.append(" / ".join(f"{value:.3f}" for value in both))
        own = [float(found.sel(fabric=label, quantile=q).sum()) for q in (0.5, 0.99)]
        network = [float(found.sel(fabric=label, quantile=q, part=list(NETWORK)).sum())
                   for q in (0.5, 0.99)]  # fmt: skip
        row.append(" / ".join(f"{a - b:.2f}" for a, b in zip(own, network, strict=True)))
        rows.append(row)
    return table(["fabric", *NETWORK, "compute, bubble, heat"], rows)


def differences(cell: Cells) -> str:
    """The table of paired differences."""
    rows = []
    for ethernet, infiniband in pairs([str(v) for v in cell.root.fabric.values]):
        found = difference(cell, ethernet, infiniband)
        shares = found.pop("share_lower")
        numbers = [f"{m:+.3f} ({low:+.3f} to {high:+.3f})" for m, low, high in found.values()]
        rows.append([f"`{infiniband}` - `{ethernet}`", *numbers, f"{shares[0]:.1%}"])
    head = ["pair", "mean (s)", *(f"p{100 * q:g} (s)" for q in QUANTILES), "InfiniBand faster"]
    return table(head, rows)


def inputs_of(cell: Cells, pair: tuple[str, str], most: int = 3) -> str:
    """The inputs that make most of the difference of a pair, with their shares."""
    found = deciding(cell, *pair)
    named = [
        f"`{found.parameter.values[k]}` {float(found.first_order[k]):.0%}"
        for k in range(min(most, found.sizes["parameter"]))
        if float(found.first_order_low[k]) > 0 and float(found.first_order[k]) > 0.01
    ]
    return ", ".join(named) or "none alone"


def decided(cell: Cells) -> str:
    """The inputs that make most of each difference."""
    every = pairs([str(v) for v in cell.root.fabric.values])
    rows = [
        [f"`{i}` - `{e}`", inputs_of(cell, (e, i))] for e, i in every if not i.endswith("-sharp")
    ]
    return table(["difference", "share of its variance by one input alone"], rows)


def figure(cell: Cells, found: xr.DataArray, hashed: xr.Dataset, path: Path) -> None:
    """Tails and network parts of every fabric, and what the number of hashed flows does."""
    shown, axes = panels(3, height=5.4)
    labels = [str(v) for v in cell.root.fabric.values]
    place = -np.arange(len(labels))
    quantiles = cell.root.step_time.sel(quantile=list(QUANTILES)).transpose("fabric", "quantile")
    axes[0].hlines(place, quantiles[:, 0], quantiles[:, -1], color="#888888", lw=1)
    for k, q in enumerate(QUANTILES):
        axes[0].plot(
            quantiles[:, k], place, "osD"[k], color=COLOURS[k], ms=5, label=f"p{100 * q:g}"
        )
    start = np.zeros(len(labels))
    for k, name in enumerate(NETWORK):
        width = found.sel(quantile=0.5, part=name).values
        axes[1].barh(place, width, left=start, color=COLOURS[k], label=name)
        start = start + width
    for panel in axes[:2]:
        panel.set_yticks(place, labels, fontsize=8)
        panel.legend(fontsize=8, frameon=False, loc="best")
    for k, gpus in enumerate(hashed.gpus.values):
        one = hashed.collision_efficiency.sel(gpus=gpus)
        low, middle, high = (one.sel(quantile=q) for q in (0.01, 0.5, 0.99))
        axes[2].fill_between(hashed.flows_per_port, low, high, color=COLOURS[k], alpha=0.2, lw=0)
        axes[2].semilogx(hashed.flows_per_port, middle, "o-", color=COLOURS[k], base=2,
                         label=f"{int(gpus):,} GPUs")  # fmt: skip
    axes[2].set_ylim(0, 1)
    axes[2].legend(fontsize=8, frameon=False)
    plain(axes[0], f"Step time, {int(cell.root.gpus):,} GPUs", "step time (s)", "")
    plain(axes[1], "What the network adds at the median", "part of the step time (s)", "")
    plain(axes[2], "Hashed flows: p1 to p99", "flows per port", "share of the uplinks left")
    save(shown, path)


def words(cell: Cells, hashed: xr.Dataset) -> str:
    """The answer, a line for each rate, and what decides it."""
    labels = [str(v) for v in cell.root.fabric.values]
    step = cell.root.step_time
    lines = []
    for rate in sorted({rate_of(label) for label in labels}):
        mine = [label for label in labels if rate_of(label) == rate]
        median = {label: float(step.sel(fabric=label, quantile=0.5)) for label in mine}
        tail = {label: float(step.sel(fabric=label, quantile=0.999)) for label in mine}
        first, last = (pick(median, key=median.__getitem__) for pick in (min, max))
        calm = min(tail, key=tail.__getitem__)
        lines.append(
            f"* **{rate} Gbit/s**: `{first}` has the shortest median step ({median[first]:.2f} s), "
            f"`{last}` the longest ({median[last]:.2f} s, {median[last] / median[first] - 1:.1%} "
            f"more). In the worst 1 of 1000 `{calm}` is ahead with {tail[calm]:.2f} s."
        )
    return "\n".join([*lines, sprayed(cell), hash_words(hashed, float(cell.root.gpus))])


def sprayed(cell: Cells) -> str:
    """What is left between InfiniBand without SHARP and Ethernet of its rate, and what decides."""
    every = pairs([str(v) for v in cell.root.fabric.values])
    rivals = [p for p in every if not p[1].endswith("-sharp") and rate_of(p[0]) == rate_of(p[1])]
    lines = []
    for ethernet, infiniband in rivals:
        if "trimming" not in ethernet and "dcqcn" not in ethernet:
            continue
        mean, low, high = difference(cell, ethernet, infiniband)["mean_difference"]
        lines.append(
            f"* `{infiniband}` instead of `{ethernet}` changes the mean step by {mean:+.3f} s "
            f"({low:+.3f} to {high:+.3f}). Alone, the largest shares of the variance of that "
            f"difference have {inputs_of(cell, (ethernet, infiniband))}."
        )
    return "\n".join(lines)


def hash_words(hashed: xr.Dataset, gpus: float) -> str:
    """How much of the uplinks a hash leaves, by the number of flows."""
    middle = hashed.collision_efficiency.sel(gpus=gpus, quantile=0.5)
    left = ", ".join(f"{float(middle.sel(flows_per_port=n)):.0%} with {n}" for n in (1, 16, 128))
    return (
        f"* What decides the middle is whether flows are hashed, and whether switches add, not the "
        f"name on the switch: a hash leaves the slowest flow of {gpus:,.0f} GPUs {left} flows a "
        "port, of which the presets open 16; spraying and adaptive routing leave 85 to 98 % "
        "(drawn). What decides the tail is whether a lost packet waits for the adapter's timer."
    )


def write(stores: Stores, folder: Path) -> str:
    """The page."""
    tree = stores["roce_vs_infiniband"]
    few, many = (cells(tree, float(tree["gpus"].values[k])) for k in (0, -1))
    hashed = stores["hashed_flows"].to_dataset().load()
    found = parts(many)
    figure(many, found, hashed, folder / "roce_or_infiniband.png")
    count = int(tree.attrs["samples"])
    kept = many.samples.sizes["sample"]
    return f"""
# RoCEv2 or InfiniBand

One step of a model of 2 trillion parameters on B200 GPUs, at full clock, with nothing hidden behind
compute: the network weighs as much as it can. {count:,} samples a cell with every uncertain input
drawn; all fabrics see the same draws. The sweeps are
[sweeps/roce_vs_infiniband.yaml](../sweeps/roce_vs_infiniband.yaml) and
[sweeps/hashed_flows.yaml](../sweeps/hashed_flows.yaml); the fabrics are presets, each value with
its source (`fabricarlo list presets`).

![Tails, parts of the network and hashed flows](roce_or_infiniband.png)

## The answer, {int(many.root.gpus):,} GPUs

{words(many, hashed)}

## Step time

{int(many.root.gpus):,} GPUs, with half the width of the 95 % interval:

{times(many)}

{int(few.root.gpus):,} GPUs:

{times(few)}

## Where it comes from

Seconds at the median / at p99 of the step, {int(many.root.gpus):,} GPUs, from the {kept:,} kept
samples of each cell:

{attributed(found)}

{regimes(many)}

## The difference, sample by sample

InfiniBand minus Ethernet with the 95 % interval, negative where InfiniBand is faster,
{int(many.root.gpus):,} GPUs. The columns p50 to p99.9 are differences of the quantiles. There is no
InfiniBand of 1600 Gbit/s: XDR stands against it.

{differences(many)}

## What decides it

{decided(many)}

`collision_efficiency` is the luck of the hash. What is left is luck, above all whether a timer
strikes, and inputs that act together.

## What is not in it

* Hashed flows meet at every leaf, as they do where neighbours are scattered; a ring that is packed
  by rails meets less.
* Every hop of a ring meets the queue of its fullest link: an upper bound for pauses and DCQCN.
* DCQCN stands at its fixed point; a loop that oscillates may lose a tenth of the rate more.
* A packet that the wire destroys counts as trimmed on a fabric that trims: a round trip, no timer.
* The receiver admits 1 to 4 MB at any rate, which is short for 1600 Gbit/s over long ways.
* Overlap with compute, failures, other jobs' bandwidth and price.
"""


ROCE_OR_INFINIBAND = Page("roce_or_infiniband", ("roce_vs_infiniband", "hashed_flows"), write)
