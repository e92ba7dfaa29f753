"""plugrad.distributed: groups, collectives, and ranks that fail."""

import signal
import socket

import pytest

import plugrad
from plugrad import distributed as dist

from jobs import expect_passed, job as job, needs_gloo

pytestmark = needs_gloo


def test_collectives(job):
    expect_passed(job("""
        group = dist.init_process_group("gloo")
        assert (group.rank(), group.size()) == (dist.get_rank(), dist.get_world_size()) == (rank, size)
        assert dist.get_backend() == "gloo" and dist.get_process_group_ranks() == list(range(size))
        x = plugrad.full((4,), float(rank))
        assert dist.all_reduce(x) is None and x.tolist() == [3.0] * 4
        y = plugrad.full((4,), float(rank + 1))
        dist.all_reduce(y, dist.ReduceOp.AVG, ordered=True)
        assert y.tolist() == [2.0] * 4
        work = dist.all_reduce(x, dist.ReduceOp.MAX, async_op=True)
        assert work.wait() and work.is_completed()
        parts = [plugrad.zeros(2) for _ in range(size)]
        dist.all_gather(parts, Tensor([rank, 10.0 * rank]))
        assert [p.tolist() for p in parts] == [[r, 10.0 * r] for r in range(size)]
        one = plugrad.zeros(2)
        dist.reduce_scatter(one, [plugrad.full((2,), float(r + rank)) for r in range(size)])
        assert one.tolist() == [3.0 * rank + 3] * 2
        b = plugrad.full((3,), float(rank))
        dist.broadcast(b, 2)
        assert b.tolist() == [2.0] * 3
        z = plugrad.full((2,), float(rank + 1))
        dist.reduce(z, dst=1)
        assert z.tolist() == ([6.0] * 2 if rank == 1 else [rank + 1.0] * 2)
        received = plugrad.zeros(rank * size, 2)
        dist.all_to_all_single(received, plugrad.full((3, 2), float(rank)), [rank] * size, list(range(size)))
        assert received.tolist() == [[float(r)] * 2 for r in range(size) for _ in range(rank)]
        out = [plugrad.zeros(r + 1) for r in range(size)]
        dist.all_to_all(out, [plugrad.full((rank + 1,), float(rank)) for _ in range(size)])
        assert [o.tolist() for o in out] == [[float(r)] * (r + 1) for r in range(size)]
        dist.barrier()
        dist.destroy_process_group()
        assert not dist.is_initialized()
    """, size=3))


def test_messages_and_lists_of_one_rank(job):
    expect_passed(job("""
        dist.init_process_group()
        x = plugrad.zeros(3)
        if rank == 0:
            dist.send(Tensor([1.0, 2.0, 3.0]), 1)
        elif rank == 1:
            assert dist.recv(x, 0) == 0 and x.tolist() == [1.0, 2.0, 3.0]
        works = [dist.isend(plugrad.full((2,), float(rank)), (rank + 1) % size),
                 dist.irecv(y := plugrad.zeros(2), (rank - 1) % size)]
        assert all(work.wait() for work in works) and y.tolist() == [float((rank - 1) % size)] * 2
        parts = [plugrad.zeros(1) for _ in range(size)] if rank == 1 else None
        dist.gather(Tensor([float(rank)]), parts, dst=1)
        if rank == 1:
            assert [p.item() for p in parts] == [0.0, 1.0, 2.0]
        mine = plugrad.zeros(1)
        dist.scatter(mine, [Tensor([10.0 * r]) for r in range(size)] if rank == 2 else None, src=2)
        assert mine.item() == 10.0 * rank
    """, size=3))


def test_objects(job):
    expect_passed(job("""
        dist.init_process_group()
        everything = [None] * size
        dist.all_gather_object(everything, {"rank": rank, "text": "x" * (1000 * rank)})
        assert [e["rank"] for e in everything] == [0, 1] and len(everything[1]["text"]) == 1000
        chosen = [rank, "mine"] if rank else [{"seed": 7}, None]
        dist.broadcast_object_list(chosen)
        assert chosen == [{"seed": 7}, None]
        found = [None] * size if rank == 0 else None
        dist.gather_object(("from", rank), found)
        assert rank or found == [("from", 0), ("from", 1)]
    """))


def test_groups_and_meshes(job):
    expect_passed(job("""
        mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        assert mesh.ndim == 2 and mesh.shape == (2, 2) and mesh.size() == 4
        assert mesh.get_coordinate() == [rank // 2, rank % 2]
        x = plugrad.full((1,), float(rank))
        dist.all_reduce(x, group=mesh.get_group("tp"))
        assert x.item() == (1.0 if rank < 2 else 5.0)
        line = mesh["dp"]
        assert line.mesh.tolist() == [rank % 2, rank % 2 + 2] and line.get_local_rank() == rank // 2
        pair = dist.new_group([1, 3])
        assert (pair is None) == (rank % 2 == 0)
        if pair is not None:
            assert pair.ranks == [1, 3] and pair == pair and pair != mesh.get_group(0)
    """, size=4))


