"""Power: what does a rack draw?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Power:
    """What does a rack draw?"""

    rack_power: Array = quantity(
        "W", "power of one rack of nominal GPUs in compute", bounds=(0, 1e7)
    )
    rack_density: Array = quantity(
        "1",
        "whether the rack draws more than its cooling is built for",
        bounds=(0, 1),
        flags=("within", "beyond"),
    )
