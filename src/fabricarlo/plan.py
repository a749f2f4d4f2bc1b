"""From a sweep to its grid, variants, streams and numbers: what is known before a device runs."""

import hashlib
import json
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from fabric_kernels.catalogue import DIMENSIONS
from fabric_kernels.model import Model, ModelError, Slot
from fabric_kernels.quantity import Quantity
from fabricarlo.derived import WEIGHT, WEIGHT_DECLARED, results
from fabricarlo.errors import SpecError
from fabricarlo.layout import BLOCK, Layout
from fabricarlo.refusals import Condition, asked, conditions, wrong_names
from fabricarlo.sampling.addresses import RULE
from fabricarlo.spec import resolved
from fabricarlo.spec.tails import idle_tails
from fabricarlo.sweep import Axis, Draw, Settings, Sweep
from fabricarlo.variants import (
    DESIGN,
    Cell,
    Stream,
    Variable,
    Variant,
    choices_of,
    merged,
    model_of,
    noise,
)
from fabricarlo.written.names import declared


class Plan:
    """A sweep with its grid, variants and streams.

    Raises SpecError for a quantity without a value, or a cell that no model allows.
    """

    def __init__(self, sweep: Sweep, *, block: int = BLOCK, tile: int = 2**15) -> None:
        self.sweep = sweep
        self.axes = self._axes()
        self.layout = Layout(
            tuple(len(a.labels) for a in self.axes),
            tuple(a.structural for a in self.axes),
            sweep.samples,
            sweep.replicates,
            max(block, tile),
            tile,
        )
        self._variants: dict[tuple, Variant] = {}
        self._asked = lru_cache(maxsize=4096)(lambda f, known, n: asked(f, dict(known), n))
        self._settings = lru_cache(maxsize=4096)(self._settings_at)
        self._conditions = lru_cache(maxsize=None)(self._conditions_of)
        self.cell = lru_cache(maxsize=512)(self._cell_at)  # a cell holds every number there is
        self._refuse()

    # ---- the grid

    def _axes(self) -> tuple[Axis, ...]:
        if self.sweep.design is None:
            return self.sweep.axes
        labels = ("A", "B", *(f"AB_{name}" for name in self.random))
        return (*self.sweep.axes, Axis(DESIGN, labels, (Settings(),) * len(labels)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Labels along every axis."""
        return self.layout.shape

    def where(self, cell: int) -> tuple[int, ...]:
        """Multi-index of a flat cell id."""
        return tuple(int(k) for k in np.unravel_index(cell, self.shape)) if self.shape else ()

    def _settings_at(self, where: tuple[int, ...]) -> Settings:
        picked = (a.settings[k] for a, k in zip(self.axes, where, strict=True))
        return merged(self.sweep.settings, *picked)

    def _cell_at(self, cell: int) -> Cell:
        where = self.where(cell)
        settings, variant = self._settings(where), self.variant(cell)
        labels = {a.name: a.labels[k] for a, k in zip(self.axes, where, strict=True)}
        laws = {}
        for variable in variant.variables:
            drawn = self._laws_on(variable.quantity, settings)
            laws |= {(variable.quantity, k): d.law for k, (_, d) in enumerate(drawn)}
        return Cell(settings, labels, self._defaults | settings.values, laws)

    # ---- what is random

    @cached_property
    def preset_laws(self) -> tuple[str, ...]:
        """Quantities with a law inside a preset, in order of appearance: base, then axes."""
        found = dict.fromkeys(self.sweep.settings.draws)
        for axis in self.sweep.axes:
            for settings in axis.settings:
                found |= dict.fromkeys(settings.draws)
        return tuple(found)

    @cached_property
    def random(self) -> tuple[str, ...]:
        """Random quantities: draws of the spec in file order, then laws of presets."""
        return tuple(dict.fromkeys((*(d.quantity for d in self.sweep.draws), *self.preset_laws)))

    def _laws_on(self, name: str, settings: Settings) -> list[tuple[str, Draw]]:
        """Streams and draws that make `name`, from the bottom up."""
        laws = [(f"{name}.preset", settings.draws[name])] if name in settings.draws else []
        for draw in self.sweep.draws:
            if draw.quantity == name:
                laws = [*laws, (name, draw)] if draw.relation != "is" else [(name, draw)]
        return laws

    @cached_property
    def streams(self) -> dict[str, Stream]:
        """Every stream of the sweep by name; the slots of all variants included."""
        design = self.sweep.design is not None
        laws = [d.law for d in self.sweep.draws]
        streams = {
            d.quantity: Stream(d.quantity, k, law.deep, 20 + k if design else None)
            for k, (d, law) in enumerate(zip(self.sweep.draws, laws, strict=True))
        }
        for k, name in enumerate(self.preset_laws):
            deep = any(d.law.deep for d in self._preset_draws(name))
            stream = f"{name}.preset"
            streams[stream] = Stream(stream, 39 - k, deep, 19 - k if design else None)
        for variant in self.variants:
            streams |= {name: Stream(name, None, deep=False) for name in variant.wide}
            for slot in variant.model.slots(variant.outputs, variant.replaced):
                if slot.wide:
                    continue
                dimension = DIMENSIONS[slot.stream]
                # matrix B of a slot lies beyond the 64 dimensions that A may use
                second = 127 - dimension if design else None
                streams[slot.stream] = Stream(slot.stream, dimension, slot.deep, second)
        return streams

    def _preset_draws(self, name: str) -> list[Draw]:
        settings = [self.sweep.settings, *(s for a in self.sweep.axes for s in a.settings)]
        return [s.draws[name] for s in settings if name in s.draws]

    def axes_of(self, name: str) -> tuple[str, ...]:
        """Axes along which the draws of a random quantity differ."""
        relative = any(d.relation != "is" for d in self.sweep.draws if d.quantity == name)
        on_top = any(d.quantity == name and d.relation == "is" for d in self.sweep.draws)
        carries = [
            a.name
            for a in self.sweep.axes
            if not on_top
            and any(name in s.draws or (name in s.values and relative) for s in a.settings)
        ]
        design = [DESIGN] if self.sweep.design else []
        wanted = {*carries, *self.sweep.independent, *design}
        return tuple(a.name for a in self.axes if a.name in wanted)

    # ---- variants

    def variant(self, cell: int) -> Variant:
        """The compiled program of a cell."""
        where = self.where(cell)
        key = tuple(k for k, s in zip(where, self.layout.structural, strict=True) if s)
        if key not in self._variants:
            self._variants[key] = self._variant_of(self._settings(where))
        return self._variants[key]

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """All variants, in order of the grid; equal programs appear once."""
        structural = [
            range(n) if s else range(1)
            for n, s in zip(self.shape, self.layout.structural, strict=True)
        ]
        cells = (
            np.ravel_multi_index(np.ix_(*structural), self.shape).reshape(-1) if structural else [0]
        )
        return tuple(dict.fromkeys(self.variant(int(c)) for c in cells))

    def _variant_of(self, settings: Settings) -> Variant:
        model = model_of(settings.choices)
        given = {*settings.values, *settings.draws, *(d.quantity for d in self.sweep.draws)}
        replaced = tuple(sorted(n for n in given if n in model.owner and model.computed(n)))
        needed = model.needed(self.sweep.outputs, replaced)
        random = {*settings.draws, *(d.quantity for d in self.sweep.draws)}
        wanted = (*needed, *replaced)
        bare = {n for n in random if not self._has_floor(n, settings)}
        missing = [n for n in needed if n in bare or n not in given]
        self._refuse_missing(model, missing, replaced)
        slots, redrawn, varying = self._slots(model, replaced)
        variables = tuple(self._variable(n, settings) for n in self.random if n in random)
        return Variant(
            tuple(sorted(choices_of(settings).items())),
            model,
            self.sweep.outputs,
            tuple(n for n in wanted if n not in random),
            tuple(n for n in wanted if n in random),
            replaced,
            tuple(s.stream for s in slots if not s.wide),
            tuple(s.stream for s in slots if s.wide),
            variables,
            redrawn,
            varying,
        )

    def _slots(
        self, model: Model, replaced: tuple[str, ...]
    ) -> tuple[list[Slot], tuple[str, ...], tuple[str, ...]]:
        """Uniforms of the stages; those drawn in every step, and outputs that vary with them.

        Raises SpecError for answers that do not go together.
        """
        outputs, steps = self.sweep.outputs, self.sweep.steps
        try:
            slots = model.slots(outputs, replaced)
            return slots, *noise(model, outputs, replaced, slots, steps)
        except ModelError as error:
            raise SpecError([f"{self.sweep.path or 'spec'}: {error}"]) from None

    def _variable(self, name: str, settings: Settings) -> Variable:
        laws = self._laws_on(name, settings)
        steps = tuple((stream, d.law.signature, d.relation) for stream, d in laws)
        return Variable(name, laws[0][1].relation != "is", steps)

    def _has_floor(self, name: str, settings: Settings) -> bool:
        """Whether the lowest law of `name` is absolute, or has a value to start from."""
        return self._laws_on(name, settings)[0][1].relation == "is" or name in settings.values

    def _refuse_missing(self, model: Model, names: list[str], replaced: tuple[str, ...]) -> None:
        missing = [model.quantities[n] for n in names if model.quantities[n].default is None]
        if missing:  # a stage needs whole records: is the number itself read?
            used = model.used(self.sweep.outputs, replaced)
            missing = [q for q in missing if q.name in used]
        if missing:
            raise SpecError(
                [
                    f"{self.sweep.path or 'spec'}: {q.name} has no value: {q.meaning} "
                    f"({q.unit}); give it in `set`, `draws`, an axis or a preset of `base`. "
                    f"{model.owner[q.name].__name__} needs it."
                    for q in missing
                ]
            )

    def _refuse(self) -> None:
        """Ask every stage that has conditions on constants; all refusals at once."""
        found = dict.fromkeys((*wrong_names(self.sweep), *idle_tails(self.sweep, self.streams)))
        asks = any(self._conditions(v) for v in self.variants)
        for cell in range(min(self.layout.cell_count, 100_000) if asks else 0):
            found |= dict.fromkeys(self.refusals(cell))
        if found:
            raise SpecError([f"{self.sweep.path or 'spec'}: {text}" for text in found])

    def refusals(self, cell: int) -> list[str]:
        """Why this cell cannot be, as its stages say."""
        given, texts = self._settings(self.where(cell)).values, []
        for refusal, names, records in self._conditions(self.variant(cell)):
            pairs = ((n, given.get(n, self._defaults.get(n))) for n in names)
            known = tuple((n, v) for n, v in pairs if v is not None)
            texts.append(self._asked(refusal, known, records))
        return [text for text in texts if text is not None]

    def _conditions_of(self, variant: Variant) -> list[Condition]:
        traced = variant.model.traced(variant.outputs, variant.replaced)
        return conditions((stage.function for stage in traced), self.random)

    @cached_property
    def _defaults(self) -> dict[str, float]:
        return {n: q.default for n, q in declared().items() if q.default is not None}

    # ---- identity

    @cached_property
    def _results(self) -> dict[str, Quantity]:
        varying = {n for v in self.variants for n in v.varying}
        return results(self.sweep.outputs, varying, self.sweep.steps, declared())

    @property
    def outputs(self) -> tuple[str, ...]:
        """What is summarised: the spec's outputs, and statistics over the steps of a sample."""
        return tuple(self._results)

    @cached_property
    def known(self) -> dict[str, Quantity]:
        """Every quantity of the catalogue, and what the engine makes of them."""
        return declared() | self._results | {WEIGHT: WEIGHT_DECLARED}

    @cached_property
    def content(self) -> dict[str, Any]:
        """What the hash stands for."""
        return {
            "address": RULE,
            "sweep": resolved(self.sweep),
            "outputs": self.sweep.outputs,
        }

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the resolved spec and its outputs; without samples, description, file name."""
        text = json.dumps(self.content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()
