"""The steps of a sample: its noise drawn again and again under the parameters that it has."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax import Array

from fabric_kernels.model import Stage
from fabric_kernels.uniform import Uniform, WideUniform
from fabricarlo.derived import STEP_STATISTICS
from fabricarlo.program import Program, options
from fabricarlo.sampling.counted import Counted
from fabricarlo.sampling.uniforms import deep_uniform, uniform
from fabricarlo.sampling.words import wide_words


class Kept(NamedTuple):
    """What is remembered of the steps so far; no array of all of them."""

    total: Array  # [R, C]
    lost: Array  # what rounding took from the total (Kahan, Comm. ACM 8, 40, 1965)
    largest: Array  # [most, R, C], descending

    @classmethod
    def of(cls, first: Array, most: int) -> "Kept":
        """After the first step."""
        rest = jnp.full((most - 1, *first.shape), -jnp.inf, first.dtype)
        return cls(first, jnp.zeros_like(first), jnp.concatenate([first[None], rest]))

    def after(self, value: Array) -> "Kept":
        """With one step more; a value that is not a number makes all of it so."""
        corrected = value - self.lost
        total = self.total + corrected
        above = jnp.concatenate([jnp.full_like(value, jnp.inf)[None], self.largest[:-1]])
        largest = jnp.maximum(self.largest, jnp.minimum(above, value[None]))
        return Kept(total, (total - self.total) - corrected, largest)


def rank_of_99(steps: int) -> tuple[int, float]:
    """Where the 99 % quantile lies among the steps: (values above it, share of the next one).

    Rank 0.99 (S - 1) from the smallest, counted from 0, between neighbours linearly: NumPy's
    default, definition 7 of R. J. Hyndman, Y. Fan, The American Statistician 50 (1996) 361.
    """
    under, hundredths = divmod(99 * (steps - 1), 100)
    return steps - 1 - under, hundredths / 100


def statistics(kept: Kept, steps: int) -> dict[str, Array]:
    """Suffix of a result -> the statistic over the steps."""
    place, share = rank_of_99(steps)
    maximum, low = kept.largest[0], kept.largest[place]
    high = kept.largest[max(place - 1, 0)]
    between = jnp.where(high == low, low, low + share * (high - low))
    mean = kept.total / steps
    # rounding must not lift a mean or a quantile above the largest value
    values = (jnp.minimum(mean, maximum), jnp.minimum(between, maximum), maximum)
    return dict(zip(("", *STEP_STATISTICS), values, strict=True))


class Steps:
    """The later steps of a sample, and what the results keep of all of them."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._later = jax.jit(self._following, compiler_options=options())
        self._same = [n for n in program.plan.outputs if n not in program.variant.outputs]

    def all(
        self,
        first: dict[str, Array],
        numbers: Array,
        draws: dict[str, Array],
        uniforms: Mapping[str, Uniform | WideUniform],
        index: Array,
        keys: Array,
    ) -> dict[str, Array]:
        """The results of all steps, from the outputs [R, C] of the first.

        The first step is the sample of a sweep of one step, to the bit, and flags are its.
        """
        varying = self.program.variant.varying
        begin = {n: first[n] for n in varying}
        found = self._later(begin, numbers, draws, uniforms, index, keys) if varying else {}
        # what varies in another variant only has one value here, which is all its statistics
        named = {n: first[_source(n)] for n in self._same if _source(n) not in varying}
        return first | named | found

    def steady(self) -> list[Stage]:
        """The stages whose answers all steps share: they draw nothing anew, nor wait for such."""
        variant, moving, found = self.program.variant, set[type](), []
        for stage in variant.model.traced(variant.varying, variant.replaced):
            drawn = {slot.stream for slot in stage.slots.values()}
            if drawn.isdisjoint(variant.redrawn) and moving.isdisjoint(stage.needs.values()):
                found.append(stage)
            else:
                moving.add(stage.answers)
        return found

    def _following(
        self,
        first: dict[str, Array],
        numbers: Array,
        draws: dict[str, Array],
        uniforms: dict[str, Any],
        index: Array,
        keys: Array,
    ) -> dict[str, Array]:
        program, steps = self.program, self.program.plan.sweep.steps
        model, names = program.variant.model, program.variant.varying
        given, counter = program.given(numbers, draws), program.counter(index)
        known = model.answered(self.steady(), given, uniforms)

        def follow(kept: dict[str, Kept], step: Array) -> tuple[dict[str, Kept], None]:
            drawn = self._drawn_at(step, counter, keys, uniforms)
            answers = model(given, uniforms | drawn, names, known)
            return {n: kept[n].after(_like(answers[n], first[n])) for n in names}, None

        most = rank_of_99(steps)[0] + 1
        kept = {n: Kept.of(first[n], most) for n in names}
        kept, _ = jax.lax.scan(follow, kept, jnp.arange(1, steps, dtype=jnp.uint32))
        found = {n: statistics(kept[n], steps) for n in names}
        return {n + suffix: a for n in names for suffix, a in found[n].items()}

    def _drawn_at(
        self, step: Array, counter: Array, keys: Array, uniforms: dict[str, Any]
    ) -> dict[str, Uniform | WideUniform]:
        """Uniforms of a later step: number `step` of a narrow slot, a stretch of a wide one."""
        program, found = self.program, {}
        for k, stream in enumerate(program.streams):
            if stream.name in program.variant.redrawn:
                word, low = wide_words((keys[0, k], keys[1, k]), counter, step)
                found[stream.name] = deep_uniform(word, low) if stream.deep else uniform(word)
        counts = {s.stream: s.count for g in self._stages for s in g.slots.values() if s.wide}
        for name in program.variant.wide:
            if name in program.variant.redrawn:
                begin = step * jnp.uint32(counts[name])
                found[name] = dataclasses.replace(cast(Counted, uniforms[name]), begin=begin)
        return found

    @property
    def _stages(self) -> list[Stage]:
        variant = self.program.variant
        return variant.model.traced(variant.outputs, variant.replaced)


def _source(name: str) -> str:
    """The output that a statistic is of."""
    for suffix in STEP_STATISTICS:
        name = name.removesuffix(suffix)
    return name


def _like(answer: Array, first: Array) -> Array:
    return jnp.broadcast_to(answer, first.shape).astype(first.dtype)
