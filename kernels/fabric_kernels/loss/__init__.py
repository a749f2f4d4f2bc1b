"""Loss: how often does a packet go missing, and what does one cost?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Loss:
    """How often does a packet go missing, and what does one cost?"""

    loss_stall: Array = quantity("s", "time that lost packets add to the exchange", bounds=(0, 1e7))
