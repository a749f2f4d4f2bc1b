"""A GPU (or TPU) against this machine's CPU: same words and counts, close outputs, and speed.

    python -m bench.gpu [--samples N] [--json FILE]

Needs jax for the device, numpy and xarray beside the package. Words and histograms must be equal
bit for bit; outputs must agree to `CLOSE` of themselves except in `FEW` of the lanes, which lie at
a threshold (a timeout or none). Without an accelerator it says so and compares the CPU with itself
in a small form, which only shows that the script runs. Exit code 1 where something differs.
"""

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bench.counted import Module, Work
from bench.sides import SPEC, Ours, plan_of
from fabricarlo.engine import TILE_OF_ACCELERATOR, Engine
from fabricarlo.plan import Plan
from fabricarlo.sampling.addresses import stream_keys
from fabricarlo.sampling.sobol import reversed_words
from fabricarlo.sampling.words import narrow_words
from fabricarlo.summaries.summariser import Columns, Summariser
from fabricarlo.summaries.wire import to_bytes

CLOSE = 1e-5
"""Relative: about 84 ulp of float32. A tail of exp and log differs by ulps between devices."""
FEW = 1e-3
OVERRIDES = ("axes.gpus=[98304]", "axes.fabric=[fabric/roce-800g]", "axes.cooling=[cooling/air]")
STREAMS, REPLICATES = 17, 8


def words_on(device: jax.Device, sampler: str, columns: int) -> np.ndarray:
    """The words of some streams, made on a device."""
    keys = stream_keys(1, [f"stream {k}" for k in range(STREAMS)], REPLICATES, 0)
    with jax.default_device(device):
        index = jnp.arange(columns, dtype=jnp.uint32)
        points = jax.jit(reversed_words, static_argnums=1)(index, tuple(range(STREAMS)))
        counter = jnp.broadcast_to(index[None, :], (REPLICATES, columns))
        key = (jnp.asarray(keys[:, :, :1]), jnp.asarray(keys[:, :, 1:]))
        made = jax.jit(narrow_words, static_argnums=0)(sampler, points, key, counter)
    return np.asarray(made)


def summary_on(device: jax.Device, columns: int) -> bytes:
    """The summary of fixed values, made on a device: counts and extremes, without the moments."""
    generator = np.random.Generator(np.random.SFC64(1))
    values = generator.lognormal(0, 2, (REPLICATES, columns)).astype(np.float32)
    values[:, ::97], values[0, 5] = 0, np.inf
    summariser = Summariser(("value",), {}, REPLICATES, columns * REPLICATES, select_on_device=True)
    block = summariser.block()
    where = Columns(np.zeros(columns, np.int64), np.arange(columns))
    block.add({"value": jax.device_put(values, device)}, where)
    part = block.finish()[0]
    blank = {key: np.zeros_like(moments) for key, moments in part.nodes.items()}
    return to_bytes(dataclasses.replace(part, nodes=blank))


def outputs_on(device: jax.Device, plan: Plan) -> dict[str, np.ndarray]:
    """Outputs and draws of the first tile."""
    tile = next(Engine(plan, [device]).tiles(plan.layout.at(0)))
    return {n: np.asarray(a) for n, a in (tile.outputs | tile.draws).items()}


def distances(one: np.ndarray, other: np.ndarray) -> dict[str, float]:
    """How far two float32 results are apart: in ulps of the larger, and the share beyond CLOSE."""
    a, b = one.astype(np.float64), other.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    size = np.where(same, 1.0, np.maximum(np.abs(a), np.abs(b)))
    apart = np.where(same, 0.0, np.abs(a - b))
    apart = np.where(np.isfinite(apart), apart, np.inf)  # one of them is no number
    tiny = float(np.finfo(np.float32).tiny)
    ulp = np.spacing(np.clip(np.nan_to_num(size), tiny, 3e38).astype(np.float32))
    ranks = {"median": 0.5, "most": 0.999, "largest": 1.0}
    found = {n: float(np.quantile(apart / ulp, q, method="higher")) for n, q in ranks.items()}
    return found | {"beyond": float(np.mean(apart > CLOSE * np.nan_to_num(size)))}


def speed(device: jax.Device, plan: Plan) -> dict[str, float]:
    """Configurations a second with summaries, kernels of a tile, and bytes it moves a sample."""
    ours = Ours(plan, (0,), [device])
    ours.summarise()
    best = min(_seconds(ours.summarise) for _ in range(3))
    work = Work.of(ours.engine, plan.layout.at(0))
    found = {"configurations a second": ours.samples / best}
    for name in work.programs:
        compiled = work.compiled(name)
        found[f"kernels of {name}"] = Module.of(compiled.as_text()).kernels()
        cost = compiled.cost_analysis() or {}
        found[f"bytes a sample of {name}"] = cost.get("bytes accessed", np.nan) / work.lanes
    return found


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(device: jax.Device, cpu: jax.Device, tile: int, samples: int) -> dict[str, Any]:
    """Everything, as one record."""
    columns = tile // REPLICATES
    plan = plan_of(SPEC, f"samples={samples}", *OVERRIDES)
    plan = Plan(plan.sweep, block=max(tile, 2**20), tile=tile)
    one, other = outputs_on(device, plan), outputs_on(cpu, plan)
    result: dict[str, Any] = {
        f"words equal, {s}": bool((words_on(device, s, columns) == words_on(cpu, s, columns)).all())
        for s in ("sobol", "random")
    }
    result["counts and extremes equal"] = summary_on(device, columns) == summary_on(cpu, columns)
    result["outputs"] = {name: distances(one[name], other[name]) for name in one}
    result["outputs close"] = all(d["beyond"] <= FEW for d in result["outputs"].values())
    return result | {"speed": speed(device, plan)}


def report(result: dict[str, Any]) -> str:
    """The record for people."""
    checks = {n: v for n, v in result.items() if isinstance(v, bool)}
    lines = [f"{name}: {'yes' if equal else 'NO'}" for name, equal in checks.items()]
    lines += ["", "| quantity | ulps, median | 99.9 % | largest | lanes beyond 1e-5 |"]
    lines += ["|---|---|---|---|---|"]
    for name, d in result["outputs"].items():
        cells = name, *(f"{d[key]:.3g}" for key in ("median", "most", "largest", "beyond"))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"{n}: {v:,.6g}" for n, v in result["speed"].items())])


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=2**24)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    asked = parser.parse_args()
    device, cpu = jax.local_devices()[0], jax.local_devices(backend="cpu")[0]
    tile, samples = TILE_OF_ACCELERATOR, asked.samples
    if device.platform == "cpu":
        print("No GPU or TPU is here: the CPU is compared with itself, in a small form.")
        tile, samples = 2**15, 2**18
    print(f"{device.device_kind} against {cpu.device_kind}, jax {jax.__version__}, tile {tile:,}")
    result = compare(device, cpu, tile, samples)
    print(report(result))
    if asked.json:
        asked.json.write_text(json.dumps({"device": device.device_kind} | result), encoding="utf-8")
    sys.exit(not all(v for v in result.values() if isinstance(v, bool)))


if __name__ == "__main__":
    main()
