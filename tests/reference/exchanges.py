"""All exchanges of one training step and the step that they make, in plain Python floats.

Bytes, seconds and B/s; every name is that of the quantity. The data exchange is hierarchical with
rings; groups fill their NVLink domains evenly.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.reference import step as plain

Inputs = Mapping[str, float]


@dataclass(frozen=True)
class Exchange:
    """One exchange of a step without any effect: times in s, hops across the fabric."""

    inside: float = 0.0
    across: float = 0.0
    latency: float = 0.0
    hops: float = 0.0

    @property
    def transfer(self) -> float:
        """Inside and across."""
        return self.inside + self.across

    def times(self, calls: float) -> "Exchange":
        """As many calls of it, one after another."""
        return Exchange(
            calls * self.inside, calls * self.across, calls * self.latency, calls * self.hops
        )

    def then(self, other: "Exchange") -> "Exchange":
        """This one, then another."""
        return Exchange(
            self.inside + other.inside,
            self.across + other.across,
            self.latency + other.latency,
            self.hops + other.hops,
        )


def passed(given: Inputs) -> float:
    """Microbatches that the slowest way through the pipeline passes: m + (pp - 1) / v."""
    return given["microbatches"] + (given["pipeline_parallel"] - 1) / given["interleave"]


def activations(given: Inputs) -> float:
    """Bytes of one microbatch between two layers: u s h b."""
    tokens = given["microbatch_size"] * given["sequence_length"]
    return tokens * given["width"] * given["activation_element_size"]


def in_domain(given: Inputs, ranks: float, spacing: float) -> float:
    """Ranks of a group, one in `spacing` GPUs, that share an NVLink domain."""
    return min(max(given["nvlink_domain"] // spacing, 1.0), ranks)


def tensor(given: Inputs, *, switches: bool = False) -> Exchange:
    """4 (L/pp) (m + (pp - 1)/v) all-reduces of u s h b over tp GPUs of one NVLink domain."""
    ranks, size = given["tensor_parallel"], activations(given)
    if ranks == 1:
        return Exchange()
    calls = 4 * given["layers"] / given["pipeline_parallel"] * passed(given)
    if switches:
        rate = given["nvlink_rate"] * given["nvlink_reduction_efficiency"]
        once = Exchange((size + size / ranks) / rate, 0.0, 4 * given["nvlink_latency"])
    else:
        steps = 2 * (ranks - 1)
        transfer = steps * size / ranks / given["nvlink_rate"]
        once = Exchange(transfer, 0.0, steps * given["nvlink_latency"])
    return once.times(calls)


def expert(given: Inputs, buckets: float, *, relayed: bool = False) -> Exchange:
    """4 (L_moe/pp) (m + (pp - 1)/v) all-to-alls of u s top_k h b over ep ranks, each in buckets."""
    ranks = given["expert_parallel"]
    inner = in_domain(given, ranks, given["tensor_parallel"])
    domains = ranks // inner
    size = given["active_experts"] * activations(given) / buckets
    calls = 4 * given["expert_layers"] / given["pipeline_parallel"] * passed(given)
    once = _relayed(given, size, inner, domains) if relayed else _direct(given, size, ranks, inner)
    return once.times(calls * buckets)


def _direct(given: Inputs, size: float, ranks: float, inner: float) -> Exchange:
    """All at once: the port with more to do, what NVLink needs beyond the fabric its own; a hop."""
    inside = (inner - 1) * size / ranks / given["nvlink_rate"]
    across = (ranks - inner) * size / ranks / plain.gpu_rate(given)
    if ranks == 1:
        return Exchange()
    if ranks == inner:
        return Exchange(inside, 0.0, given["nvlink_latency"])
    latency = plain.hop_latency(given)
    return Exchange(max(inside - across, 0.0), across, latency, 1.0)


def _relayed(given: Inputs, size: float, inner: float, domains: float) -> Exchange:
    """To the rank on the receiver's rail first, then along the rail."""
    once = Exchange()
    if inner > 1:
        transfer = (inner - 1) * size / inner / given["nvlink_rate"]
        once = once.then(Exchange(transfer, 0.0, given["nvlink_latency"]))
    if domains > 1:
        transfer = (domains - 1) * size / domains / plain.gpu_rate(given)
        once = once.then(Exchange(0.0, transfer, plain.hop_latency(given), 1.0))
    return once


def critical_hops(stages: int, microbatches: int, pieces: int) -> int:
    """Messages that a 1F1B step waits for: what `event_pipeline` counts."""
    if pieces > 1:
        return 2 * (stages * pieces - 1)
    hidden = math.ceil(microbatches / stages)
    return 2 * (microbatches - hidden + stages - 2 + (microbatches % stages == 1))


