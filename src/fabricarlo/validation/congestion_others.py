"""Rows of DCTCP, credits, pauses, lost packets, collisions, codewords and bandwidth bounds."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from fabric_kernels.congestion.dctcp_law import (
    Senders,
    largest_gain,
    least_threshold,
    motion,
    sawtooth,
)
from fabric_kernels.congestion.lossless import credit_loop, credit_throughput, pause_headroom
from fabric_kernels.loss.laws.moments import (
    go_back_n_goodput,
    selective_repeat_goodput,
    timeout_of,
)
from fabric_kernels.maths.codeword import (
    CODEWORD_BITS,
    CORRECTABLE,
    LENGTH,
    SYMBOL,
    any_of,
    symbol_error,
    uncorrectable_codeword,
)
from fabric_kernels.maths.delayed import Schedule
from fabric_kernels.maths.occupancy import largest_load
from fabric_kernels.routing.ecmp import ecmp_efficiency
from fabric_kernels.uniform import Uniform
from fabricarlo.validation.congestion_inputs import BITS, Lanes, Parameters, code_of, lanes_of

Found = list[dict[str, float | str]]

SAWTOOTH = frozenset({"C_bps", "K_pkts", "N", "RTT_us", "mss_B", "g"})
CREDITS = frozenset(
    {"C_bps", "L_m", "MTU_B", "buffer_B", "prop_ns_per_m", "turnaround_ns_each_end"}
)
HEADROOM = frozenset({"C_bps", "L_m", "mtu_B", "prop_ns_per_m", "response_us"})
TIMER = frozenset({"retry", "timeout"})
RESENDING = frozenset({"C_bps", "MTU_B", "RTT_us", "W_pkts", "p_loss"})
LAST_PACKET = frozenset({"MTU_B", "RTO_s", "S_B", "nflows", "p_loss"})
COLLISIONS = frozenset({"flow_rate", "flows", "links", "seed", "trials"})
CODEWORDS = frozenset({"code", "errors", "m", "pre_fec_ber", "t"})

_SINGLE = np.float32
_STEPS_A_ROUND_TRIP, _ROUND_TRIPS = 200, 800
_FRAME_CODEWORDS = 8.0  # that a frame of 4200 B touches at most
_FRAME_LINK, _LINKS = 850e9, 1e5
_QUANTILES = 2**11  # at either end


def _lane(rows: Lanes, of: Callable[[Parameters], float]) -> Array:
    return lanes_of(rows, _SINGLE, of)


def _each(columns: dict[str, Array], count: int) -> Found:
    numbers = {name: np.asarray(value, np.float64) for name, value in columns.items()}
    return [{name: float(value[i]) for name, value in numbers.items()} for i in range(count)]


def _senders(rows: Lanes) -> Senders:
    return Senders(
        capacity=_lane(rows, lambda r: r.number("C_bps") / BITS / r.number("mss_B")),
        flows=_lane(rows, lambda r: r.number("N")),
        round_trip=_lane(rows, lambda r: r.number("RTT_us") * 1e-6),
        threshold=_lane(rows, lambda r: r.number("K_pkts")),
        gain=_lane(rows, lambda r: r.number("g") if "g" in r else 1 / 16),
    )


def sawtooths(rows: Lanes) -> Found:
    """DCTCP's sawtooth; a row without flows asks for the least threshold alone."""
    rate = _lane(rows, lambda r: r.number("C_bps") / BITS / r.number("mss_B"))
    pipe = rate * _lane(rows, lambda r: r.number("RTT_us") * 1e-6)
    least = least_threshold(pipe)
    kilobytes = _lane(rows, lambda r: r.number("mss_B") / 1e3)
    columns = {"BDP": pipe, "K_min_rule": least, "K_min": least, "K_min_bytes": least * kilobytes}
    made = _each(columns, len(rows))
    with_flows = [i for i, row in enumerate(rows) if "N" in row]
    if with_flows:
        some = [rows[i] for i in with_flows]
        for i, found in zip(with_flows, _sawtooth_numbers(some), strict=True):
            made[i] |= found
    return made


