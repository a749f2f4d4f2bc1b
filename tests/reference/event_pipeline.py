"""Pipeline schedules, one microbatch of one stage after another.

Plain 1F1B (Narayanan et al., PipeDream, SOSP'19; its flush version, Megatron-LM, SC'21, section
2.2): stage s of p runs p - 1 - s forwards ahead, then one forward and one backward in turn, then
the backwards that are left. Interleaved (SC'21, section 2.2.2): every stage has v pieces of the
model; microbatches go through a piece in groups of p. A message to the next piece takes one hop
and does not hold its sender up.
"""

from collections.abc import Callable
from dataclasses import dataclass

FORWARD, BACKWARD = "forward", "backward"
Work = tuple[str, int, int]
"""Direction, piece of the model from 0 to p v - 1, microbatch."""


@dataclass(frozen=True)
class Pipeline:
    """p stages with v pieces of the model each, and what one piece takes for one microbatch."""

    stages: int
    microbatches: int
    forward: float
    backward: float
    hop: float = 0.0
    pieces: int = 1


def schedule(pipeline: Pipeline, stage: int) -> list[Work]:
    """What one stage does, in its order."""
    stages, pieces = pipeline.stages, pipeline.pieces
    total = pipeline.microbatches * pieces

    def work(direction: str, number: int) -> Work:
        group, inside = divmod(number, stages * pieces)
        piece, microbatch = divmod(inside, stages)
        if direction == BACKWARD:
            piece = pieces - 1 - piece
        return direction, piece * stages + stage, group * stages + microbatch

    def plain(direction: str, number: int) -> Work:
        return direction, stage, number

    made: Callable[[str, int], Work] = plain if pieces == 1 else work
    ahead = stages - 1 - stage
    if pieces > 1:
        if pipeline.microbatches % stages:
            raise ValueError("interleaved: the stages must divide the microbatches")
        ahead = 2 * ahead + (pieces - 1) * stages
    ahead = min(ahead, total)
    order = [made(FORWARD, number) for number in range(ahead)]
    for number in range(total - ahead):
        order += [made(FORWARD, number + ahead), made(BACKWARD, number)]
    return order + [made(BACKWARD, number) for number in range(total - ahead, total)]


def needed(pipeline: Pipeline, work: Work) -> Work | None:
    """The work whose result this one waits for."""
    direction, piece, microbatch = work
    last = pipeline.stages * pipeline.pieces - 1
    if direction == FORWARD:
        return (FORWARD, piece - 1, microbatch) if piece else None
    if piece == last:
        return FORWARD, piece, microbatch
    return BACKWARD, piece + 1, microbatch


def finish(pipeline: Pipeline) -> float:
    """Time of the last backward: every stage works through its order as results arrive."""
    orders = [schedule(pipeline, stage) for stage in range(pipeline.stages)]
    place, free = [0] * pipeline.stages, [0.0] * pipeline.stages
    done: dict[Work, float] = {}
    left = sum(map(len, orders))
    while left:
        before = left
        for stage, order in enumerate(orders):
            while place[stage] < len(order):
                work = order[place[stage]]
                earlier = needed(pipeline, work)
                if earlier is not None and earlier not in done:
                    break
                arrived = 0.0
                if earlier is not None:
                    away = earlier[1] % pipeline.stages != stage
                    arrived = done[earlier] + (pipeline.hop if away else 0.0)
                took = pipeline.forward if work[0] == FORWARD else pipeline.backward
                free[stage] = max(free[stage], arrived) + took
                done[work] = free[stage]
                place[stage] += 1
                left -= 1
        if left == before:
            raise ValueError("the schedule waits for itself")
    return max(free)


def bubble_share(pipeline: Pipeline) -> float:
    """What the step takes beyond the work of one stage, as a share of that work."""
    work = pipeline.microbatches * pipeline.pieces * (pipeline.forward + pipeline.backward)
    return finish(pipeline) / work - 1


def hops(pipeline: Pipeline, step: float = 2.0**-20) -> float:
    """Hops on the critical path: what the finish gains by a hop, per length of it."""
    longer = Pipeline(
        pipeline.stages, pipeline.microbatches, pipeline.forward, pipeline.backward, step,
        pipeline.pieces,
    )  # fmt: skip
    without = Pipeline(
        pipeline.stages, pipeline.microbatches, pipeline.forward, pipeline.backward, 0.0,
        pipeline.pieces,
    )  # fmt: skip
    return (finish(longer) - finish(without)) / step
