"""A small sweep on the real model, cheap to compile, for tests of the engine."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

import fabricarlo
from fabricarlo.engine import Engine
from fabricarlo.plan import Plan
from fabricarlo.spec import load_spec
from fabricarlo.sweep import Sweep

SPEC: dict[str, Any] = {
    "schema_version": 1,
    "sweep": "small",
    "seed": 7,
    "samples": 3000,
    "replicates": 8,
    "base": ["gpu/b200", "workload/dense-2t"],
    "set": {"nvlink_domain": 8, "data_jitter_stall": "0 s", "jitter": "mean"},
    "axes": {
        "fabric": ["fabric/roce-800g", "fabric/infiniband-xdr"],
        "gpus": [8192, 16384, 65536],
    },
    "draws": {
        "payload_fraction": {"uniform": {"low": 0.9, "high": 0.97}},
        "packet_loss_rate": {"times": {"loguniform": {"low": 0.1, "high": 1e4}}},
        "adapter_latency": {"lognormal": {"median": "1.5 us", "p99": "3 us"}},
        "routing_efficiency": {"beta": {"alpha": 8, "beta": 1}},
    },
    "outputs": ["allreduce_time", "data_loss_stall", "fabric_transfer_time"],
    "keep": {"samples": True},
}


def text(**changes: Any) -> str:
    """The spec as YAML (JSON is YAML too); a change replaces a key, and None removes it."""
    return json.dumps({k: v for k, v in (SPEC | changes).items() if v is not None}, indent=1)


def sweep(**changes: Any) -> Sweep:
    """The spec, read."""
    return load_spec(text(**changes))


def run(out: Path | None = None, *, block: int = 2**15, **changes: Any) -> xr.DataTree:
    """Run the small sweep."""
    return fabricarlo.run(sweep(**changes), out, block=block)


def samples(tree: xr.DataTree) -> dict[str, np.ndarray]:
    """Every variable of the samples, as the bits it was stored with."""
    found = tree["/samples"].to_dataset()
    return {str(n): found[n].values for n in found.data_vars}


def assert_same_bits(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    """Equal names, shapes, types and bits."""
    assert one.keys() == other.keys()
    for name, values in one.items():
        theirs = other[name]
        assert values.shape == theirs.shape, name
        assert values.dtype == theirs.dtype, name
        assert values.tobytes() == theirs.tobytes(), name


def everything(path: Path) -> dict[str, Any]:
    """Decoded arrays and attributes of `/`, `/samples` and `/histograms`, for exact comparison."""
    found: dict[str, Any] = {}
    kept = ("samples",) if (path / "samples").exists() else ()
    for group in ("", *kept, "histograms"):
        data = xr.open_zarr(path, group=group or None)
        found[group] = dict(data.attrs)
        for name, variable in data.variables.items():
            values = variable.values
            bits = values.tolist() if values.dtype.kind in "TUO" else values.tobytes()
            found[f"{group}/{name}"] = (variable.dims, values.shape, dict(variable.attrs), bits)
    return found


def evaluate(plan: Plan, devices: list[jax.Device] | None = None) -> dict[str, np.ndarray]:
    """Outputs and draws of every block of a plan, without a store: [cell, sample]."""
    engine = Engine(plan, devices)
    layout, found = plan.layout, {}
    for number in range(layout.block_count):
        block = layout.at(number)
        for tile in engine.tiles(block):
            cols = tile.columns
            cells = block.cells[cols.position[: cols.count]]
            sample = cols.index[: cols.count, None] * layout.replicates + np.arange(
                layout.replicates
            )
            for name, array in (tile.outputs | tile.draws).items():
                place = found.setdefault(
                    name,
                    np.full(
                        (layout.cell_count, layout.columns_per_cell * layout.replicates),
                        np.nan,
                        np.float32,
                    ),
                )
                place[cells[:, None], sample] = np.asarray(array).T[: cols.count]
    return {n: v[:, : layout.samples] for n, v in found.items()}


def with_(plan_sweep: Sweep, **changes: Any) -> Sweep:
    """A sweep with fields replaced."""
    return dataclasses.replace(plan_sweep, **changes)
