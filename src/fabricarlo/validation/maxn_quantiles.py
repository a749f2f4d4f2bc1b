"""Quantiles of the largest of N draws against tables of many digits."""

import re
from functools import partial

import jax
import numpy as np

from fabric_kernels.noise import HopNoise
from fabric_kernels.noise.exponential import ExponentialNoise
from fabric_kernels.noise.gamma import GammaNoise
from fabric_kernels.noise.generalised_pareto import ParetoNoise
from fabric_kernels.noise.groups import largest_of_groups
from fabric_kernels.noise.lognormal import LognormalNoise
from fabric_kernels.noise.normal import NormalNoise
from fabric_kernels.noise.spikes import SpikyNoise
from fabric_kernels.noise.uniform import UniformNoise
from fabric_kernels.noise.weibull import WeibullNoise
from fabric_kernels.quantity import quantities
from fabricarlo.validation.hop_laws import filled, lane, lanes
from fabricarlo.validation.report import Criterion, Report, Row, Table

KIND = "quantiles of the largest of N draws"
COLUMNS = frozenset({"law", "params", "N", "q", "survival_p", "value", "method"})
ALLOWED = 5e-6

_NUMBER = r"([-+]?[0-9.]+(?:e[-+]?[0-9]+)?)"


def _numbers(text: str) -> dict[str, float]:
    return {k: float(v) for k, v in re.findall(rf"(\w+)={_NUMBER}", text)}


def _law(name: str, params: str) -> HopNoise | str:
    """The law of a row, or why there is none."""
    given = _numbers(params)
    scale = given.get("scale", 1.0)
    match name:
        case "exp" | "shifted_exp":
            return filled(ExponentialNoise, given.get("shift", 0.0), scale)
        case "lognormal":
            return filled(LognormalNoise, float(np.exp(given["mu"])), given["sigma"])
        case "normal":
            return filled(NormalNoise, given["sd"])
        case "weibull":
            return filled(WeibullNoise, scale, given["k"])
        case "gamma":
            return filled(GammaNoise, scale, given["shape"])
        case "gpd" | "pareto":
            return filled(ParetoNoise, scale, given["xi"])
        case "uniform":
            return filled(UniformNoise, given.get("low", 0.0), given.get("width", 1.0))
        case "mixture":
            return _mixture(params)
    return f"no law of hop noise is called {name}"


def _mixture(params: str) -> HopNoise | str:
    given = _numbers(params)
    needed = {"mu", "sigma", "shift", "scale", "eps"}
    if not needed <= set(given):
        return f"a mixture of a lognormal and a shifted exponential law gives {sorted(needed)}"
    return filled(
        SpikyNoise, float(np.exp(given["mu"])), *(given[k] for k in ("sigma", "eps", "shift")),
        given["scale"],
    )  # fmt: skip


def _groups(params: str) -> list[tuple[float, HopNoise]] | None:
    """N1=1014 lognormal(0,0.25);N2=10 lognormal(0.2,0.25)."""
    found = re.findall(rf"N\d+={_NUMBER} lognormal\({_NUMBER},{_NUMBER}\)", params)
    if len(found) != 2:
        return None
    return [(float(n), filled(LognormalNoise, float(np.exp(float(m))), float(s)))
            for n, m, s in found]  # fmt: skip


@partial(jax.jit)
def _largest(noise: HopNoise, count: jax.Array, exponential: jax.Array) -> jax.Array:
    return noise.largest(count, exponential)


def _exponentials(rows: list[dict[str, str]]) -> np.ndarray:
    """-log q in double precision, from the end that keeps its digits."""
    q = np.array([float(r["q"]) for r in rows])
    return -np.where(q > 0.5, np.log1p(q - 1.0), np.log(q))


def _found(law: str, params: str, rows: list[dict[str, str]]) -> np.ndarray | str:
    exponential = lanes(_exponentials(rows))
    if law == "two_groups":
        groups = _groups(params)
        if groups is None:
            return "groups are two lognormal laws: N1=... lognormal(mu,sigma);N2=..."
        (one, first), (other, second) = groups
        every = lane(one) + 0 * exponential, lane(other) + 0 * exponential
        made = jax.jit(largest_of_groups)((every[0], first), (every[1], second), exponential)
        return np.asarray(made, float)[0]
    noise = _law(law, params)
    if isinstance(noise, str):
        return noise
    for name, declared in quantities(type(noise)).items():
        value, (low, high) = float(getattr(noise, name)[0, 0]), declared.bounds
        if declared.unit == "1" and not low - 1e-6 <= value <= high + 1e-6:
            return f"{name} = {value:g} is outside [{low:g}, {high:g}]"
    count = lanes(np.array([float(r["N"]) for r in rows]))
    return np.asarray(_largest(noise, count, exponential), float)[0]


def validate(table: Table) -> Report:
    """Every row to 5e-6 of its value in single precision; of a centred law, of max(value, 0.01)."""
    grouped: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in table.rows:
        grouped.setdefault((row["law"], row["params"]), []).append(dict(row))
    made: list[Row] = []
    for (law, params), rows in grouped.items():
        found = _found(law, params, rows)
        for number, row in enumerate(rows):
            name = f"{law} {params} N={row['N']} q={row['q']}"
            value = float(row["value"])
            if isinstance(found, str):
                made.append(Row(name, value, None, "", "", "not applicable", found))
                continue
            floor = 1e-2 if law == "normal" else 1e-30
            error = abs(float(found[number]) - value) / max(abs(value), floor)
            verdict = "pass" if error <= ALLOWED else "fail"
            made.append(
                Row(name, value, float(found[number]), "", f"{error:.1e} relative", verdict)
            )
    errors = [float(r.deviation.split()[0]) for r in made if r.found is not None]
    worst = max(errors, default=0.0)
    demand = f"relative error of every quantile <= {ALLOWED:g}"
    return Report(
        str(table.path), KIND, made, [Criterion(demand, f"{worst:.2e}", worst <= ALLOWED)]
    )
