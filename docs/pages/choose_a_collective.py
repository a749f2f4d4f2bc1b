"""Which collective wins where."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import xarray as xr

from docs.pages.drawing import COLOURS, MARKERS, bytes_of, panels, plain, save, seconds, table
from docs.pages.page import Page, Stores
from fabric_kernels.collective import ALGORITHMS
from fabric_kernels.collective.nccl_model import Able, Channels, Group, cost
from fabric_kernels.inputs import CollectiveLibrary
from fabric_kernels.inputs.library import GENERATIONS
from fabric_kernels.quantity import quantities

GIB = 2**30
RING_GPUS = 65536
CHOOSERS = ("auto", "nccl", "calibrated")
"""Answers that choose an algorithm by a cost model of their own."""


def median(cell: xr.DataArray) -> xr.DataArray:
    """The median over samples."""
    return cell.sel(quantile=0.5)


def winners(root: xr.Dataset) -> str:
    """The fastest algorithm of every size and number of GPUs."""
    single = root.sel(collective=[c for c in root.collective.values if c not in CHOOSERS])
    time = median(single.allreduce_time)
    best = time.argmin("collective")
    rows = []
    for payload in root.payload.values:
        row = [bytes_of(float(payload))]
        for gpus in root.gpus.values:
            at = {"payload": payload, "gpus": gpus}
            name = str(single.collective.values[int(best.sel(at))])
            row.append(f"{name}, {seconds(float(time.sel(at).min()))}")
        rows.append(row)
    return table(["payload", *(f"{int(g):,} GPUs" for g in root.gpus.values)], rows)


def at_one_gib(root: xr.Dataset) -> str:
    """Time of every algorithm at 1 GiB, and how much of it is latency."""
    rows = []
    for name in root.collective.values:
        row = [f"`{name}`"]
        for gpus in root.gpus.values:
            cell = root.sel(collective=name, gpus=gpus, payload=GIB)
            time, latency = (float(median(cell[v])) for v in ("allreduce_time", "exchange_latency"))
            share = f", {latency / time:.0%} latency" if latency > 0.05 * time else ""
            row.append(f"{seconds(time)}{share}")
        rows.append(row)
    return table(["collective", *(f"{int(g):,} GPUs" for g in root.gpus.values)], rows)


def figure(root: xr.Dataset, path: Path) -> None:
    """Time against size at two sizes of cluster, and against GPUs at 1 GiB."""
    shown, axes = panels(3)
    many = [int(root.gpus.values[k]) for k in (1, -1)]
    for k, name in enumerate(root.collective.values):
        style = {
            "color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)], "ms": 4,
            "lw": 2.2 if name in CHOOSERS else 1.1,
        }  # fmt: skip
        one = median(root.allreduce_time.sel(collective=name))
        for panel, gpus in zip(axes, many, strict=False):
            panel.loglog(root.payload / 2**20, one.sel(gpus=gpus), **style)
        axes[2].loglog(root.gpus, one.sel(payload=GIB), label=str(name), **style)
    for panel, gpus in zip(axes, many, strict=False):
        plain(panel, f"{gpus:,} GPUs", "payload (MiB)", "all-reduce (s)")
    plain(axes[2], "1 GiB", "GPUs", "all-reduce (s)")
    shown.legend(loc="outside right upper", fontsize=8, frameon=False)
    save(shown, path)


def ring_words(root: xr.Dataset) -> str:
    """What a flat ring over very many GPUs is made of."""
    cell = root.sel(collective="ring", gpus=RING_GPUS, payload=GIB)
    time, latency = (float(median(cell[v])) for v in ("allreduce_time", "exchange_latency"))
    transfer = float(median(cell.fabric_transfer_time))
    hops = float(median(cell.fabric_hops))
    single = root.sel(collective=[c for c in root.collective.values if c not in CHOOSERS])
    fastest = median(single.allreduce_time.sel(gpus=RING_GPUS, payload=GIB))
    name = str(single.collective.values[int(np.nanargmin(fastest.values))])
    return (
        f"A flat ring over {RING_GPUS:,} GPUs takes {seconds(time)} for 1 GiB: "
        f"{latency / time:.0%} of it is the latency of {hops:,.0f} hops across the fabric and "
        f"those inside the domains, and only {seconds(transfer)} moves bytes. `{name}` needs "
        f"{seconds(float(fastest.min()))}. {library_words()}"
    )


def library_words() -> str:
    """What NCCL's own cost model says of the same ring, with its protocol for large messages."""
    number = {"payload": GIB, "nodes": RING_GPUS / 8, "gpus_per_node": 8.0}
    group = Group(**{name: jnp.asarray(float(value)) for name, value in number.items()})
    rate, yes, no = (jnp.asarray(value) for value in (24e9, 1.0, 0.0))
    known = {n: q.default for n, q in quantities(CollectiveLibrary).items()}
    known |= {"gpu_generation": GENERATIONS.index("hopper")}
    library = CollectiveLibrary(**{n: jnp.asarray(float(v or 0)) for n, v in known.items()})
    channels, able = Channels(rate, rate, rate), Able(yes, no)
    ring = cost(
        "all_reduce", group, channels, able, library, algorithms=("ring",), protocols=("simple",)
    )
    best = cost("all_reduce", group, channels, able, library)
    chosen = ALGORITHMS[int(best.algorithm)]
    return (
        f"NCCL's own model (answer `nccl`), with 16 channels of 24 GB/s, gives its ring "
        f"{seconds(float(ring.time))}, {float(ring.latency / ring.time):.0%} of it latency, and "
        f"would take `{chosen}` without SHARP, with {seconds(float(best.time))}."
    )


def write(stores: Stores, folder: Path) -> str:
    """The page."""
    root = stores["collectives"].to_dataset().load()
    figure(root, folder / "choose_a_collective.png")
    return f"""
# Choose a collective

One all-reduce over all GPUs: eight H100 to a node, 400 Gbit/s InfiniBand, NVLink and fabric
switches that can add. Medians over the uncertain latencies and routing, with hop noise, lost
frames and their repair in. The sweep is [sweeps/collectives.yaml](../sweeps/collectives.yaml);
change its base to your own cluster. The formulas are in [model.md](model.md#collective-how-long-\
does-the-data-exchange-take-when-nothing-goes-wrong).

![Time against payload and number of GPUs](choose_a_collective.png)

## The fastest

{winners(root)}

* Small messages want few hops: trees, halving and doubling, and switches that add. Large ones want
  every port busy in both directions, which rings and switches do.
* `auto` takes the fastest of all by transfer and latency, before noise and loss, as a library does.
* `nccl` is the choice and the prediction of NCCL's own cost model, which knows nothing of the
  fabric but its rate; `calibrated` is fitted to published tables of 2 to some 20 NVLink domains.
  Where they lie above the fastest, the library pays for hops and pipelines that the ideal
  algorithms do not have.
* `hierarchical`, `nvls`, `sharp` and their kin run the stage inside a domain and the stage across
  one after the other; a flat ring and the double binary tree use both networks at once, and so may
  a library. For large payloads the order leans to the latter for that reason, and the former can
  lie above what machines measure.

## Every algorithm at 1 GiB

{at_one_gib(root)}

{ring_words(root)}
"""


CHOOSE_A_COLLECTIVE = Page("choose_a_collective", ("collectives",), write)
