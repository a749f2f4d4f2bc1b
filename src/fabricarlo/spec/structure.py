"""The shape of a spec file: which keys it has and of what kind their values are.

Names, units, bounds and laws are checked later; here only what pydantic can say by itself.
"""

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic import WithJsonSchema as Shown

MOST_SAMPLES = 2**52
MOST_STEPS = 10_000  # a lane holds the largest hundredth of them


def _real(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is no number")  # noqa: TRY004 (pydantic reports a ValueError only)
    return value


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)  # 1e6 is a float in YAML
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{value!r} is not a whole number")  # noqa: TRY004
    return value


def _power_of_two(value: int) -> int:
    if value & (value - 1):
        raise ValueError(f"{value!r} is not a power of two")
    return value


def _shares(values: list[float]) -> list[float]:
    if not values:
        raise ValueError("is empty; list at least one")
    for value in values:
        if not 0 < value < 1:
            raise ValueError(f"has {value:g}; a quantile lies between 0 and 1, both excluded")
    if any(a >= b for a, b in pairwise(values)):
        raise ValueError("does not increase; sort it, each quantile once")
    return values


def _kept(value: Any) -> Any:
    if isinstance(value, bool | dict):
        return value
    raise ValueError("is neither true, false nor {every: k}")


Whole = Annotated[int, BeforeValidator(_whole)]
Real = Annotated[float, BeforeValidator(_real)]
Text = Annotated[str, Field(strict=True)]
Name = Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
# what is inside these is checked with the names, so that one error does not hide the others
Names = Annotated[list[Any], Shown({"type": "array", "items": {"type": "string"}})]
Anything = Annotated[dict[str, Any], Shown({"type": "object"})]


class Block(BaseModel):
    """A mapping of the file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EveryBlock(Block):
    """Keep each k-th sample only."""

    every: Whole = Field(ge=1, description="keep each k-th sample")


class KeepBlock(Block):
    """What the store keeps."""

    samples: Annotated[bool | EveryBlock, BeforeValidator(_kept)] = Field(
        default=False, description="true: all, false: none, {every: k}: each k-th"
    )
    quantiles: Annotated[list[Real], AfterValidator(_shares)] = Field(
        [0.01, 0.5, 0.9, 0.99, 0.999], description="which quantiles the dataset shows"
    )
    codec: Literal["none", "blosc-zstd"] = Field("none", description="compression of samples")
    mantissa_bits: Whole | None = Field(
        None, ge=1, le=22, description="round kept samples to so many bits of mantissa"
    )


class CopulaBlock(Block):
    """A Gaussian copula of some draws; the earlier ones lead."""

    draws: Names = Field(description="quantities of `draws`")
    correlation: Annotated[Any, Shown({"type": ["number", "array"]})] = Field(
        description="of the normal scores: one number for every pair, or a matrix"
    )


class TailBlock(Block):
    """The tail of one random quantity, drawn more often than it occurs and weighed back."""

    stream: Text = Field(description="a quantity of `draws`, or a stage's slot")
    beyond: Real | None = Field(
        None, description="the tail is above this quantile, e.g. 0.999", gt=0, lt=1
    )
    below: Real | None = Field(
        None, description="the tail is below this quantile, e.g. 0.001", gt=0, lt=1
    )
    share: Real = Field(
        0.5, description="share of the points that is laid into the tail", gt=0, le=0.95
    )


class Spec(Block):
    """A Monte Carlo sweep over designs of an AI cluster."""

    schema_version: Literal[1] = Field(description="version of this format: 1")
    sweep: Name = Field(description="name of the sweep")
    description: Text = Field("", description="the question that the sweep answers")
    seed: Whole = Field(description="whole number from 0", ge=0, lt=2**64)
    samples: Whole = Field(description="samples per cell", ge=1, le=MOST_SAMPLES)
    sampler: Literal["sobol", "random"] = Field("sobol", description="where the points go")
    replicates: Annotated[Whole, Field(ge=1, le=64), AfterValidator(_power_of_two)] = Field(
        8, description="independent scrambles of the Sobol' points, a power of two up to 64"
    )
    base: Names = Field([], description="presets, later ones win")
    set: Anything = Field({}, description="quantities and answers that are fixed")
    axes: Anything = Field({}, description="dimensions of the grid: numbers, presets or answers")
    draws: Anything = Field({}, description="laws of random quantities, most important first")
    copula: list[CopulaBlock] = Field([], description="correlations of draws")
    independent: Names = Field([], description="axes whose cells have draws of their own")
    design: Literal["sensitivity"] | None = Field(None, description="adds Saltelli's matrices")
    steps: Whole = Field(
        1, description="synchronous steps per sample, up to 10000", ge=1, le=MOST_STEPS
    )
    tail: list[TailBlock] = Field([], description="rare ends of draws or slots to draw often")
    outputs: Names = Field(description="quantities that the dataset holds")
    keep: KeepBlock = Field(
        default_factory=lambda: KeepBlock.model_validate({}), description="what the store keeps"
    )
