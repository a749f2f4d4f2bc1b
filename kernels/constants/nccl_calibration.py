"""Fit the parameters of the answer `calibrated` to published nccl-tests tables; writes them.

Run: python kernels/constants/nccl_calibration.py INDEX.csv        (half a minute)

INDEX.csv names the logs, which lie beside it, and what each ran on. The shared parameters become
defaults of the record Calibration, those of a GPU generation or a fabric become presets
`calibration/...`. Printed: parameters against tables, the error on every table, and the same by a
fit to all other tables.
"""

import argparse
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabricarlo.validation.calibration import (
    LARGE,
    RING_RATES,
    SMALL,
    errors_of,
    fit,
    leave_one_out,
    reduction_rate,
)
from fabricarlo.validation.calibration_tables import (
    ADDING,
    GENERATIONS,
    Measurement,
    measurements,
    usable,
)

ROOT = Path(__file__).parents[2]
VALUES = ROOT / "kernels/fabric_kernels/inputs/calibration_values.py"
PRESETS = ROOT / "src/fabricarlo/presets/calibration.yaml"
SCRIPT = "kernels/constants/nccl_calibration.py"

PRODUCTS = {
    "volta": "V100",
    "ampere": "A100",
    "hopper": "H100 and H200",
    "blackwell": "B200, GB200 and GB300",
    "cdna3": "AMD MI300X",
}
RING_SOURCES = {
    "volta": ("6 NVLinks x 20 GB/s, NCCL v2.30.7 src/graph/topo.h", "C"),
    "ampere": ("12 NVLinks x 20 GB/s, NCCL v2.30.7 src/graph/topo.h", "C"),
    "hopper": ("18 NVLinks x 20.6 GB/s, NCCL v2.30.7 src/graph/topo.h", "C"),
    "blackwell": ("18 NVLinks x 40.1 GB/s, NCCL v2.30.7 src/graph/topo.h", "C"),
    "cdna3": ("rccl-tests table of one node of 8 MI300X, busbw 316 GB/s", "M"),
}
CHAIN_SOURCE = "tree along chains, 0.92 x 0.85 / 2 of the ring, NCCL v2.30.7 src/graph/tuning.cc"
FABRICS = {
    "rdma": "InfiniBand or RoCE, by network adapters that reach GPU memory",
    "efa-1": "first generation of AWS EFA, P4 instances",
    "efa-2": "second generation of AWS EFA and later, P5 instances and later",
    "tcpx": "TCP with GPU memory, Google's GPUDirect-TCPX and TCPXO",
}


def parameters_text(parameters: Mapping[str, float], source: str) -> str:
    """The module of shared values."""
    shared = {name: value for name, value in parameters.items() if ":" not in name}
    lines = "".join(f'    "{name}": {value:.4g},\n' for name, value in shared.items())
    return (
        f'"""Parameters fitted by {SCRIPT}; do not edit."""\n\n'
        f'SOURCE = "{source} [C]"\n\nDEFAULTS = {{\n{lines}}}\n'
    )


def presets_text(parameters: Mapping[str, float], source: str) -> str:
    """The presets of GPU generations and fabrics."""
    text = f"# Parameters of collective: calibrated. Written by {SCRIPT}; do not edit.\n"
    for name in GENERATIONS.values():
        why = source if name in ADDING else CHAIN_SOURCE
        entries: dict[str, tuple[str, str, str]] = {
            "ring_rate": (f"{RING_RATES[name] / 1e9:.4g} GB/s", *RING_SOURCES[name]),
            "reduction_rate": (f"{reduction_rate(parameters, name) / 1e9:.4g} GB/s", why, "C"),
        }
        text += _preset(name, f"one NVLink or xGMI domain of {PRODUCTS[name]}", entries)
    for name, meaning in FABRICS.items():
        delay = parameters.get(f"fabric_delay:{name}", 0.0)
        why = source if delay else "by definition: the others are measured against it"
        text += _preset(name, meaning, {"fabric_delay": (f"{delay * 1e6:.4g} us", why, "C")})
    return text


def _preset(name: str, meaning: str, entries: Mapping[str, tuple[str, str, str]]) -> str:
    lines = "".join(
        f'    {quantity}:\n      {{value: {value}, source: "{source}", evidence: {evidence}}}\n'
        for quantity, (value, source, evidence) in entries.items()
    )
    return f'\n{name}:\n  meaning: "{meaning}"\n  set:\n{lines}'


def shown(table: Measurement, found: NDArray[np.float64]) -> str:
    """Median and worst error of one table, large and small messages apart."""
    parts = []
    for name, rows in (("large", table.sizes >= LARGE), ("small", table.sizes <= SMALL)):
        if rows.any():
            off = np.abs(found[rows])
            parts.append(f"{name} {np.median(off):6.1%} worst {off.max():6.1%}")
    return "   ".join(parts)


def judged(tables: Sequence[Measurement], found: Sequence[NDArray[np.float64]]) -> str:
    """The same over all tables of several domains."""
    pairs = [(t, e) for t, e in zip(tables, found, strict=True) if t.domains > 1]
    large = np.abs(np.concatenate([e[t.sizes >= LARGE] for t, e in pairs]))
    small = np.concatenate([e[t.sizes <= SMALL] for t, e in pairs])
    within = np.mean((small > -0.5) & (small < 1))
    return (
        f"large messages: median {np.median(large):.1%}, worst {large.max():.1%}; "
        f"small ones within a factor 2: {within:.0%}"
    )


def main() -> None:
    """Fit, print and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("index", type=Path, help="index.csv of a folder of nccl-tests logs")
    path: Path = parser.parse_args().index
    with path.open(encoding="utf-8", newline="") as file:
        every = [found for _, found in measurements(csv.DictReader(file), path.parent)]
    tables = [t for t in every if not isinstance(t, str) and usable(t)]
    parameters = fit(tables)
    several = sum(table.domains > 1 for table in tables)
    print(
        f"{len(parameters)} parameters, {len(tables)} tables, {several} of them of several "
        f"domains, {sum(t.sizes.size for t in tables)} rows"
    )
    print("\n".join(f"  {name:28} {value:.4g}" for name, value in parameters.items()))
    own, others = errors_of(parameters, tables), leave_one_out(tables)
    left_out = [others[t.key][[u for u in tables if u.key == t.key].index(t)] for t in tables]
    for title, found in (("fitted to all", own), ("each left out of its fit", left_out)):
        print(f"\n{title}: {judged(tables, found)}")
        for table, errors in zip(tables, found, strict=True):
            print(f"  {table.name[:44]:44} {table.fabric:6} {shown(table, errors)}")
    source = f"fit of {len(parameters)} parameters to {len(tables)} nccl-tests tables, {SCRIPT}"
    VALUES.write_text(parameters_text(parameters, source), encoding="utf-8")
    PRESETS.write_text(presets_text(parameters, source), encoding="utf-8")


if __name__ == "__main__":
    main()