def pipeline(given: Inputs, buckets: float) -> Exchange:
    """The messages waited for, each in buckets; over NVLink if one domain holds the whole job."""
    stages = given["pipeline_parallel"]
    if stages == 1:
        return Exchange()
    hops = critical_hops(round(stages), round(given["microbatches"]), round(given["interleave"]))
    parts = given["tensor_parallel"] if given["sequence_parallel"] else 1.0
    size = activations(given) / parts / buckets
    if given["gpus"] <= given["nvlink_domain"]:
        once = Exchange(size / given["nvlink_rate"], 0.0, given["nvlink_latency"])
    else:
        once = Exchange(0.0, size / plain.gpu_rate(given), plain.hop_latency(given), 1.0)
    return once.times(hops * buckets)


def _phase(given: Inputs, size: float, ranks: float, spacing: float) -> Exchange:
    """A reduce-scatter or an all-gather: ring inside the domain, ring along every rail."""
    inner = in_domain(given, ranks, spacing)
    domains, part = ranks // inner, size / inner
    return Exchange(
        (inner - 1) * part / given["nvlink_rate"],
        (domains - 1) * part / domains / plain.gpu_rate(given),
        (inner - 1) * given["nvlink_latency"] + (domains - 1) * plain.hop_latency(given),
        domains - 1,
    )


def groups(given: Inputs, *, experts: bool) -> list[tuple[float, float, float]]:
    """Payload of one GPU, ranks and spacing of every kind of gradient group."""
    shards = given["tensor_parallel"] * given["pipeline_parallel"]
    data, element = given["gpus"] / shards, given["gradient_element_size"]
    local = given["parameters"] / shards * element
    if not experts:
        return [(local, data, given["tensor_parallel"])]
    share, split = given["expert_parameter_share"], given["expert_parallel"]
    spacing = given["tensor_parallel"] * split
    return [
        (local * (1 - share), data, given["tensor_parallel"]),
        (local * share / split, data / split, spacing),
    ]


PHASES = {"replicated": 2, "zero_1": 2, "zero_3": 3}
"""An all-reduce is a reduce-scatter and an all-gather."""


def data(given: Inputs, operation: str, buckets: float, *, experts: bool = False) -> Exchange:
    """The gradients of every kind of group, one kind after another, each call in buckets."""
    whole = Exchange()
    for payload, ranks, spacing in groups(given, experts=experts):
        once = _phase(given, payload / buckets, ranks, spacing)
        whole = whole.then(once.times(PHASES[operation] * buckets))
    return whole


def compute(given: Inputs, *, experts: bool = False) -> float:
    """t0 = 6 P_active tokens / (N peak efficiency)."""
    active = given["parameters"]
    if experts:
        working = given["active_experts"] / given["experts"]
        share = given["expert_parameter_share"]
        active = active * (1 - share) + active * share * working
    work = 6 * active * plain.tokens(given)
    return work / (given["gpus"] * given["peak_flops"] * given["compute_efficiency"])


@dataclass(frozen=True)
class Effected:
    """An exchange, what each effect adds to it (s), and what of it may hide."""

    clean: Exchange
    congestion: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    window: float = 0.0  # s
    buckets: float = 1.0

    def exposed(self, total: float) -> float:
        """What compute does not hide of a time: the last bucket at least."""
        return max(total - self.window, total / self.buckets)

    def after_each(self) -> list[float]:
        """Exposed time with transfer, then latency, congestion, jitter, loss in."""
        times = [self.clean.transfer]
        for more in (self.clean.latency, self.congestion, self.jitter, self.loss):
            times.append(times[-1] + more)
        return [self.exposed(time) for time in times]


def congested(clean: Exchange, efficiency: float, queue: float) -> float:
    """What queues and lost rate add: to the part across the fabric only."""
    return clean.across / efficiency - clean.across + clean.hops * queue


@dataclass(frozen=True)
class Work:
    """Compute of a step: at full clock (s), its bubble, and the clock of the slowest GPU."""

    full: float
    bubble_share: float
    bound_share: float
    clock: float


def step(work: Work, exchanges: Sequence[Effected]) -> dict[str, float]:
    """Step time and its parts: totals with ever more effects in, and their differences."""
    slowest = work.full * ((1 - work.bound_share) + work.bound_share / work.clock)
    steady, slow = work.full * (1 + work.bubble_share), slowest * (1 + work.bubble_share)
    bare, late, queued, noisy, lost = (
        sum(column) for column in zip(*(e.after_each() for e in exchanges), strict=True)
    )
    totals = [
        work.full, steady, steady + bare, steady + late, slow + late, slow + queued, slow + noisy,
        slow + lost,
    ]  # fmt: skip
    parts = [totals[0], *(after - before for before, after in pairwise(totals))]
    made = {f"step_time_{name}": part for name, part in zip(plain.PARTS, parts, strict=True)}
    return made | {
        "step_time": totals[-1],
        "compute_time": slowest,
        "bubble": work.bubble_share * slowest,
        "exposed_communication_time": lost,
        "scaling_efficiency": work.full / totals[-1],
    }
