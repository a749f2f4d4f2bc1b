"""Rows of DCQCN: fixed points, and queues in time."""

import jax
import jax.numpy as jnp
import numpy as np

from fabric_kernels.congestion.dcqcn_delayed import Motion, Start, motion
from fabric_kernels.congestion.dcqcn_law import balance, faint_marking
from fabric_kernels.congestion.marking import queue_at
from fabric_kernels.maths.delayed import Schedule
from fabricarlo.validation.congestion_inputs import (
    BITS,
    Lanes,
    Parameters,
    curve_of,
    lanes_of,
    reaction_of,
)

Found = list[dict[str, float | str]]

FIXED = frozenset(
    {"B_bytes", "C_bps", "F", "Kmax_B", "Kmin_B", "N", "Pmax", "R_AI_bps", "T_us", "pkt_B"}
    | {"tau_alpha_us", "tau_us", "g"}
)
IN_TIME = FIXED | {"dt_us", "t_end_s", "tau_star_us", "red_slope"}

NONE = "none"
_STRIDE = 250
_MOST_BLOCKS = 800
_SINGLE = np.float32


def fixed_points(rows: Lanes) -> Found:
    """p*, alpha*, rates and the queue; `none` where the curve has no fixed point."""
    with jax.enable_x64(False):  # noqa: FBT003 - JAX takes it so
        reaction, curve = reaction_of(rows, _SINGLE), curve_of(rows, _SINGLE, clamped=True)
        point = jax.jit(balance)(reaction)
        faint = faint_marking(reaction)
        queue = queue_at(curve, point.marking)
        exists = np.asarray(point.marking <= curve.largest)
        columns = {
            "p_star": point.marking,
            "p_star_taylor": faint,
            "taylor_over_exact": faint / point.marking,
            "alpha_star": point.alpha,
        }
        numbers = {name: np.asarray(value, np.float64) for name, value in columns.items()}
        rates = {"R_C_star": point.current_rate, "R_T_star": point.target_rate}
        packet = np.array([row.number("pkt_B") for row in rows])
        gigabit = packet * BITS / 1e9
        numbers |= {n: np.asarray(v, np.float64) * gigabit for n, v in rates.items()}
        drain = np.asarray(queue / reaction.capacity, np.float64) * 1e6
        held = np.asarray(queue, np.float64) * packet / 1e3
    made: Found = []
    for lane, known in enumerate(exists):
        found: dict[str, float | str] = {n: float(v[lane]) for n, v in numbers.items()}
        found["q_star"] = float(held[lane]) if known else NONE
        found["q_delay"] = float(drain[lane]) if known else NONE
        found["q_star_for_comparison"] = found["q_star"]
        made.append(found)
    return made


def in_time(rows: Lanes) -> Found:
    """Queue and rates of the delayed equations over the second half of each run."""
    made: Found = [{} for _ in rows]
    runs: dict[tuple[int, bool], list[int]] = {}
    for lane, row in enumerate(rows):
        runs.setdefault((_steps(row), "red_slope" not in row), []).append(lane)
    for (steps, clamped), lanes in runs.items():
        some = [rows[lane] for lane in lanes]
        for lane, found in zip(lanes, _motions(some, steps, clamped=clamped), strict=True):
            made[lane] = found
    for found, fixed in zip(made, fixed_points(rows), strict=True):
        found["q_star_for_comparison"] = fixed["q_star"]
    return made


def _steps(row: Parameters) -> int:
    """Steps of a run; one without its length is of 600 ms, of the line that runs on."""
    length = row.number("t_end_s") if "t_end_s" in row else 0.6
    return max(round(length / (row.number("dt_us") * 1e-6)), 2)


def _motions(rows: Lanes, steps: int, *, clamped: bool) -> Found:
    lag = [round(row.number("tau_star_us") / row.number("dt_us")) for row in rows]
    memory = 1 << (max(lag) + 1).bit_length()
    half = steps // 2
    stride = max(_STRIDE, -(-half // _MOST_BLOCKS))
    schedule = Schedule(max(half // stride, 1), max(half // stride, 1), stride, memory)
    with jax.enable_x64(False):  # noqa: FBT003 - JAX takes it so
        reaction = reaction_of(rows, _SINGLE)
        curve = curve_of(rows, _SINGLE, clamped=clamped)
        begin = Start(reaction.capacity, jnp.ones_like(reaction.capacity))
        step = lanes_of(rows, _SINGLE, lambda r: r.number("dt_us") * 1e-6)
        found = motion(reaction, curve, begin, step, jnp.asarray(lag, jnp.int32), schedule)
        found = jax.tree.map(lambda x: np.asarray(x, np.float64), found)
    return [_numbers(row, found, lane) for lane, row in enumerate(rows)]


def _numbers(row: Parameters, found: Motion, lane: int) -> dict[str, float | str]:
    packet = row.number("pkt_B")
    kilobytes, gigabits = packet / 1e3, packet * BITS / 1e9
    return {
        "q_mean": float(found.queue.mean[lane]) * kilobytes,
        "q_std": float(found.queue.deviation[lane]) * kilobytes,
        "q_min": float(found.queue.least[lane]) * kilobytes,
        "q_max": float(found.queue.most[lane]) * kilobytes,
        "rate_mean": float(found.rate.mean[lane]) * gigabits,
        "utilisation": float(found.utilisation[lane]),
    }
