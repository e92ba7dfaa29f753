"""Generators of random numbers besides the devices' generators."""

from typing import Any, Self

from . import _plugrad
from ._plugrad import Device, Tensor

__all__ = ["Generator", "draw"]


def _mixed(seed: int, offset: int) -> int:
    """A number of 63 bits for each pair: the finaliser of splitmix64 (Steele et al., 2014)."""
    z = (seed + (offset + 1) * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return (z ^ z >> 31) >> 1


class Generator:
    """Separate random numbers for functions with generator=, such as rand, randperm and DataLoader: the seed alone decides
    them, whatever else draws.

    device: the device with the numbers; by default the default device. While such a function runs, the device's generator
    has this generator's state: other threads should not draw from the device's generator then.
    """

    def __init__(self, device: Any = None) -> None:
        self.device = _plugrad.default_device() if device is None else Device(device)
        self._state = (0, 0)
        self._before: tuple[int, int] | None = None

    def manual_seed(self, seed: int) -> Self:
        """Begins at this seed. Returns itself. Raises ValueError for a seed beyond 64 bits."""
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError(f"[Generator] seed {seed} is out of range: whole numbers of 64 bits are expected")
        self._state = (seed & 0xFFFFFFFFFFFFFFFF, 0)
        return self

    def initial_seed(self) -> int:
        """The seed."""
        return self._state[0]

    def seed(self) -> int:
        """Begins at a seed drawn from the device's own generator, and returns the seed."""
        self.manual_seed(draw(self.device))
        return self._state[0]

    def get_state(self) -> Tensor:
        """Returns the state, i64 (2), for set_state."""
        return Tensor([each - (1 << 64) if each >> 63 else each for each in self._state], dtype="i64", device="cpu")

    def set_state(self, state: Tensor) -> None:
        """Restores the state returned by get_state. Raises ValueError unless state is an i64 tensor of shape (2,)."""
        if not isinstance(state, Tensor) or state.shape != (2,) or state.dtype != "i64":
            raise ValueError("[Generator] the state must be what get_state returned: i64 of shape (2,)")
        first, second = state.tolist()
        self._state = (first & 0xFFFFFFFFFFFFFFFF, second & 0xFFFFFFFFFFFFFFFF)

    def _begin(self) -> None:
        self._before = _plugrad.generator_state(self.device)
        _plugrad.set_generator_state(self._state, self.device)

    def _end(self) -> None:
        self._state = _plugrad.generator_state(self.device)
        if self._before is not None:
            _plugrad.set_generator_state(self._before, self.device)
            self._before = None

    def _draw(self) -> int:
        seed, offset = self._state
        self._state = (seed, offset + 1)
        return _mixed(seed, offset)


def draw(source: Any = None) -> int:
    """A number of 63 bits from a Generator, or from a device's own generator, by default the default device's."""
    if isinstance(source, Generator):
        return source._draw()
    seed, offset = _plugrad.generator_state(source)
    _plugrad.set_generator_state((seed, offset + 1), source)
    return _mixed(seed, offset)
