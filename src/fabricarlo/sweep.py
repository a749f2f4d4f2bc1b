"""A sweep, read and checked: frozen records of numbers in SI and names, nothing of YAML."""

import dataclasses
from typing import Literal

from fabricarlo.laws import Law

Relation = Literal["is", "times", "plus"]


@dataclasses.dataclass(frozen=True)
class Draw:
    """A random quantity: its law, and how the law's value meets the value underneath."""

    quantity: str
    law: Law
    relation: Relation = "is"


@dataclasses.dataclass(frozen=True)
class Settings:
    """What `base`, `set` or one label of an axis fixes."""

    values: dict[str, float] = dataclasses.field(default_factory=dict)  # quantity -> SI
    draws: dict[str, Draw] = dataclasses.field(default_factory=dict)  # laws inside presets
    choices: dict[str, str] = dataclasses.field(default_factory=dict)  # question -> answer


@dataclasses.dataclass(frozen=True)
class Axis:
    """A labelled dimension of the grid; labels are numbers in SI or names."""

    name: str
    labels: tuple[float | str, ...]
    settings: tuple[Settings, ...]  # one a label
    unit: str | None = None  # of number labels

    @property
    def structural(self) -> bool:
        """Whether two labels differ in an answer or in the kind of a law."""
        kinds = {
            (
                tuple(sorted(s.choices.items())),
                tuple(sorted((n, d.law.signature, d.relation) for n, d in s.draws.items())),
                tuple(sorted(s.values)),
            )
            for s in self.settings
        }
        return len(kinds) > 1


@dataclasses.dataclass(frozen=True)
class Copula:
    """Gaussian copula of some draws: names in order, and the correlation of their normal scores."""

    quantities: tuple[str, ...]
    correlation: tuple[tuple[float, ...], ...]


@dataclasses.dataclass(frozen=True)
class Tail:
    """The end of a uniform's range that is drawn more often than it occurs, and weighed back."""

    stream: str
    probability: float  # of the tail
    upper: bool  # the large uniforms, else the small ones
    share: float = 0.5  # of the points that are laid into the tail; the others lie as ever

    @property
    def points(self) -> float:
        """The share of all points that falls into the tail."""
        return self.share + (1 - self.share) * self.probability


@dataclasses.dataclass(frozen=True)
class Keep:
    """What the store keeps."""

    samples: bool = False
    every: int = 1  # keep each k-th sample only
    quantiles: tuple[float, ...] = (0.01, 0.5, 0.9, 0.99, 0.999)
    codec: Literal["none", "blosc-zstd"] = "none"
    mantissa_bits: int | None = None  # round kept samples to this many explicit bits


@dataclasses.dataclass(frozen=True)
class Sweep:
    """One spec, resolved as far as it can be without a plan."""

    name: str
    seed: int
    samples: int  # per cell
    outputs: tuple[str, ...]
    settings: Settings  # base and set, merged in that order
    axes: tuple[Axis, ...] = ()
    draws: tuple[Draw, ...] = ()  # in file order: the order of Sobol' dimensions
    copulas: tuple[Copula, ...] = ()
    sampler: Literal["sobol", "random"] = "sobol"
    replicates: int = 8  # a power of two
    independent: tuple[str, ...] = ()  # axes whose label joins the stream
    design: Literal["sensitivity"] | None = None
    steps: int = 1  # synchronous steps per sample
    tails: tuple[Tail, ...] = ()
    keep: Keep = Keep()
    description: str = ""
    text: str = ""  # the file as written
    path: str = ""