def _sawtooth_numbers(rows: Lanes) -> Found:
    senders = _senders(rows)
    found = sawtooth(senders)
    pipe = senders.capacity * senders.round_trip
    columns = {
        "W_star": found.critical_window,
        "alpha": found.alpha,
        "alpha_approx": jnp.sqrt(2.0 / found.critical_window),
        "D": found.fall,
        "A": found.amplitude,
        "A_approx": 0.5 * jnp.sqrt(2.0 * senders.flows * (pipe + senders.threshold)),
        "Tc": found.fall,
        "Qmax": found.highest,
        "Qmin": found.lowest,
        "g_max_rule": largest_gain(pipe, senders.threshold),
    }
    return _each(columns, len(rows))


def sawtooths_in_time(rows: Lanes) -> Found:
    """DCTCP's delayed equations, steps of a 200th of the round trip, second half of 800."""
    senders = _senders(rows)
    step = senders.round_trip / _STEPS_A_ROUND_TRIP
    delay = senders.round_trip + senders.threshold / senders.capacity
    lag = np.round(np.asarray(delay / step)).astype(np.int32)
    blocks = _ROUND_TRIPS // 2
    schedule = Schedule(blocks, blocks, _STEPS_A_ROUND_TRIP, int(lag.max()) + 2)
    found = motion(senders, step, jnp.asarray(lag), schedule)
    fixed = sawtooth(senders)
    columns = {
        "alpha_mean": found.alpha.mean,
        "q_min": found.queue.least,
        "q_max": found.queue.most,
        "q_mean": found.queue.mean,
        "amplitude": found.queue.most - found.queue.least,
        "utilisation": found.utilisation,
        "alpha_from_sawtooth_formula": fixed.alpha,
        "A_from_sawtooth_formula": fixed.amplitude,
    }
    return _each(columns, len(rows))


def credit_loops(rows: Lanes) -> Found:
    """Loop and buffer of credits, and what a given buffer lets through."""
    rate = _lane(rows, lambda r: r.number("C_bps") / BITS)
    cable = _lane(rows, lambda r: r.number("L_m") * r.number("prop_ns_per_m") * 1e-9)
    turnaround = _lane(rows, lambda r: r.number("turnaround_ns_each_end") * 1e-9)
    loop = credit_loop(cable, turnaround, _lane(rows, lambda r: r.number("MTU_B")) / rate)
    buffer = _lane(rows, lambda r: r.number("buffer_B") if "buffer_B" in r else 1.0)
    need = rate * loop
    columns = {
        "loop_time": loop * 1e9,
        "buffer_needed": need / 1e3,
        "credits64_needed": jnp.ceil(need / 64.0),
        "throughput_fraction": credit_throughput(buffer, rate, loop),
    }
    return _each(columns, len(rows))


def headrooms(rows: Lanes) -> Found:
    """Bytes that still come after a pause."""
    found = pause_headroom(
        _lane(rows, lambda r: r.number("mtu_B")),
        _lane(rows, lambda r: r.number("C_bps") / BITS),
        _lane(rows, lambda r: r.number("L_m") * r.number("prop_ns_per_m") * 1e-9),
        _lane(rows, lambda r: r.number("response_us") * 1e-6),
    )
    return _each({"headroom_per_priority_per_port": found / 1e3}, len(rows))


def timers(rows: Lanes) -> Found:
    """Retransmission timers, and how long an adapter tries."""
    timeout = timeout_of(_lane(rows, lambda r: r.number("timeout")))
    tries = _lane(rows, lambda r: r.number("retry") + 1.0)
    return _each({"RTO_min": timeout, "time_to_QP_error_min": tries * timeout}, len(rows))


def goodputs(rows: Lanes) -> Found:
    """Goodput of go-back-N and of selective repeat."""
    loss = _lane(rows, lambda r: r.number("p_loss"))
    window = _lane(rows, lambda r: r.number("W_pkts"))
    back, selective = go_back_n_goodput(loss, window), selective_repeat_goodput(loss)
    columns = {"goodput_fraction_gbn": back, "goodput_fraction_gbn_mc": back}
    return _each(columns | {"goodput_fraction_sr": selective}, len(rows))


