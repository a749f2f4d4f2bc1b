"""Fit the parameters of the answer `calibrated` to measured tables, and predict with them.

Parameters are named as the quantities of the record Calibration; those of one GPU generation or
one fabric have its name after a colon: `reduction_rate:hopper`, `fabric_delay:tcpx`.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from fabric_kernels.collective.calibrated_model import CHAIN_SHARE, Fabric, calibrated_cost
from fabric_kernels.collective.nccl_model import Group
from fabric_kernels.inputs import Calibration
from fabric_kernels.quantity import quantities
from fabricarlo.catalog import presets
from fabricarlo.validation.calibration_tables import ADDING, Measurement

Parameters = Mapping[str, float]

RING_RATES = {
    "volta": 120e9,
    "ampere": 240e9,
    "hopper": 370.8e9,
    "blackwell": 721.8e9,
    "cdna3": 316e9,
}
"""Bus bandwidth of a ring in one domain, B/s: not fitted. NVIDIA: links x 20, 20.6 or 40.1 GB/s, as
NCCL v2.30.7 counts them (src/graph/topo.h); MI300X: its published table of one node."""

START: Parameters = {
    "fabric_efficiency": 0.94,
    "gather_efficiency": 1.0,
    "start_latency": 5e-6,
    "gather_hop_latency": 1e-6,
    "small_message_rate": 20e9,
    "chunk_hop_latency": 20.9e-6,
    "chunk_delay_factor": 1.0,
    "domain_fill": 5e-6,
    "ring_fill": 6.8e-6,
    "reduction_rate:hopper": 280e9,
    "reduction_rate:blackwell": 560e9,
    "fabric_delay:efa-1": 10e-6,
    "fabric_delay:efa-2": 10e-6,
    "fabric_delay:tcpx": 10e-6,
}
"""Where a fit starts and what it is drawn to where no table speaks: 94 % of a port, NCCL's own hop
latencies, 69 % of NVLink times 9/8 for switches that add; the rest are orders of magnitude."""

PULL = 0.1
"""Weight of START in a fit: a factor e away counts as all rows of a file that are 4 % off."""

LARGE, SMALL = 2**26, 2**16  # bytes: what tables of bandwidth and of latency are read for
WEIGHTS = (4.0, 0.7, 1.0)  # of all large, middle and small rows of a file together
ONE_DOMAIN = 0.3  # a table without fabric says little of one
ROBUST = 0.1  # relative deviation from which rows count less and less
_PAD = 512


def fit(tables: Sequence[Measurement], start: Parameters = START) -> dict[str, float]:
    """Parameters with the least robust sum of squared logarithmic errors over these tables.

    Every file counts alike, its rows share WEIGHTS. All parameters are positive: their logarithms
    are fitted.
    """
    lanes = _Lanes.of(tables)
    weights, names = np.sqrt(_weights(tables)), list(start)
    centre = np.log([start[name] for name in names])
    measured = np.concatenate([table.times for table in tables])

    def errors(logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
        times = lanes.times(dict(zip(names, np.exp(logarithms), strict=True)))
        pulled = PULL * (logarithms - centre)
        return np.concatenate([weights * np.log(times / measured), pulled])

    found = least_squares(errors, centre, loss="soft_l1", f_scale=ROBUST)
    return dict(zip(names, np.exp(found.x).tolist(), strict=True))


def predict(parameters: Parameters, tables: Sequence[Measurement]) -> list[NDArray[np.float64]]:
    """Predicted times of every table, s, through the product's own kernel in double precision."""
    if not tables:
        return []
    times = _Lanes.of(tables).times(parameters)
    return np.split(times, np.cumsum([table.sizes.size for table in tables])[:-1])


def leave_one_out(
    tables: Sequence[Measurement], start: Parameters = START
) -> dict[str, list[NDArray[np.float64]]]:
    """Predicted over measured, less 1, for every file, by a fit to all the other files."""
    found = {}
    for key in dict.fromkeys(table.key for table in tables):
        own = [table for table in tables if table.key == key]
        others = fit([table for table in tables if table.key != key], start)
        found[key] = errors_of(others, own)
    return found


