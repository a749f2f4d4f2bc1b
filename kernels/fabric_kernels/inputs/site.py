"""Where a building stands, and what it is made of."""

from jax import Array

from fabric_kernels.quantity import quantity, record


@record
class Climate:
    """Dry-bulb air of a site: mean, season, day and weather. A site without them has no answer."""

    ambient_temperature: Array = quantity("degC", "annual mean of the air", bounds=(-30, 45))
    ambient_season: Array = quantity("K", "amplitude of the seasons", bounds=(0, 30))
    ambient_day: Array = quantity("K", "amplitude of day and night", bounds=(0, 20))
    ambient_deviation: Array = quantity(
        "K", "standard deviation of the weather about both", bounds=(0.1, 20)
    )


@record
class Plant:
    """Heat rejection and electrical supply of the building."""

    hall_air_temperature: Array = quantity(
        "degC",
        "air supplied to liquid-cooled racks, for the heat that liquid does not take",
        bounds=(10, 50),
        default=35,
        source="[A]",
    )
    unit_approach: Array = quantity(
        "K",
        "coolant of the racks over facility water in the distribution unit",
        bounds=(0, 30),
        default=4,
        source="3-5 K [S]",
    )
    air_coil_approach: Array = quantity(
        "K",
        "air of the hall over the coolant of its coils",
        bounds=(0, 30),
        default=3,
        source="[A]",
    )
    dry_cooler_approach: Array = quantity(
        "K",
        "facility water over outside air at full fans of the dry cooler",
        bounds=(1, 30),
        default=8,
        source="4-12 K [A]",
    )
    dry_cooler_fan_share: Array = quantity(
        "1",
        "dry cooler fans at full speed per unit of heat",
        bounds=(0, 0.2),
        default=0.012,
        source="[A]",
    )
    dry_cooler_least_fan: Array = quantity(
        "1",
        "least power of the fans as a share of full speed",
        bounds=(1e-3, 1),
        default=0.03,
        source="[A]",
    )
    water_temperature_rise: Array = quantity(
        "K",
        "rise of the liquid loops over the racks",
        bounds=(1, 40),
        default=10,
        source="8-12 K [S]",
    )
    air_loop_temperature_rise: Array = quantity(
        "K", "rise of the water of the air coils", bounds=(1, 40), default=12, source="[A]"
    )
    chiller_carnot_fraction: Array = quantity(
        "1",
        "coefficient of performance of the chiller as a share of Carnot's",
        bounds=(0.05, 1),
        default=0.5,
        source="0.6-0.8 kW/ton [V]",
    )
    rack_loop_pump_head: Array = quantity(
        "Pa",
        "pressure of the rack loop's pumps over their efficiency",
        bounds=(0, 5e6),
        default=150e3 / 0.55,
        source="150 kPa at 0.55 [A]",
    )
    facility_pump_head: Array = quantity(
        "Pa",
        "pressure of the facility water's pumps over their efficiency",
        bounds=(0, 5e6),
        default=200e3 / 0.65,
        source="200 kPa at 0.65 [A]",
    )
    air_handler_share: Array = quantity(
        "1",
        "fans of the hall's air handlers per unit of heat",
        bounds=(0, 0.3),
        default=0.03,
        source="[A]",
    )
    transformer_efficiency: Array = quantity(
        "1", "medium to low voltage", bounds=(0.5, 1), default=0.993, source="[A]"
    )
    ups_efficiency: Array = quantity(
        "1",
        "uninterruptible supply, in economy mode or as batteries in the rack",
        bounds=(0.5, 1),
        default=0.985,
        source="0.96-0.99 [A]",
    )
    distribution_efficiency: Array = quantity(
        "1",
        "busways and panels",
        bounds=(0.5, 1),
        default=0.993,
        source="94-98 % with PDUs [S]; [A]",
    )
    miscellaneous_share: Array = quantity(
        "1",
        "lighting, offices and controls per unit of IT power",
        bounds=(0, 0.2),
        default=0.004,
        source="[A]",
    )