def last_packets(rows: Lanes) -> Found:
    """Chance that any of the flows of a step waits for its timer."""
    loss = _lane(rows, lambda r: r.number("p_loss"))
    flows = _lane(rows, lambda r: r.number("nflows"))
    chance = -jnp.expm1(flows * jnp.log1p(-loss))
    return _each({"P_any_flow_hits_RTO_per_step": chance}, len(rows))


def collisions(rows: Lanes) -> Found:
    """Fullest link and slowest flow, from evenly spread quantiles; standard errors as `se:`."""
    loads, shares = _collided(rows)
    level = "p01_slowest_flow_throughput_fraction"
    made: Found = []
    for row, load, share in zip(rows, loads, shares, strict=True):
        trials = row.number("trials")
        found: dict[str, float | str] = {level: float(np.quantile(share, 0.01))}
        ends = (f"{float(np.quantile(share, q)):.9g}" for q in _around(0.01, trials))
        found[f"steps:{level}"] = " ".join(ends)
        for name, values in (
            ("mean_max_flows_per_link", load),
            ("mean_slowest_flow_throughput_fraction", share),
        ):
            found[name] = float(values.mean())
            found[f"se:{name}"] = float(values.std()) / math.sqrt(trials)
        made.append(found)
    return made


def _collided(rows: Lanes) -> tuple[np.ndarray, np.ndarray]:
    """Largest loads and shares of the slowest flow, [row, quantile]."""
    half = (np.arange(_QUANTILES) + 0.5) / (2 * _QUANTILES)
    distance = np.broadcast_to(np.concatenate([half, half]), (len(rows), 2 * _QUANTILES))
    upper = np.broadcast_to(np.repeat([True, False], _QUANTILES), distance.shape)
    u = Uniform(jnp.asarray(upper), jnp.asarray(distance, _SINGLE))
    flows, links = (
        jnp.broadcast_to(_lane(rows, lambda r, n=name: r.number(n))[:, None], upper.shape)
        for name in ("flows", "links")
    )
    both = jax.jit(lambda f, m, u: (largest_load(f, m, u), ecmp_efficiency(f, m, u)))
    load, share = both(flows, links, u)
    return np.asarray(load, np.float64), np.asarray(share, np.float64)


def _around(level: float, trials: float) -> tuple[float, float]:
    """Levels 4.9 standard errors of a count below and above a quantile's own."""
    error = 4.9 * math.sqrt(level * (1 - level) / trials)
    return max(level - error, 0.0), level + error


def codewords(rows: Lanes) -> Found:
    """Codewords that cannot be repaired, and their decimal logarithms as `log10:`."""
    rate = _lane(rows, lambda r: r.number("pre_fec_ber"))
    tail = uncorrectable_codeword(rate)
    frame = any_of(tail, jnp.full_like(rate, _FRAME_CODEWORDS))
    made = _each(
        {
            "symbol_error_prob": symbol_error(rate),
            "uncorrectable_codeword_prob": tail.probability,
            "packet_loss_prob_4200B": frame.probability,
            "log10:uncorrectable_codeword_prob": tail.log10,
            "log10:packet_loss_prob_4200B": frame.log10,
        },
        len(rows),
    )
    second = "seconds_between_uncorrectable_codewords_"
    for found in made:
        chance, log10 = (float(found[f"{n}uncorrectable_codeword_prob"]) for n in ("", "log10:"))
        apart = CODEWORD_BITS / _FRAME_LINK
        for name, links in (("850G", 1.0), ("100k_links", _LINKS)):
            found[f"{second}{name}"] = apart / links / chance if chance else math.inf
            found[f"log10:{second}{name}"] = math.log10(apart / links) - log10
    return made


def other_code(row: Parameters) -> str | None:
    """Why a row's code is not the one that the kernel has."""
    length, data = code_of(str(row.get("code", "RS(544,514)")))
    same = length == LENGTH and (length - data) // 2 == CORRECTABLE
    same = same and row.get("m", SYMBOL) == SYMBOL and row.get("t", CORRECTABLE) == CORRECTABLE
    if same and row.get("errors", "independent") == "independent":
        return None
    return f"only RS({LENGTH},514) with independent errors is modelled"