def test_tensors_of_any_form(job):
    expect_passed(job("""
        dist.init_process_group()
        x = plugrad.arange(12.0).reshape(3, 4)
        dist.all_reduce(x.T[1:3])
        assert x.tolist() == [[0, 2, 4, 3], [4, 10, 12, 7], [8, 18, 20, 11]]
        half = plugrad.full((5,), 1.0, dtype="bf16")
        dist.all_reduce(half)
        assert half.tolist() == [2.0] * 5
        leaf = plugrad.ones(2).requires_grad_()
        try:
            dist.all_reduce(leaf)
        except ValueError as error:
            assert "all_reduce" in str(error)
        else:
            assert False
        with plugrad.no_grad():
            dist.all_reduce(leaf)
        assert leaf.tolist() == [2.0, 2.0]
    """))


def test_the_other_ranks_quote_an_exception(job):
    (first, _), (second, _) = job("""
        dist.init_process_group()
        if rank == 1:
            raise OSError("the disk is full")
        dist.barrier()
    """)
    assert "ConnectionError: [barrier] collective 1 of the group of 2 ranks failed: rank 1 (process " in first
    assert "failed: OSError: the disk is full" in first
    assert "OSError: the disk is full" in second


def test_a_rank_that_does_not_come_is_named(job):
    (first, status), _ = job("""
        dist.init_process_group(timeout=1)
        if rank == 1:
            import time
            time.sleep(8)
        try:
            dist.all_reduce(plugrad.zeros(3))
        except TimeoutError as error:
            print(error)
            os._exit(0)
    """)
    assert status == 0 and "did not end within 1000 ms: rank 1 (process " in first and "lags behind" in first


def test_a_killed_rank_is_named(job):
    (first, _), (_, killed) = job("""
        import signal
        dist.init_process_group()
        dist.barrier()
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        dist.all_reduce(plugrad.zeros(3))
    """)
    assert killed == -signal.SIGKILL and "ConnectionError" in first and "rank 1 (process " in first and "is dead" in first


def test_ranks_meet_by_tcp_beside_a_port_in_use(job):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        expect_passed(job("""
            import datetime
            dist.init_process_group(init_method=sys.argv[1] if sys.argv[1:] else os.environ["MEET"],
                                    timeout=datetime.timedelta(seconds=20))
            x = plugrad.ones(1)
            dist.all_reduce(x)
            assert x.item() == 2.0
        """, MEET=f"tcp://127.0.0.1:{port}"))


def test_groups_begin_again(job):
    expect_passed(job("""
        for round in range(3):
            dist.init_process_group()
            x = plugrad.ones(1)
            dist.all_reduce(x)
            assert x.item() == 2.0
            dist.destroy_process_group()
    """))


def test_other_threads_run_while_a_rank_waits(job):
    expect_passed(job("""
        import threading, time
        dist.init_process_group()
        ticks = []
        if rank == 0:
            thread = threading.Thread(target=lambda: [ticks.append(time.sleep(0.01)) for _ in range(10)])
            thread.start()
            dist.barrier()
            thread.join()
            assert len(ticks) == 10
        else:
            time.sleep(0.3)
            dist.barrier()
    """))


def test_errors_before_a_group(tmp_path):
    with pytest.raises(ValueError, match="this process is in no group: call init_process_group first"):
        dist.all_reduce(plugrad.zeros(2))
    with pytest.raises(ValueError, match="there is no communicator 'pigeon': expected one of .*gloo"):
        dist.init_process_group("pigeon")
    with pytest.raises(ValueError, match="nothing tells this process its rank"):
        dist.init_process_group("gloo")
    with pytest.raises(ValueError, match="unknown option 'speed'; known: interface address"):
        dist.init_process_group("gloo", f"file://{tmp_path}", rank=0, world_size=1, options={"speed": "high"})
    with pytest.raises(ValueError, match="another form: file:///DIRECTORY, tcp://HOST:PORT or pmix: expected"):
        dist.init_process_group("gloo", "http://x", rank=0, world_size=1)
    with pytest.raises(ValueError, match="rank 3 of 2 ranks"):
        dist.init_process_group("gloo", rank=3, world_size=2)
    assert not dist.is_initialized()


def test_one_process_alone(run_python, tmp_path):
    run_python("""
import plugrad
from plugrad import distributed as dist
import sys
dist.init_process_group("gloo", "file://" + sys.argv[1], rank=0, world_size=1)
x = plugrad.arange(3.0)
dist.all_reduce(x, dist.ReduceOp.AVG)
parts = [plugrad.zeros(3)]
dist.all_gather(parts, x)
assert x.tolist() == parts[0].tolist() == [0.0, 1.0, 2.0]
dist.barrier()
""", tmp_path / "store")
