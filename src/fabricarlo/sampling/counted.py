"""Many uniforms a sample, made where they are used."""

import dataclasses

from jax import Array

from fabric_kernels.tree import as_tree
from fabric_kernels.uniform import Uniform, WideUniform
from fabricarlo.sampling.uniforms import uniform
from fabricarlo.sampling.words import wide_words


@as_tree
@dataclasses.dataclass(frozen=True)
class Counted(WideUniform):
    """A wide slot: uniform j of sample n is Threefry's first word at counter (n, begin + j).

    `begin` is where the numbers of a later step begin, None for the first. Keys are uint32
    [1, 1 or column], `sample` is n mod 2^32 [replicate, column].
    """

    first_key: Array
    second_key: Array
    sample: Array
    begin: Array | None = None

    def at(self, number: Array) -> Uniform:
        """The uniforms of this number, [..., replicate, column]."""
        lead = (1,) * (number.ndim - self.sample.ndim)
        key = (self._led(self.first_key, lead), self._led(self.second_key, lead))
        number = number if self.begin is None else number + self.begin
        word, _ = wide_words(key, self._led(self.sample, lead), number)
        return uniform(word)

    @staticmethod
    def _led(array: Array, lead: tuple[int, ...]) -> Array:
        return array.reshape(lead + array.shape)
