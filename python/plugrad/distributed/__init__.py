"""Processes that train together, by the names of torch.distributed.

`plugrad launch -n 2 python3 train.py` (or mpirun, torchrun, srun) starts the processes; each calls

    from plugrad import distributed as dist

    dist.init_process_group()
    loss = ...
    dist.all_reduce(loss, dist.ReduceOp.AVG)
    dist.destroy_process_group()

A communicator, a plugin over Gloo, MPI or another engine, moves the bytes. Tensors may be on any device and need not be
dense. A rank that ends, falls silent or calls something else is an error of all ranks, which names the rank:
ConnectionError, or TimeoutError where a rank did not come in time.
"""

from .._plugrad import _ProcessGroup as ProcessGroup
from . import device_mesh as device_mesh
from ._collectives import (ReduceOp as ReduceOp, Work as Work, all_gather as all_gather,
                           all_gather_into_tensor as all_gather_into_tensor, all_reduce as all_reduce,
                           all_to_all as all_to_all, all_to_all_single as all_to_all_single, barrier as barrier,
                           broadcast as broadcast, gather as gather, irecv as irecv, isend as isend, recv as recv,
                           reduce as reduce, reduce_scatter as reduce_scatter,
                           reduce_scatter_tensor as reduce_scatter_tensor, scatter as scatter, send as send)
from ._groups import (abort_process_group as abort_process_group, destroy_process_group as destroy_process_group,
                      get_backend as get_backend, get_process_group_ranks as get_process_group_ranks, get_rank as get_rank,
                      get_world_size as get_world_size, init_process_group as init_process_group,
                      is_available as is_available, is_gloo_available as is_gloo_available,
                      is_initialized as is_initialized, is_launched as is_launched,
                      is_mpi_available as is_mpi_available, is_nccl_available as is_nccl_available, new_group as new_group)
from ._objects import (all_gather_object as all_gather_object, broadcast_object_list as broadcast_object_list,
                       gather_object as gather_object)
from .device_mesh import DeviceMesh as DeviceMesh, init_device_mesh as init_device_mesh

__all__ = [
    "DeviceMesh", "ProcessGroup", "ReduceOp", "Work", "abort_process_group", "all_gather",
    "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single", "barrier",
    "broadcast", "broadcast_object_list", "destroy_process_group", "device_mesh", "gather", "gather_object",
    "get_backend", "get_process_group_ranks", "get_rank", "get_world_size", "init_device_mesh",
    "init_process_group", "irecv", "is_available", "is_gloo_available", "is_initialized", "is_launched",
    "is_mpi_available", "is_nccl_available", "isend", "new_group", "recv", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter", "send"]
