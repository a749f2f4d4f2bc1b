"""What training does with gradients, by how much of the model's state every rank keeps."""

from fabric_kernels.operation import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Operation
from fabric_kernels.quantity import record


@record
class Replicated(Operation):
    """One all-reduce."""

    calls = (ALL_REDUCE,)


@record
class ShardedOptimizer(Operation):
    """One reduce-scatter and one all-gather."""

    calls = (REDUCE_SCATTER, ALL_GATHER)


@record
class ShardedParameters(Operation):
    """One reduce-scatter and two all-gathers."""

    calls = (REDUCE_SCATTER, ALL_GATHER, ALL_GATHER)


def replicated() -> Operation:
    """Every rank keeps the whole state: the gradients are all-reduced once a step."""
    return Replicated()


def zero_1() -> Operation:
    """ZeRO stages 1 and 2: gradients are reduce-scattered, updated parameters all-gathered.

    Rajbhandari et al., ZeRO, arXiv:1910.02054, section 7. Both carry the payload of the gradients.
    """
    return ShardedOptimizer()


def zero_3() -> Operation:
    """ZeRO stage 3: parameters are gathered for forward and backward, gradients reduce-scattered.

    Rajbhandari et al., ZeRO, arXiv:1910.02054, section 7. All three carry the payload of the
    gradients.
    """
    return ShardedParameters()
