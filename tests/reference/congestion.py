"""Queues of congestion control, from the papers' equations, in plain float64.

Shares no code with the kernels: the fixed point by bisection of the balance as it is printed, the
delayed equations by Euler's method on one bottleneck at a time.
"""

import dataclasses
import math
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass(frozen=True)
class Dcqcn:
    """N senders of packets on one link; packets and seconds (Zhu et al., CoNEXT'16)."""

    capacity: float
    flows: float
    gain: float = 1 / 256
    tau: float = 50e-6
    tau_alpha: float = 55e-6
    timer: float = 55e-6
    byte_counter: float = 1e4
    steps: float = 5.0
    increase: float = 5000.0
    start: float = 5.0
    end: float = 200.0
    largest: float = 0.01


def root(increasing: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing function is 0, by 200 halvings."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if increasing(middle) < 0 else (low, middle)
    return 0.5 * (low + high)


def balance(model: Dcqcn) -> float:
    """p* by bisection in ln u, u = -ln(1 - p), of a^2 alpha / ((b+d)(c+e)) = tau^2 R_AI R."""
    rate = model.capacity / model.flows

    def log_power(exponent: float) -> float:  # ln((1 - p)^-k - 1)
        return exponent + math.log(-math.expm1(-exponent))

    def gap(log_hazard: float) -> float:
        u = math.exp(log_hazard)
        timer = model.timer * rate
        p = math.log(-math.expm1(-u))
        b, d = p - log_power(model.byte_counter * u), p - log_power(timer * u)
        c = b - model.steps * model.byte_counter * u
        e = d - model.steps * timer * u
        a = math.log(-math.expm1(-model.tau * rate * u))
        alpha = math.log(-math.expm1(-model.tau_alpha * rate * u))
        left = 2 * a + alpha - np.logaddexp(b, d) - np.logaddexp(c, e)
        return float(left) - math.log(model.tau**2 * model.increase * rate)

    return -math.expm1(-math.exp(root(gap, -40.0, 6.0)))


def _share(p: float, packets: float) -> float:
    return 1.0 if p >= 1 else -math.expm1(packets * math.log1p(-p))


def _events(p: float, packets: float) -> float:
    if p >= 1:
        return 0.0
    if p <= 0:
        return 1.0 / packets
    power = -packets * math.log1p(-p)
    return 0.0 if power > 700 else p / math.expm1(power)


def in_time(
    model: Dcqcn, delay: int, steps: int, *, step: float = 1e-6, nudge: float | None = None
) -> dict[str, np.ndarray]:
    """Queue and rate at every step of Euler's method; `delay` in steps.

    From line rate, alpha 1 and no queue, or with `nudge` from the fixed point with a queue that
    much off.
    """
    rate, target, alpha, queue = model.capacity, model.capacity, 1.0, 0.0
    if nudge is not None:
        p = balance(model)
        rate = model.capacity / model.flows
        alpha = _share(p, model.tau_alpha * rate)
        b, d = _events(p, model.byte_counter), _events(p, model.timer * rate)
        target = rate + _share(p, model.tau * rate) * alpha / ((b + d) * model.tau)
        queue = model.start + p / model.largest * (model.end - model.start) + nudge
    rates, queues = [rate] * (delay + 1), [queue] * (delay + 1)
    for _ in range(steps):
        late, old = rates[-1 - delay], queues[-1 - delay]
        slope = model.largest * (old - model.start) / (model.end - model.start)
        p = 1.0 if old > model.end else max(slope, 0.0)
        a = _share(p, model.tau * late)
        b, d = _events(p, model.byte_counter), _events(p, model.timer * late)
        keep = 0.0 if p >= 1 else math.log1p(-p)
        c = b * math.exp(model.steps * model.byte_counter * keep)
        e = d * math.exp(model.steps * model.timer * late * keep)
        learnt = _share(p, model.tau_alpha * late)
        ahead = target - rate
        changes = (
            -rate * alpha * a / (2 * model.tau) + ahead / 2 * late * (b + d),
            -ahead * a / model.tau + model.increase * late * (c + e),
            model.gain / model.tau_alpha * (learnt - alpha),
            model.flows * rate - model.capacity,
        )
        rate = min(max(rate + step * changes[0], 0.0), model.capacity)
        target = min(max(target + step * changes[1], 0.0), model.capacity)
        alpha += step * changes[2]
        queue = max(queue + step * changes[3], 0.0)
        rates.append(rate)
        queues.append(queue)
    return {"rate": np.array(rates), "queue": np.array(queues)}


def dctcp_alpha(window: float) -> float:
    """Root of alpha^2 (1 - alpha / 4) = (2 W + 1) / (W + 1)^2 by bisection (SIGCOMM'10)."""
    share = (2 * window + 1) / (window + 1) ** 2
    return root(lambda a: a * a * (1 - a / 4) - share, 0.0, 1.0)


def windows(flows: float, pipe: float, threshold: float, periods: int) -> tuple[float, float]:
    """Largest and smallest queue of N windows in step, each round trip counted out.

    A window grows by one packet a round trip; when the queue is above the threshold, all are
    marked and are cut by alpha / 2 one round trip later (SIGCOMM'10, section 3.3).
    """
    alpha, window = 1.0, pipe / flows
    tops, bottoms = [], []
    for period in range(periods):
        rounds = 0
        while flows * window <= pipe + threshold:
            window += 1.0
            rounds += 1
        top = flows * window - pipe
        alpha += (1.0 / (rounds + 1) - alpha) / 16
        window *= 1 - alpha / 2
        if period >= periods // 2:
            tops.append(top)
            bottoms.append(flows * window - pipe)
    return float(np.mean(tops)), float(np.mean(bottoms))


def credit_share(buffer: int, packet: int, loop: float, rate: float, packets: int) -> float:
    """Share of the rate at which packets leave when each frees its credit one loop later.

    Packet by packet: one is sent as soon as the link is free and `packet` bytes of credit are
    there; its credit is back `loop` seconds after its first bit has left.
    """
    time, credit, returns = 0.0, buffer, []
    for _ in range(packets):
        while credit < packet:
            time = max(time, returns.pop(0))
            credit += packet
        while returns and returns[0] <= time:
            returns.pop(0)
            credit += packet
        credit -= packet
        returns.append(time + loop)
        time += packet / rate
    return packets * packet / rate / time
