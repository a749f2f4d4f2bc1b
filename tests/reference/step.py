"""One synchronous training step of one configuration, in plain Python floats.

Bytes, seconds and B/s; every name is that of the quantity. The data-parallel exchange is the
hierarchical all-reduce of a replicated model: reduce-scatter inside the NVLink domain, ring across
the domains, all-gather inside. Stalls and the clock of the slowest GPU are given.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

FIBRE_DELAY = 4.9e-9  # s/m, index of refraction 1.468

PARTS = (
    "compute", "pipeline", "bandwidth", "latency", "thermal", "congestion", "jitter", "loss"
)  # fmt: skip

Inputs = Mapping[str, float]


@dataclass(frozen=True)
class Effects:
    """What the other models found for this configuration."""

    slowest_clock_fraction: float = 1.0
    congestion_efficiency: float = 1.0
    queueing_delay: float = 0.0  # s for each hop across the fabric
    jitter_stall: float = 0.0  # s
    loss_stall: float = 0.0  # s


@dataclass(frozen=True)
class Overlap:
    """What of the exchange may hide: a window of compute (s), a number of calls."""

    window: float = 0.0
    buckets: int = 1


def data_parallel(given: Inputs) -> float:
    """Ranks of one data-parallel group: gpus / (tp pp)."""
    return given["gpus"] / (given["tensor_parallel"] * given["pipeline_parallel"])


def payload(given: Inputs) -> float:
    """Gradient bytes of one GPU: P / (tp pp) times the bytes of an element."""
    local = given["parameters"] / (given["tensor_parallel"] * given["pipeline_parallel"])
    return local * given["gradient_element_size"]


def tokens(given: Inputs) -> float:
    """Tokens of one step: dp m u s."""
    rank = given["microbatches"] * given["microbatch_size"] * given["sequence_length"]
    return data_parallel(given) * rank


def full_clock_compute(given: Inputs) -> float:
    """t0 = 6 P tokens / (N peak efficiency)."""
    work = 6.0 * given["parameters"] * tokens(given)
    return work / (given["gpus"] * given["peak_flops"] * given["compute_efficiency"])


def bubble_share(given: Inputs) -> float:
    """Pipeline bubble as a share of compute: (pp - 1) / (m v)."""
    return (given["pipeline_parallel"] - 1) / (given["microbatches"] * given["interleave"])


def tiers(given: Inputs) -> int:
    """Least number of switch tiers that reach all GPUs: k, k d, k d (k/2) ... with d ports down."""
    radix = int(given["switch_radix"])
    up = int(radix // (1 + given["oversubscription"]))
    down = min(int(given["oversubscription"] * up), radix - up)
    reach = radix
    for level in range(1, 5):
        if reach >= given["gpus"]:
            return level
        reach *= down if level == 1 else radix // 2
    raise ValueError("more than four tiers")


def hop_latency(given: Inputs) -> float:
    """Floor of one message over the longest way: 2 L links, 2 L - 1 switches, both adapters."""
    level = tiers(given)
    link = given["cable_length"] * FIBRE_DELAY + given["error_correction_latency"]
    switches = (2 * level - 1) * given["switch_latency"]
    return given["adapter_latency"] + 2 * level * link + switches


def gpu_rate(given: Inputs) -> float:
    """Rate of one GPU across the fabric without congestion.

    Uplinks are shared and collided on where there are any: not under one switch.
    """
    uplinks = tiers(given) > 1
    share = given["routing_efficiency"] / given["oversubscription"] if uplinks else 1.0
    return given["link_rate"] * given["payload_fraction"] * share


@dataclass(frozen=True)
class Exchange:
    """One data exchange without any effect: times in s, hops across the fabric."""

    inside: float
    across: float
    latency: float
    hops: int


def exchange(given: Inputs, buckets: int) -> Exchange:
    """The exchange of one step, cut into `buckets` calls one after another."""
    group = round(data_parallel(given))
    domain = min(max(int(given["nvlink_domain"] // given["tensor_parallel"]), 1), group)
    domains = group // domain
    part = payload(given) / buckets / domain
    inside = 2 * (domain - 1) * part / given["nvlink_rate"]
    across = 2 * (domains - 1) * part / domains / gpu_rate(given)
    hops = 2 * (domains - 1)
    latency = 2 * (domain - 1) * given["nvlink_latency"] + hops * hop_latency(given)
    return Exchange(buckets * inside, buckets * across, buckets * latency, buckets * hops)


def step(given: Inputs, effects: Effects, overlap: Overlap) -> dict[str, float]:
    """Step time, its parts in their fixed order, and what follows from them."""
    full, share = full_clock_compute(given), bubble_share(given)
    call = exchange(given, overlap.buckets)
    clock = effects.slowest_clock_fraction
    kappa = given["compute_bound_share"]
    slowest = full * ((1 - kappa) + kappa / clock)

    def exposed(total: float) -> float:
        return max(total - overlap.window, total / overlap.buckets)

    transfer = call.inside + call.across
    clean = transfer + call.latency
    congested = call.inside + call.across / effects.congestion_efficiency + call.latency
    congested += call.hops * effects.queueing_delay
    stalled = congested + effects.jitter_stall
    everything = stalled + effects.loss_stall
    after = [  # step time with the first, the first two ... effects on
        full,
        full * (1 + share),
        full * (1 + share) + exposed(transfer),
        full * (1 + share) + exposed(clean),
        slowest * (1 + share) + exposed(clean),
        slowest * (1 + share) + exposed(congested),
        slowest * (1 + share) + exposed(stalled),
        slowest * (1 + share) + exposed(everything),
    ]
    parts = [after[0]] + [late - early for early, late in pairwise(after)]
    total = after[-1]
    answer = {f"step_time_{name}": part for name, part in zip(PARTS, parts, strict=True)}
    answer |= {
        "compute_time": slowest,
        "bubble": share * slowest,
        "exposed_communication_time": exposed(everything),
        "step_time": total,
        "scaling_efficiency": full / total,
        "tokens_per_second": tokens(given) / total,
        "congestion_delay": congested - clean,
        "allreduce_time": everything,
    }
    work = 6.0 * given["parameters"] * tokens(given)
    answer["model_flop_utilisation"] = work / (given["gpus"] * given["peak_flops"] * total)
    return answer | _bandwidths(given, clean)


def _bandwidths(given: Inputs, clean: float) -> dict[str, float]:
    """Algorithm and bus bandwidth from the clean time; a group of one exchanges nothing: 0."""
    group = round(data_parallel(given))
    if group == 1:
        return {"algorithm_bandwidth": 0.0, "bus_bandwidth": 0.0}
    rate = payload(given) / clean
    return {"algorithm_bandwidth": rate, "bus_bandwidth": 2 * (group - 1) / group * rate}


def seed_time(gpus: int, message: float, bit_rate: float, latency: float) -> tuple[float, float]:
    """The seed document's all-reduce: on the wire, and as written with bytes over bit/s."""
    volume = 2 * (gpus - 1) / gpus * message
    wait = latency * math.log2(gpus)
    return 8 * volume / bit_rate + wait, volume / bit_rate + wait
