"""Why switches cannot add."""

from fabric_kernels.inputs import Reduction


def nvls_refusal(reduction: Reduction) -> str | None:
    """Why the switches of the NVLink domain cannot add; None where they can."""
    if float(reduction.nvlink_reduction) > 0.5:
        return None
    return (
        "nvlink_reduction is no: the NVLink switches of this GPU cannot add; choose a GPU whose "
        "can (Hopper and later), or a collective without nvls."
    )


def switch_refusal(reduction: Reduction) -> str | None:
    """Why the fabric's switches cannot add; None where they can."""
    if float(reduction.fabric_reduction) > 0.5:
        return None
    return (
        "fabric_reduction is no: the switches of this fabric cannot add; choose a fabric that can "
        "(SHARP), set fabric_reduction to 1, or choose another collective."
    )
