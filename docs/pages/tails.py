"""What the slowest hop and the lost packet cost: the tail of a step."""

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from docs.pages.drawing import COLOURS, MARKERS, panels, plain, save, seconds, table
from docs.pages.page import Page, Stores
from fabricarlo.analysis import histogram_exceedance, largest_within, stored_quantiles

BUDGET = 0.01
"""Share of a quantile of the step that losses may cost."""
QUANTILES = {0.5: "p50", 0.99: "p99", 0.999: "p99.9"}
STALL = "data_jitter_stall"
NODE = 8  # GPUs
SHOWN = (1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3)
"""Loss rates of the table."""


def samples_words(root: xr.Dataset) -> str:
    """How many samples each cell has."""
    count = int(root[f"{np.atleast_1d(root.attrs['outputs'])[0]}_count"].max())
    return f"{count:,} samples a cell"


# ---- lost packets


def slowdown(root: xr.Dataset) -> xr.DataArray:
    """How much longer the quantiles of a step are than those without loss, as a share."""
    return root.step_time / root.step_time.sel(packet_loss_rate=0.0, drop=True) - 1


def budgets(tree: xr.DataTree) -> xr.Dataset:
    """The largest loss rate that costs under 1 % of the 99th percentile, with its interval.

    The 99th percentile is below a limit where the share of steps above the limit is below 1 %;
    that share rises smoothly with the loss rate, where the percentile itself jumps by a timer.
    """
    root, histograms = tree.to_dataset(), tree["histograms"].to_dataset()
    limits = (1 + BUDGET) * root.step_time.sel(quantile=0.99, packet_loss_rate=0.0)
    found = []
    for recovery in root.recovery.values:
        row = []
        for gpus in root.gpus.values:
            at = {"recovery": recovery, "gpus": gpus}
            row.append(_budget(histograms.sel(at), float(limits.sel(at))))
        found.append(xr.concat(row, "gpus"))
    return xr.concat(found, "recovery").assign_coords(recovery=root.recovery, gpus=root.gpus)


def _budget(histograms: xr.Dataset, limit: float) -> xr.Dataset:
    lossy = histograms.isel(packet_loss_rate=histograms.packet_loss_rate.values > 0)
    share = histogram_exceedance(lossy, "step_time", limit).isel(threshold=0, drop=True)
    curve = np.log(share.map(lambda one: one.clip(min=1e-12)))
    names = ["estimate", "low", "high", "interpolation_error", "open"]
    within = largest_within(curve, "packet_loss_rate", below=float(np.log(1 - 0.99)), scale="log")
    return within[names].drop_vars(["recovery", "gpus"], errors="ignore")


