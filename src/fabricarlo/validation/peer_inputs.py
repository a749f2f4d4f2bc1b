"""The inputs of a case of another tool, each of which must be used or the case is not ours."""

from collections.abc import Mapping
from typing import Any

from fabricarlo.errors import FabricarloError


class NotModelledError(Exception):
    """The product has no number for a case; says why."""


class Inputs:
    """Named inputs of one case; remembers which were asked for."""

    def __init__(self, values: Mapping[str, Any], place: str) -> None:
        self._values, self._place = values, place
        self._used: set[str] = set()

    def number(self, name: str, default: float | None = None) -> float:
        """A number by name. Raises NotModelledError where it is missing and has no default."""
        self._used.add(name)
        value = self._values.get(name, default)
        if value is None:
            raise NotModelledError(f"the case does not give {name}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FabricarloError(
                f"{self._place}: {name} is {value!r}, which is no number; write one such as 8."
            )
        return float(value)

    def text(self, name: str, default: str) -> str:
        """A word by name."""
        self._used.add(name)
        return str(self._values.get(name, default))

    def only(self, name: str, allowed: object) -> None:
        """Accept an input that may only have one value here, or be left out."""
        self._used.add(name)
        if (value := self._values.get(name, allowed)) != allowed:
            raise NotModelledError(f"{name} = {value} of this case is not modelled, only {allowed}")

    def unused(self) -> list[str]:
        """Inputs that nothing asked for."""
        return [name for name in self._values if name not in self._used]
