"""The processes as an array, by the names of torch.distributed.device_mesh."""

from collections.abc import Sequence
from typing import Any

from .. import _plugrad
from .._plugrad import Tensor, _ProcessGroup as ProcessGroup
from ._groups import get_world_size, init_process_group, is_initialized, new_group

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """The processes as an array, with a group for each line along an axis. init_device_mesh() makes it."""

    def __init__(self, device_type: str, mesh: Tensor, mesh_dim_names: tuple[str, ...] | None,
                 groups: tuple[ProcessGroup, ...]) -> None:
        self.device_type = device_type
        self.mesh = mesh
        self.mesh_dim_names = mesh_dim_names
        self._groups = groups

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._groups)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of processes along each axis."""
        return tuple(group.size() for group in self._groups)

    def size(self, mesh_dim: int | None = None) -> int:
        """Returns the number of processes, along one axis or of the mesh."""
        if mesh_dim is not None:
            return self._groups[mesh_dim].size()
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def _axis(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise ValueError(f"[DeviceMesh] the mesh has {self.ndim} axes: say which")
            return 0
        if isinstance(mesh_dim, int):
            return mesh_dim
        if mesh_dim not in (self.mesh_dim_names or ()):
            raise ValueError(f"[DeviceMesh] there is no axis '{mesh_dim}': one of {self.mesh_dim_names} expected")
        assert self.mesh_dim_names is not None
        return self.mesh_dim_names.index(mesh_dim)

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Returns the group of the line along an axis that contains this process."""
        return self._groups[self._axis(mesh_dim)]

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Returns the place of this process along an axis."""
        return self.get_group(mesh_dim).rank()

    def get_coordinate(self) -> list[int]:
        """Returns the place of this process along each axis."""
        return [group.rank() for group in self._groups]

    def __getitem__(self, name: str) -> "DeviceMesh":
        """Returns the line along the axis of this name."""
        axis = self._axis(name)
        place: list[Any] = list(self.get_coordinate())
        place[axis] = slice(None)
        return DeviceMesh(self.device_type, self.mesh[tuple(place)], (name,), (self._groups[axis],))

    def __repr__(self) -> str:
        names = f", mesh_dim_names={self.mesh_dim_names}" if self.mesh_dim_names else ""
        return f"DeviceMesh('{self.device_type}', {self.mesh.tolist()}{names})"


def init_device_mesh(device_type: str, mesh_shape: Sequence[int], *,
                     mesh_dim_names: Sequence[str] | None = None) -> DeviceMesh:
    """Arranges all processes as an array of this shape, row-major. All processes call it.

    Raises ValueError if the shape has another number of elements than there are processes, or another number of names.
    """
    if not is_initialized():
        init_process_group()
    shape, size = tuple(mesh_shape), get_world_size()
    ranks = _plugrad.arange(size, dtype="i64", device="cpu")
    count = 1
    for extent in shape:
        count *= extent
    if count != size or not shape:
        raise ValueError(f"[init_device_mesh] the shape {shape} has {count} places, and there are {size} processes")
    if mesh_dim_names is not None and len(set(mesh_dim_names)) != len(shape):
        raise ValueError(f"[init_device_mesh] {len(shape)} different names expected, one for each axis")
    mesh = ranks.reshape(shape)
    groups: list[ProcessGroup] = []
    for axis in range(len(shape)):
        for line in mesh.moveaxis(axis, -1).reshape(-1, shape[axis]).tolist():
            group = new_group(line)
            if group is not None:
                groups.append(group)
    return DeviceMesh(device_type, mesh, None if mesh_dim_names is None else tuple(mesh_dim_names), tuple(groups))
