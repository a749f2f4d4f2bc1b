"""Window: does the send window hold a flow back?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Window:
    """Does the send window hold a flow back?"""

    window_packets: Array = quantity(
        "1", "packets that a flow may have on their way", bounds=(1e-3, 1e12)
    )
    window_share: Array = quantity(
        "1", "share of the rate that the send window allows a flow", bounds=(0, 1)
    )
    window_limited: Array = quantity(
        "1",
        "whether the send window is below the bandwidth-delay product",
        bounds=(0, 1),
        flags=("open", "window-limited"),
    )