def _rate(value: float) -> str:
    """A loss rate with at most two digits: 1.2e-11."""
    mantissa, _, exponent = f"{value:.1e}".partition("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent)}"


def budget_table(found: xr.Dataset) -> str:
    """The largest loss rate of every scheme and number of GPUs."""
    rows = []
    for recovery in found.recovery.values:
        row = [f"`{recovery}`"]
        for gpus in found.gpus.values:
            one = found.sel(recovery=recovery, gpus=gpus)
            row.append(_budget_words(one))
        rows.append(row)
    return table(["recovery", *(f"{int(g):,} GPUs" for g in found.gpus.values)], rows)


def _budget_words(one: xr.Dataset) -> str:
    estimate, low, high = (float(one[n]) for n in ("estimate", "low", "high"))
    if bool(one.open):
        return f"above {_rate(estimate)}"
    if not np.isfinite(estimate):
        return "below all of the sweep"
    return f"{_rate(estimate)} ({_rate(low)} to {_rate(high)})"


def quantile_table(root: xr.Dataset, rates: list[float]) -> str:
    """p50, p99 and p99.9 of a step on the most GPUs, with their growth over no loss."""
    most = root.isel(gpus=-1)
    growth = slowdown(most)
    rows = []
    for recovery in root.recovery.values:
        row = [f"`{recovery}`"]
        for rate in rates:
            at = {"recovery": recovery, "packet_loss_rate": rate, "quantile": list(QUANTILES)}
            row.append(", ".join(_percent(float(v)) for v in growth.sel(at)))
        rows.append(row)
    return table(["recovery", *(f"loss {_rate(rate)}" for rate in rates)], rows)


def _percent(share: float) -> str:
    if abs(share) < 5e-4:
        return "0"
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"


def loss_figure(root: xr.Dataset, path: Path) -> None:
    """Growth of p50, p99 and p99.9 against loss, one line a scheme, on the most GPUs."""
    shown, axes = panels(len(QUANTILES))
    growth = slowdown(root.isel(gpus=-1)).isel(packet_loss_rate=root.packet_loss_rate.values > 0)
    for panel, (quantile, name) in zip(axes, QUANTILES.items(), strict=True):
        for k, recovery in enumerate(root.recovery.values):
            one = growth.sel(recovery=recovery, quantile=quantile)
            panel.loglog(
                one.packet_loss_rate, one.where(one > 2e-5), marker=MARKERS[k], ms=4 if k else 10,
                lw=1.2 if k else 4.5,  # others may cover the first
                color=COLOURS[k], label=str(recovery) if panel is axes[0] else None,
            )  # fmt: skip
        panel.axhline(BUDGET, color="#444444", lw=0.9, ls=(0, (4, 3)))
        panel.set_ylim(3e-5, 100)
        panel.set_xlim(float(growth.packet_loss_rate[0]), float(growth.packet_loss_rate[-1]))
        plain(panel, f"{name} of a step", "packet loss rate", "growth over no loss (share)")
    axes[0].annotate("1 %", (1.5e-15, 1.15 * BUDGET), fontsize=8, color="#444444")
    shown.legend(loc="outside right upper", fontsize=8, frameon=False)
    save(shown, path)


def loss_words(root: xr.Dataset, found: xr.Dataset) -> str:
    """The step without loss, and the span of the budgets."""
    most = root.isel(gpus=-1)
    clean = most.step_time.sel(packet_loss_rate=0.0).isel(recovery=0)
    last = found.isel(gpus=-1).estimate
    tight = str(last.recovery.values[int(last.values.argmin())])
    sure = ", ".join(f"{name} {seconds(float(clean.sel(quantile=q)))}"
                     for q, name in QUANTILES.items())  # fmt: skip
    return (
        f"Without loss a step on {int(most.gpus):,} GPUs takes {sure}.\n"
        f"`{tight}` needs the cleanest fabric: at most {_rate(float(last.min()))} of the packets "
        "may be lost."
    )


# ---- hop noise


def jitter_figure(root: xr.Dataset, path: Path) -> None:
    """Truth, surrogate and bounds against nodes: mean and 99th percentile."""
    shown, axes = panels(root.sizes["collective"])
    nodes = root.gpus / NODE
    for panel, collective in zip(axes, root.collective.values, strict=True):
        cell = root.sel(collective=collective)
        _jitter_panel(panel, nodes, cell)
        plain(panel, str(collective), "nodes", "noise of one all-reduce (s)")
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
    axes[0].legend(fontsize=8, frameon=False, loc="upper left")
    save(shown, path)


def _jitter_panel(panel: Axes, nodes: xr.DataArray, cell: xr.Dataset) -> None:
    means, tails = cell[f"{STALL}_mean"], cell[STALL].sel(quantile=0.99)
    between = (means.sel(jitter="mean"), means.sel(jitter="barrier"))
    panel.fill_between(nodes, *between, color="#e8e8e8", lw=0, label="between the bounds, mean")
    panel.plot(nodes, between[0], color="#777777", lw=1, ls=":", label="nobody waits, mean")
    panel.plot(nodes, between[1], color="#777777", lw=1, label="barrier, mean")
    kinds = ((means, "mean", "-", COLOURS[0]), (tails, "p99", "--", COLOURS[1]))
    for values, name, line, colour in kinds:
        law, truth = values.sel(jitter="surrogate"), values.sel(jitter="event_level")
        panel.plot(nodes, law, color=colour, lw=1.4, ls=line, label=f"surrogate, {name}")
        panel.plot(
            nodes, truth, color=colour, marker="o", ms=5.5, lw=0, mfc="white", mew=1.4,
            label=f"every hop simulated, {name}",
        )  # fmt: skip


def gaps(root: xr.Dataset) -> xr.Dataset:
    """Surrogate over truth, less 1: mean, p90 and p99, and half an interval of the truth."""
    truth, law = (root.sel(jitter=name, drop=True) for name in ("event_level", "surrogate"))
    simulated = np.isfinite(truth[f"{STALL}_mean"]).any("collective")
    truth, law = (one.isel(gpus=simulated.values) for one in (truth, law))
    found, doubt = {"mean": law[f"{STALL}_mean"] / truth[f"{STALL}_mean"] - 1}, {}
    ends = truth[f"{STALL}_mean_interval"]
    half = (ends.isel(bound=1) - ends.isel(bound=0)) / 2
    doubt["mean"] = half / truth[f"{STALL}_mean"]
    exact, close = stored_quantiles(truth, STALL), stored_quantiles(law, STALL)
    for quantile, name in ((0.9, "p90"), (0.99, "p99")):
        one = exact.sel(quantile=quantile, drop=True)
        found[name] = close.estimate.sel(quantile=quantile, drop=True) / one.estimate - 1
        doubt[name] = (one.high - one.low) / 2 / one.estimate
    names = list(found)
    made = {
        "gap": xr.concat([found[n].drop_vars("quantile", errors="ignore") for n in names], "of"),
        "doubt": xr.concat([doubt[n].drop_vars(["bound"], errors="ignore") for n in names], "of"),
    }
    return xr.Dataset(made).assign_coords(of=names)


def gap_table(found: xr.Dataset) -> str:
    """The surrogate's error for every collective and number of nodes."""
    rows = []
    for collective in found.collective.values:
        for name in found["of"].values:
            one = found.sel({"collective": collective, "of": name})
            cells = [
                f"{round(float(g), 3) + 0.0:+.1%} ± {float(d):.1%}"
                for g, d in zip(one.gap, one.doubt, strict=True)
            ]
            rows.append([f"`{collective}`, {name}", *cells])
    heads = [f"{int(g) // NODE} nodes" for g in found.gpus.values]
    return table(["surrogate over truth, less 1", *heads], rows)


def jitter_words(root: xr.Dataset) -> str:
    """What noise costs on the most nodes, and what the bounds make of it."""
    most = root.isel(gpus=-1)
    lines = []
    for collective in root.collective.values:
        mean = most[f"{STALL}_mean"].sel(collective=collective)
        law, bound, least = (float(mean.sel(jitter=j)) for j in ("surrogate", "barrier", "mean"))
        lines.append(
            f"* `{collective}` pays {seconds(law)} for noise, {law / least:.1f} times what it "
            f"would if\n  nobody waited; a barrier after every step would make it {seconds(bound)}."
        )
    return "\n".join([f"On {int(most.gpus) // NODE:,} nodes, in the mean:\n", *lines])


def write(stores: Stores, folder: Path) -> str:
    """The page."""
    jitter = stores["jitter_tail"].to_dataset().load()
    tree = stores["loss_budget"].load()
    loss = tree.to_dataset()
    found = budgets(tree)
    jitter_figure(jitter, folder / "tails_jitter.png")
    loss_figure(loss, folder / "tails_loss.png")
    rates = [rate for rate in SHOWN if rate in loss.packet_loss_rate]
    return f"""
# Tails

A synchronous step waits for the slowest of all hops, and for the repair of every lost packet. The
sweeps are [sweeps/loss_budget.yaml](../sweeps/loss_budget.yaml) and
[sweeps/jitter_tail.yaml](../sweeps/jitter_tail.yaml); the formulas are in [model.md](model.md).

## How low must loss be?

A model of 2 trillion parameters on B200 GPUs, 800 Gbit/s Ethernet, gradients replicated. Only how
a lost packet is repaired differs, and how many are lost: {samples_words(loss)}. Uncertain are
latencies, routing and hop noise; nothing of the job, whose spread would hide losses behind it.

![Growth of p50, p99 and p99.9 of a step against loss](tails_loss.png)

The largest loss rate at which p99 of the step grows by less than {BUDGET:.0%}, in brackets its
95 % interval from the replicates:

{budget_table(found)}

{loss_words(loss, found)}

* What costs is the *last* packet of a message: nothing follows it, so only the timer finds it
  missing. `nccl` and `nccl-timeout-14` differ in nothing but that timer (`NCCL_IB_TIMEOUT` of 20
  and 14), and `nccl-single-nak` waits for it more often only where a packet is lost twice.
* Rare timers are a matter of the tail: p99.9 grows decades of loss before p50 does.
* More GPUs bear less, by the square: each of them sends more and shorter messages, so that more of
  its packets are the last one, and there are more of them to wait for.
* With a timer of few round trips, with trimming or with a retry on the link no step waits for
  seconds, and it bears far more frequent losses.
* Trimming repairs what a full queue drops and link retry what a wire breaks: neither does the
  other's work, and the rates are those of the losses that it does repair.

Growth of p50, p99 and p99.9 over a step without loss, on {int(loss.gpus[-1]):,} GPUs
(0: below 0.05 %):

{quantile_table(loss, rates)}

## What does the slowest hop cost?

One all-reduce of 1 GiB between nodes of eight B200, one rail of the eight, lognormal hop noise of
uncertain median and shape: {samples_words(jitter)}. Where a group has at most 256 nodes every hop
is simulated (`jitter: event_level`); everywhere there is the law that stands for it (`surrogate`),
between a barrier after every step (`barrier`) and nobody waiting for anybody (`mean`).

![Truth, surrogate and bounds against nodes](tails_jitter.png)

{jitter_words(jitter)}

{gap_table(gaps(jitter))}

After the sign ± is half a 95 % interval of the simulation. Tests simulate 64 nodes hop by hop and
fail if the surrogate is wrong by 3 %.
"""


TAILS = Page("tails", ("jitter_tail", "loss_budget"), write)
