"""Units: text to SI and back. The only file that knows giga and 8.

A unit belongs to one dimension, which is named by the unit that quantities use inside (UDUNITS
spelling). Bits are a dimension of their own: an amount in bits is never read as bytes, only a
rate in bits per second is turned into B s-1.
"""

import dataclasses
import difflib
import re
from fractions import Fraction

BITS_PER_BYTE = 8
_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?")

# exact, so that an axis label reads back as the number that was written
_ONE = Fraction(1)
_LARGE = {p: Fraction(1000) ** k for k, p in enumerate("kMGTPE", start=1)}
_BINARY = {p: Fraction(1024) ** k for k, p in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi"), start=1)}
_MILLI, _MICRO = Fraction(1, 1000), Fraction(1, 10**6)
_SMALL = {
    "m": _MILLI,
    "u": _MICRO,
    "\u00b5": _MICRO,  # the micro sign and the Greek letter look the same
    "\u03bc": _MICRO,
    "n": Fraction(1, 10**9),
    "p": Fraction(1, 10**12),
}
_FOOT = Fraction("0.3048")


@dataclasses.dataclass(frozen=True)
class Unit:
    """One spelling: a value in it times `factor` is the value in `dimension`."""

    dimension: str
    factor: Fraction


class UnitError(ValueError):
    """A text that is no number in a unit of the wanted dimension."""


def _prefixed(
    symbol: str, dimension: str, factor: Fraction, *groups: dict[str, Fraction]
) -> dict[str, Unit]:
    made = {symbol: Unit(dimension, factor)}
    for group in groups:
        made |= {p + symbol: Unit(dimension, factor * f) for p, f in group.items()}
    return made


def _digital() -> dict[str, Unit]:
    units = _prefixed("B", "B", _ONE, _LARGE, _BINARY)
    units |= _prefixed("bit", "bit", _ONE, _LARGE)
    units |= _prefixed("B/s", "B s-1", _ONE, _LARGE, _BINARY)
    units |= _prefixed("Bps", "B s-1", _ONE, _LARGE)
    for rate in ("bit/s", "b/s", "bps"):
        units |= _prefixed(rate, "B s-1", Fraction(1, BITS_PER_BYTE), _LARGE)
    return units


def _physical() -> dict[str, Unit]:
    units = _prefixed("s", "s", _ONE, _SMALL)
    units |= {"min": Unit("s", Fraction(60)), "h": Unit("s", Fraction(3600))}
    units |= _prefixed("W", "W", _ONE, {"m": _MILLI}, _LARGE)
    units |= _prefixed("J", "J", _ONE, _LARGE)
    units |= _prefixed("m", "m", _ONE, {"k": _LARGE["k"], "c": Fraction(1, 100), "m": _MILLI})
    units |= {"degC": Unit("degC", _ONE), "\u00b0C": Unit("degC", _ONE), "K": Unit("K", _ONE)}
    units |= {"1/K": Unit("K-1", _ONE), "%/K": Unit("K-1", Fraction(1, 100))}
    units |= {"K/W": Unit("K W-1", _ONE), "mK/W": Unit("K W-1", _MILLI)}
    units |= {"K/kW": Unit("K W-1", _MILLI)}
    units |= {"m3/s": Unit("m3 s-1", _ONE), "m3/h": Unit("m3 s-1", Fraction(1, 3600))}
    units |= {"L/s": Unit("m3 s-1", _MILLI), "L/min": Unit("m3 s-1", _MILLI / 60)}
    units |= {"CFM": Unit("m3 s-1", _FOOT**3 / 60)}
    units |= {"1/s": Unit("s-1", _ONE), "Hz": Unit("s-1", _ONE)}
    units |= _prefixed("FLOP/s", "s-1", _ONE, _LARGE)
    units |= {"J/m3/K": Unit("J m-3 K-1", _ONE), "kJ/m3/K": Unit("J m-3 K-1", _LARGE["k"])}
    units |= {"MJ/m3/K": Unit("J m-3 K-1", _LARGE["M"]), "%": Unit("1", Fraction(1, 100))}
    units |= _prefixed("J/K", "J K-1", _ONE, {p: _LARGE[p] for p in "kM"})
    units |= _prefixed("J/kg", "J kg-1", _ONE, {"k": _LARGE["k"]})
    units |= _prefixed("J/kg/K", "J kg-1 K-1", _ONE, {"k": _LARGE["k"]})
    units |= _prefixed("Pa", "Pa", _ONE, {p: _LARGE[p] for p in "kM"})
    units |= {"bar": Unit("Pa", Fraction(10**5)), "W/K": Unit("W K-1", _ONE)}
    units |= {"1/J": Unit("J-1", _ONE)}
    return units


UNITS: dict[str, Unit] = _digital() | _physical()
"""Every unit that a spec may use, by spelling."""

EXAMPLES: dict[str, str] = {
    "s": "us, ms or s",
    "B": "B, GB or GiB",
    "B s-1": "Gbit/s or GB/s",
    "W": "W, kW or MW",
    "degC": "degC",
    "K": "K",
    "K-1": "1/K",
    "K W-1": "K/W",
    "m3 s-1": "L/min, CFM or m3/s",
    "m": "m or km",
    "s-1": "1/s or TFLOP/s",
    "J": "J or kJ",
    "J-1": "1/J",
    "J m-3 K-1": "J/m3/K",
    "J K-1": "J/K or kJ/K",
    "J kg-1": "J/kg or kJ/kg",
    "J kg-1 K-1": "J/kg/K",
    "Pa": "kPa or bar",
    "W K-1": "W/K",
    "1": "a plain number or %",
}
"""What to write for a quantity of each unit."""


def difference_unit(unit: str) -> str:
    """The unit of a spread or an offset of a quantity: kelvin for temperatures."""
    return "K" if unit == "degC" else unit


def number_and_unit(text: str) -> tuple[Fraction, str]:
    """Split '800 Gbit/s' into 800 and 'Gbit/s'. Raises UnitError without a number in front."""
    match = _NUMBER.match(text.strip())
    if match is None:
        raise UnitError(f"{text!r} is no number with a unit; write e.g. '1.5 us'.")
    value, unit = abs(float(match.group())), text.strip()[match.end() :].strip()
    if not match.group().lower().partition("e")[0].strip("+-0._"):
        return Fraction(0), unit  # whatever its exponent, which no fraction shall spell out
    if not 1e-300 < value < 1e300:
        raise UnitError(f"{text!r} is too large or too small for a number")
    return Fraction(match.group().replace("_", "")), unit


def _refusal(text: str, symbol: str, dimension: str) -> str:
    wanted = EXAMPLES.get(dimension, dimension)
    found = UNITS.get(symbol)
    if found is None:
        fitting = [s for s, u in UNITS.items() if u.dimension == dimension]
        near = [s for s in fitting if s.lower() == symbol.lower()]
        near = near or difflib.get_close_matches(symbol, fitting, n=1)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        return f"{text!r} is not in a unit of {dimension}; write e.g. {wanted}.{hint}"
    if found.dimension == "bit":
        return f"{text!r} is an amount of bits, not of {dimension}; write e.g. {wanted}."
    if (found.dimension, dimension) == ("K", "degC"):
        return f"{text!r} is a difference (K), not a temperature; write e.g. degC."
    if (found.dimension, dimension) == ("degC", "K"):
        return f"{text!r} is a temperature (degC), not a difference; write e.g. K."
    return f"{text!r} is in a unit of {found.dimension}, not of {dimension}; write e.g. {wanted}."


def to_si(text: str, dimension: str) -> float:
    """Read a number with its unit into the unit `dimension`.

    The unit `dimension` itself is always accepted; a pure number needs no unit. Raises UnitError
    whose text says what was found and what to write.
    """
    value, symbol = number_and_unit(text)
    if symbol == dimension or (dimension == "1" and not symbol):
        return float(value)
    unit = UNITS.get(symbol)
    if unit is None or unit.dimension != dimension:
        raise UnitError(_refusal(text, symbol, dimension))
    return float(value * unit.factor)


_READABLE: dict[str, tuple[str, ...]] = {
    "s": ("ns", "us", "ms", "s"),
    "B": ("B", "kB", "MB", "GB", "TB", "PB"),
    "B s-1": ("B/s", "kB/s", "MB/s", "GB/s", "TB/s"),
    "W": ("W", "kW", "MW", "GW"),
    "J": ("J", "kJ", "MJ", "GJ"),
    "m": ("m", "km"),
    "m3 s-1": ("L/min",),
    "K W-1": ("K/W",),
    "K-1": ("1/K",),
    "s-1": ("1/s",),
    "J m-3 K-1": ("J/m3/K",),
    "J K-1": ("J/K", "kJ/K", "MJ/K"),
    "J kg-1": ("J/kg", "kJ/kg"),
    "J kg-1 K-1": ("J/kg/K",),
    "Pa": ("Pa", "kPa", "MPa"),
    "W K-1": ("W/K",),
    "J-1": ("1/J",),
}


def readable(value: float, dimension: str, digits: int = 4) -> str:
    """A value in SI as text for people, with a unit that :func:`to_si` reads back."""
    if dimension == "1":
        whole = value == round(value) and abs(value) < 1e15
        return f"{int(value)}" if whole else f"{value:.{digits}g}"
    chosen = ""
    for symbol in _READABLE.get(dimension, (dimension,)):
        # the first symbol also serves zero and whatever is smaller than one of it
        if not chosen or abs(value) >= float(UNITS[symbol].factor) * (1 - 10.0**-digits / 2):
            chosen = symbol
    scaled = value / float(UNITS[chosen].factor) if chosen in UNITS else value
    return f"{scaled:.{digits}g} {chosen}"
