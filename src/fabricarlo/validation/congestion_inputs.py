"""Rows of congestion tables as the kernels' own inputs: SI, bytes and packets."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from fabric_kernels.congestion.dcqcn_law import Reaction
from fabric_kernels.congestion.marking import Curve
from fabricarlo.errors import FabricarloError

BITS = 8
DEFAULTS: Mapping[str, float] = {
    "pkt_B": 1000,
    "g": 1 / 256,
    "tau_us": 50,
    "tau_alpha_us": 55,
    "T_us": 55,
    "B_bytes": 1e7,
    "F": 5,
    "R_AI_bps": 40e6,
    "dt_us": 1,
}
"""Zhu et al., SIGCOMM'15 and CoNEXT'16, at 40G: what a row of DCQCN leaves out."""


class Parameters(dict[str, Any]):
    """The parameters of one row, and where it stands."""

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        super().__init__(values)
        self.place = place

    def number(self, name: str) -> float:
        """A number of the row. Raises FabricarloError where it is missing or none."""
        value = self.get(name, DEFAULTS.get(name))
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            raise FabricarloError(
                f"{self.place}: parameter {name} is {value!r} in params_json; give a number."
            )
        return float(value)

    def unknown(self, known: frozenset[str]) -> str | None:
        """Why the row is not one that the kernels answer, or None."""
        if more := sorted(self.keys() - known):
            return f"no quantity for {', '.join(more)}"
        return None


Lanes = list[Parameters]


def lanes_of(rows: Lanes, dtype: DTypeLike, of: Callable[[Parameters], float]) -> Array:
    """One number of every row."""
    return jnp.asarray(np.array([of(row) for row in rows], np.float64), dtype)


def reaction_of(rows: Lanes, dtype: DTypeLike) -> Reaction:
    """The senders of rows of DCQCN."""

    def lane(of: Callable[[Parameters], float]) -> Array:
        return lanes_of(rows, dtype, of)

    return Reaction(
        capacity=lane(lambda r: r.number("C_bps") / BITS / r.number("pkt_B")),
        flows=lane(lambda r: r.number("N")),
        alpha_gain=lane(lambda r: r.number("g")),
        notification_interval=lane(lambda r: r.number("tau_us") * 1e-6),
        alpha_timer=lane(lambda r: r.number("tau_alpha_us") * 1e-6),
        increase_timer=lane(lambda r: r.number("T_us") * 1e-6),
        byte_counter=lane(lambda r: r.number("B_bytes") / r.number("pkt_B")),
        recovery_steps=lane(lambda r: r.number("F")),
        additive_increase=lane(lambda r: r.number("R_AI_bps") / BITS / r.number("pkt_B")),
    )


def curve_of(rows: Lanes, dtype: DTypeLike, *, clamped: bool) -> Curve:
    """The marking curves of rows of DCQCN; not clamped, the line runs on beyond its end."""

    def packets(row: Parameters, name: str) -> float:
        return row.number(name) / row.number("pkt_B")

    end = lanes_of(rows, dtype, lambda r: packets(r, "Kmax_B"))
    return Curve(
        start=lanes_of(rows, dtype, lambda r: packets(r, "Kmin_B")),
        end=end,
        largest=lanes_of(rows, dtype, lambda r: r.number("Pmax")),
        certain=end if clamped else jnp.full_like(end, 1e30),
    )


def code_of(name: str) -> tuple[int, int]:
    """Symbols of a codeword and those that carry data, of a name such as RS(544,514)."""
    found = re.fullmatch(r"RS\((\d+),(\d+)\)", name.replace(" ", ""))
    return (int(found[1]), int(found[2])) if found else (0, 0)
