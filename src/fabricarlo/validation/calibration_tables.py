"""Measured tables as the calibration sees them, from an index of nccl-tests logs."""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fabricarlo.nccl_tests import Run, read_log

GENERATIONS = {
    "Volta": "volta",
    "Ampere": "ampere",
    "Hopper": "hopper",
    "Blackwell": "blackwell",
    "CDNA3": "cdna3",
}
"""Generations that have parameters, by their name in an index."""

ADDING = ("hopper", "blackwell")
"""Generations whose NVLink switches add."""

NO_FABRIC = "none"
RDMA = ("ib", "roce")
EARLY_EFA = ("volta", "ampere")  # P3 and P4 instances; P5 and later have the second generation
GIGA = 1e9
OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter")

DAMAGED = {
    "08": "a floor of 1 ms below 16 MiB",
    "60": "GB10 is not in the catalog",
    "73": "a copy of 27",
    "74": "a copy of 19",
}
"""Logs of the published collection that no fit may use, by the first two digits of their name."""


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One run of one collective: where it ran and what it took, the shorter of both halves."""

    name: str
    operation: str
    generation: str  # of GENERATIONS
    fabric: str  # calibration/... of the catalog, or NO_FABRIC in one domain
    ranks: int
    domains: int
    domain_rate: float  # B/s of all network ports of a domain; 0 in one domain
    sizes: NDArray[np.float64]  # B
    times: NDArray[np.float64]  # s
    healthy: bool

    @property
    def key(self) -> str:
        """What is left out together: all runs of a file."""
        return self.name


def fabric_of(row: Mapping[str, str], generation: str) -> str | None:
    """The calibration that stands for an index row's fabric; None where there is none."""
    if int(row["domains"]) == 1:
        return NO_FABRIC
    fabric = row["fabric"].lower()
    if fabric in RDMA:
        return "rdma"
    if fabric == "efa":
        return "efa-1" if generation in EARLY_EFA else "efa-2"
    if fabric == "tcp" and re.search("TCPX", row["nics_per_node_gbps"]):
        return "tcpx"
    return None


def measurement(row: Mapping[str, str], run: Run) -> Measurement | str:
    """A run with what its index row says of the machine, or why it cannot be predicted."""
    if run.refusals:
        return f"refused: {run.refusals[0]}"
    if run.operation not in OPERATIONS:
        return f"no calibration of {run.operation}"
    if (generation := GENERATIONS.get(row["gpu_generation"])) is None:
        return f"no parameters of GPU generation {row['gpu_generation']}"
    if not row["domains"].isdigit():
        return f"runs on {row['domains']} domains in one table"
    if (fabric := fabric_of(row, generation)) is None:
        return f"no parameters of fabric {row['fabric']} ({row['nics_per_node_gbps']})"
    domains = int(row["domains"])
    if domains > 1 and not row["nic_GBps_per_domain"]:
        return "the rate of a domain's network ports is not known"
    ranks = ranks_of(row, run)
    if ranks is None:
        return "the number of ranks is not known"
    rows = [r for r in run.rows if r.size > 0]
    return Measurement(
        name=row["file"],
        operation=run.operation,
        generation=generation,
        fabric=fabric,
        ranks=ranks,
        domains=domains,
        domain_rate=float(row["nic_GBps_per_domain"]) * GIGA if domains > 1 else 0.0,
        sizes=np.array([r.size for r in rows], dtype=np.float64),
        times=np.array([r.least_time for r in rows], dtype=np.float64),
        healthy=row["healthy"] == "yes",
    )


def ranks_of(row: Mapping[str, str], run: Run) -> int | None:
    """Ranks: the index's where the numbers of the run allow it, else what the numbers say."""
    named = int(row["gpus"]) if row["gpus"].isdigit() else None
    if run.ranks is None:
        return named
    low, high = run.ranks_range or (run.ranks, run.ranks)
    return named if named is not None and low <= named <= high else run.ranks


def measurements(
    index: Iterable[Mapping[str, str]], folder: Path
) -> Iterator[tuple[Mapping[str, str], Measurement | str]]:
    """Every run of every log of an index, or why it cannot be predicted."""
    for row in index:
        for run in read_log(folder / row["file"]):
            yield row, measurement(row, run)


def usable(found: Measurement) -> bool:
    """Whether a fit may use it: healthy, none of the DAMAGED, and of a fitted parameter at all.

    A table of one domain tells of switches that add alone: rings inside are NCCL's own numbers.
    """
    whole = found.healthy and found.name[:2] not in DAMAGED and found.sizes.size > 0
    return whole and (found.domains > 1 or found.generation in ADDING)