def errors_of(parameters: Parameters, tables: Sequence[Measurement]) -> list[NDArray[np.float64]]:
    """Predicted over measured, less 1."""
    pairs = zip(predict(parameters, tables), tables, strict=True)
    return [times / table.times - 1 for times, table in pairs]


def shipped() -> dict[str, float]:
    """The parameters of the catalog: defaults of the record, and presets `calibration/...`."""
    defaults = {n: q.default for n, q in quantities(Calibration).items() if q.default is not None}
    found = {name: defaults[name] for name in START if ":" not in name}
    for name, preset in presets().items():
        kind, _, label = name.partition("/")
        if kind == "calibration":
            values = preset.settings.values
            found |= {f"{n}:{label}": v for n, v in values.items() if f"{n}:{label}" in START}
    return found


@dataclasses.dataclass(frozen=True)
class _Lanes:
    """Rows of tables as lanes of the kernel, padded so that few programs are compiled."""

    rows: int
    columns: NDArray[np.float64]
    labels: tuple[tuple[str, str], ...]  # (generation, fabric) of every lane

    @classmethod
    def of(cls, tables: Sequence[Measurement]) -> "_Lanes":
        columns = np.concatenate([_columns(table) for table in tables], axis=1)
        rows = columns.shape[1]
        labels = [(t.generation, t.fabric) for t in tables for _ in range(t.sizes.size)]
        padding = -rows % _PAD
        padded = np.pad(columns, ((0, 0), (0, padding)), mode="edge")
        return cls(rows, padded, (*labels, *labels[-1:] * padding))

    def times(self, parameters: Parameters) -> NDArray[np.float64]:
        """Predicted times, s."""
        ring = [RING_RATES[generation] for generation, _ in self.labels]
        reduction = [reduction_rate(parameters, generation) for generation, _ in self.labels]
        delay = [parameters.get(f"fabric_delay:{fabric}", 0.0) for _, fabric in self.labels]
        common = {name: value for name, value in parameters.items() if ":" not in name}
        with jax.enable_x64(True):  # noqa: FBT003 - JAX takes it so
            shared = {name: jnp.asarray(value) for name, value in common.items()}
            own = np.array([ring, reduction, delay], dtype=np.float64)
            return np.asarray(_evaluated(self.columns, own, shared))[: self.rows]


def reduction_rate(parameters: Parameters, generation: str) -> float:
    """The fitted rate of switches that add, else that of a tree along chains of GPUs."""
    fitted = parameters.get(f"reduction_rate:{generation}")
    return CHAIN_SHARE * RING_RATES[generation] if fitted is None else fitted


def _columns(table: Measurement) -> NDArray[np.float64]:
    place = (
        float(table.operation == "all_reduce"),
        float(table.generation in ADDING),
        table.domains,
        table.ranks / table.domains,
        table.domain_rate,
    )
    fixed = np.repeat(np.array(place, dtype=np.float64)[:, None], table.sizes.size, axis=1)
    return np.concatenate([fixed, table.sizes[None]])


@jax.jit
def _evaluated(
    columns: NDArray[np.float64], own: NDArray[np.float64], shared: Mapping[str, jax.Array]
) -> jax.Array:
    reduces, adds, domains, per_domain, rate, size = jnp.asarray(columns)
    ring, reduction, delay = jnp.asarray(own)
    calibration = Calibration(
        ring_rate=ring, reduction_rate=reduction, fabric_delay=delay, **shared
    )
    group, fabric = Group(size, domains, per_domain), Fabric(rate, adds)
    both = (calibrated_cost(o, group, fabric, calibration) for o in ("all_reduce", "all_gather"))
    reduced, gathered = (cost.time for cost in both)
    return jnp.where(reduces > 0.5, reduced, gathered)


def _weights(tables: Sequence[Measurement]) -> NDArray[np.float64]:
    parts = []
    for table in tables:
        bands = (table.sizes >= LARGE, table.sizes < LARGE, table.sizes <= SMALL)
        bands = (bands[0], bands[1] & ~bands[2], bands[2])
        weight = np.zeros(table.sizes.size)
        for band, total in zip(bands, WEIGHTS, strict=True):
            weight[band] = total / max(int(band.sum()), 1)
        parts.append(weight * (ONE_DOMAIN if table.domains == 1 else 1.0))
    return np.concatenate(parts)
