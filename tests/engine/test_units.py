"""Units at the border: exact factors, dimensions kept apart, texts that help."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricarlo.units import EXAMPLES, UNITS, UnitError, difference_unit, readable, to_si
from fabricarlo.written.names import declared

# right-hand sides from the definitions: 8 bits a byte, 60 s, 1000 litres, 1 ft = 0.3048 m
KNOWN = [
    ("800 Gbit/s", "B s-1", 1e11),
    ("800 Gb/s", "B s-1", 1e11),
    ("800 Gbps", "B s-1", 1e11),
    ("1.6 Tbit/s", "B s-1", 2e11),
    ("100 GB/s", "B s-1", 1e11),
    ("8 bit/s", "B s-1", 1.0),
    ("1 GiB/s", "B s-1", 2.0**30),
    ("3.6 TB", "B", 3.6e12),
    ("1 KiB", "B", 1024.0),
    ("1.2 us", "s", 1.2e-6),
    ("1.2 µs", "s", 1.2e-6),
    ("600ns", "s", 6e-7),
    ("2 min", "s", 120.0),
    ("1.5 h", "s", 5400.0),
    ("132 kW", "W", 132e3),
    ("45 degC", "degC", 45.0),
    ("-5 °C", "degC", -5.0),
    ("10 K", "K", 10.0),
    ("2 %/K", "K-1", 0.02),
    ("28 mK/W", "K W-1", 0.028),
    ("1.5 L/min", "m3 s-1", 2.5e-5),
    ("1 CFM", "m3 s-1", 0.3048**3 / 60),
    ("2 km", "m", 2000.0),
    ("2.5 PFLOP/s", "s-1", 2.5e15),
    ("3 MJ/m3/K", "J m-3 K-1", 3e6),
    ("95 %", "1", 0.95),
    ("1_000", "1", 1000.0),
    ("8e11", "1", 8e11),
    ("7 B s-1", "B s-1", 7.0),
]


@pytest.mark.parametrize(("text", "unit", "value"), KNOWN)
def test_a_text_has_its_value_in_si(text: str, unit: str, value: float) -> None:
    assert to_si(text, unit) == pytest.approx(value, rel=1e-15)


def test_a_decimal_text_is_the_number_that_was_written() -> None:
    # 600 * 1e-9 is 6.000000000000001e-07: a label would not be found again
    assert to_si("600 ns", "s") == 6e-7 != 600 * 1e-9


def test_eight_is_between_bits_and_bytes_and_nowhere_else() -> None:
    for prefix in ("", "k", "M", "G", "T"):
        in_bytes = UNITS[f"{prefix}B/s"].factor
        for spelling in ("bit/s", "b/s", "bps"):
            assert in_bytes == 8 * UNITS[f"{prefix}{spelling}"].factor
        assert in_bytes == UNITS[f"{prefix}B"].factor


REFUSED = [
    ("800", "B s-1", "'800' is not in a unit of B s-1; write e.g. Gbit/s or GB/s."),
    ("16 Gbit", "B", "'16 Gbit' is an amount of bits, not of B; write e.g. B, GB or GiB."),
    ("40 K", "degC", "'40 K' is a difference (K), not a temperature; write e.g. degC."),
    ("40 degC", "K", "'40 degC' is a temperature (degC), not a difference; write e.g. K."),
    ("3 GB", "B s-1", "'3 GB' is in a unit of B, not of B s-1; write e.g. Gbit/s or GB/s."),
    ("1 gb/s", "B s-1", "Did you mean GB/s or Gb/s?"),
    ("3 uss", "s", "Did you mean us?"),
    ("fast", "s", "'fast' is no number with a unit; write e.g. '1.5 us'."),
    ("", "1", "'' is no number with a unit; write e.g. '1.5 us'."),
    ("1e400 s", "s", "'1e400 s' is too large or too small for a number"),
    ("1e999999999999 s", "s", "is too large or too small for a number"),
]


@pytest.mark.parametrize(("text", "unit", "message"), REFUSED)
def test_a_wrong_text_is_explained(text: str, unit: str, message: str) -> None:
    with pytest.raises(UnitError, match=re.escape(message)):
        to_si(text, unit)


@pytest.mark.parametrize("unit", sorted(set(EXAMPLES) - {"1"}))
def test_the_examples_of_a_unit_are_of_that_unit(unit: str) -> None:
    for symbol in re.split(r", | or ", EXAMPLES[unit]):
        assert UNITS[symbol].dimension == unit


def test_every_quantity_has_a_unit_with_examples() -> None:
    assert {q.unit for q in declared().values()} <= set(EXAMPLES)


@given(
    st.sampled_from(sorted(EXAMPLES)),
    st.floats(min_value=-1e18, max_value=1e18).filter(lambda v: v == 0 or abs(v) > 1e-12),
)
def test_readable_text_reads_back(unit: str, value: float) -> None:
    assert math.isclose(to_si(readable(value, unit, 12), unit), value, rel_tol=1e-10)


def test_readable_chooses_the_prefix() -> None:
    assert readable(1e11, "B s-1") == "100 GB/s"
    assert readable(6e-7, "s") == "600 ns"
    assert readable(0.99999, "s") == "1 s"
    assert readable(0, "m") == "0 m"
    assert readable(-40.0, "degC") == "-40 degC"
    assert readable(65536.0, "1") == "65536"


def test_a_difference_of_temperatures_is_in_kelvin() -> None:
    assert (difference_unit("degC"), difference_unit("s")) == ("K", "s")
