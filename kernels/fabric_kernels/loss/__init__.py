"""Loss: how often does a packet go missing, and what does one cost?"""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Loss:
    """How often does a packet go missing, and what does one cost?"""

    loss_stall: Array = quantity(
        "s", "time that lost packets add to all exchanges", bounds=(0, 1e7)
    )
    data_loss_stall: Array = quantity(
        "s", "time that lost packets add to the data exchange", bounds=(0, 1e7)
    )
    expert_loss_stall: Array = quantity(
        "s", "time that lost packets add to the expert exchange", bounds=(0, 1e7)
    )
    pipeline_loss_stall: Array = quantity(
        "s", "time that lost packets add to the pipeline exchange", bounds=(0, 1e7)
    )
