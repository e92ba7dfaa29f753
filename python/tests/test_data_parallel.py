"""Data parallel training: nn.parallel.DistributedDataParallel and data.DistributedSampler."""

import pytest

from jobs import expect_passed, job as job, needs_gloo

pytestmark = needs_gloo

NETWORK = """
from plugrad import nn
dist.init_process_group()
plugrad.manual_seed(rank)
model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
plugrad.manual_seed(0)
alone = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
x = plugrad.randn(12, 5)
y = plugrad.randn(12, 3)
def near(a, b):
    return all(plugrad.allclose(p, q, atol=1e-6) for p, q in zip(a, b, strict=True))
"""


def test_ddp_trains_as_one_process_does(job):
    expect_passed(job(NETWORK + """
ddp = nn.parallel.DistributedDataParallel(model)
optimizer = plugrad.optim.AdamW(ddp.parameters(), lr=1e-2)
reference = plugrad.optim.AdamW(alone.parameters(), lr=1e-2)
rows = 12 // size
for step in range(8):
    optimizer.zero_grad()
    nn.functional.mse_loss(ddp(x[rank * rows:(rank + 1) * rows]), y[rank * rows:(rank + 1) * rows]).backward()
    optimizer.step()
    reference.zero_grad()
    nn.functional.mse_loss(alone(x), y).backward()
    reference.step()
assert near(model.parameters(), alone.parameters())
assert list(ddp.state_dict()) == ["module." + name for name in model.state_dict()]
""", size=2))


def test_ddp_uneven_batches_and_ranks_without_data(job):
    expect_passed(job(NETWORK + """
ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.0001)
parts = {0: slice(0, 5), 1: slice(5, 12), 2: None}
for step in range(2):
    ddp.zero_grad()
    alone.zero_grad()
    if parts[rank] is None:
        assert ddp.step_without_data()
    else:
        nn.functional.mse_loss(ddp(x[parts[rank]]), y[parts[rank]]).backward()
    nn.functional.mse_loss(alone(x), y).backward()
    assert near([p.grad for p in model.parameters()], [p.grad for p in alone.parameters()])
""", size=3))


def test_ddp_accumulates_without_communication(job):
    expect_passed(job(NETWORK + """
ddp = nn.parallel.DistributedDataParallel(model)
mine = [slice(6 * rank, 6 * rank + 3), slice(6 * rank + 3, 6 * rank + 6)]
with ddp.no_sync():
    (nn.functional.mse_loss(ddp(x[mine[0]]), y[mine[0]]) / 2).backward()
first = [p.grad.clone() for p in model.parameters()]
(nn.functional.mse_loss(ddp(x[mine[1]]), y[mine[1]]) / 2).backward()
nn.functional.mse_loss(alone(x), y).backward()
assert near([p.grad for p in model.parameters()], [p.grad for p in alone.parameters()])
assert not near([p.grad for p in model.parameters()], first)
"""))


def test_ddp_slices_fix_the_bits_whatever_the_number_of_ranks(job):
    digests = set()
    for size in (1, 2, 4):
        results = job(NETWORK + """
import hashlib
ddp = nn.parallel.DistributedDataParallel(model, slices=4)
optimizer = plugrad.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
assert ddp.passes == 4 // size
for step in range(5):
    optimizer.zero_grad()
    for i in range(ddp.passes):
        s = rank * ddp.passes + i
        nn.functional.cross_entropy(ddp(x[3 * s:3 * s + 3]), y[3 * s:3 * s + 3].softmax(-1)).backward()
    optimizer.step()
print(hashlib.sha256(repr([p.tolist() for p in model.parameters()]).encode()).hexdigest())
""", size=size)
        expect_passed(results)
        digests.update(output.split()[-1] for output, _ in results)
    assert len(digests) == 1


def test_ddp_batch_norm_and_buffers(job):
    expect_passed(job("""
from plugrad import nn
dist.init_process_group()
model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
ddp = nn.parallel.DistributedDataParallel(model)
for step in range(3):
    ddp(plugrad.randn(8, 4) + rank).sum().backward()
ddp(plugrad.randn(8, 4))  # forward() makes the buffers those of rank 0 first
means = [None] * size
with plugrad.no_grad():
    ddp.eval()
    ddp(plugrad.randn(8, 4))
ddp.train()
ddp._reducer.broadcast_buffers()
dist.all_gather_object(means, model[1].running_mean.tolist())
assert means[0] == means[1]
"""))


def test_sync_batch_norm_trains_as_the_whole_batch_does(job):
    expect_passed(job("""
from plugrad import nn
dist.init_process_group()
def network():
    plugrad.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Sequential(nn.BatchNorm1d(8), nn.Linear(8, 1)))
alone, model = network(), nn.SyncBatchNorm.convert_sync_batchnorm(network())
assert [type(each).__name__ for each in model.modules()].count("SyncBatchNorm") == 2
ddp = nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)
optimizer, reference = plugrad.optim.SGD(ddp.parameters(), lr=0.1), plugrad.optim.SGD(alone.parameters(), lr=0.1)
for step in range(5):
    x, y = plugrad.randn(12, 5), plugrad.randn(12, 1)
    mine = slice(0, 5) if rank == 0 else slice(5, 12)
    for net, optim, part in ((ddp, optimizer, mine), (alone, reference, slice(0, 12))):
        optim.zero_grad()
        nn.functional.mse_loss(net(x[part]), y[part]).backward()
        optim.step()
for a, b in zip(model.state_dict().items(), alone.state_dict().items(), strict=True):
    assert a[0] == b[0] and plugrad.allclose(a[1], b[1], atol=1e-5), (a, b)
single = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm2d(3, momentum=None).eval())
assert isinstance(single, nn.SyncBatchNorm) and not single.training and single.momentum is None
assert single(plugrad.ones(1, 3, 2, 2)).shape == (1, 3, 2, 2)
"""))


def test_fit_trains_as_one_process_does(job):
    expect_passed(job("""
from plugrad import data, nn, training
dist.init_process_group()
plugrad.manual_seed(5)
x, y = plugrad.randn(41, 5), plugrad.randint(0, 3, (41,))
def network():
    plugrad.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))
def trained(model, **options):
    optimizer = plugrad.optim.AdamW(model.parameters(), lr=1e-2)
    return training.fit(model, x, y, optimizer, epochs=3, batch_size=8, progress=False, max_norm=1.0, **options).losses
alone = network()
losses = trained(alone)
models = []
for slices, compiled in ((0, False), (0, True), (4, False), (4, True)):
    models.append(nn.parallel.DistributedDataParallel(network(), slices=slices))
    ours = trained(models[-1], compile=compiled)
    assert all(abs(a - b) < 1e-5 for a, b in zip(losses, ours, strict=True)), (losses, ours)
    assert all(plugrad.allclose(p, q, atol=1e-5) for p, q in zip(alone.parameters(), models[-1].parameters(), strict=True))
for first, second in (models[:2], models[2:]):
    assert all((p == q).all() for p, q in zip(first.parameters(), second.parameters(), strict=True))
stopped = nn.parallel.DistributedDataParallel(network())
calls = []
history = training.fit(stopped, x, y, plugrad.optim.SGD(stopped.parameters(), lr=0.1), batch_size=8, progress=False,
                       stop=lambda: calls.append(0) or (rank == 1 and len(calls) == 3))
assert history.interrupted and len(calls) == 3 and not history.losses
"""))


def test_fit_with_batches_of_each_rank(job):
    expect_passed(job("""
from plugrad import data, nn, training
dist.init_process_group()
plugrad.manual_seed(0)
dataset = data.TensorDataset(plugrad.randn(9, 5), plugrad.randint(0, 3, (9,)))
ddp = nn.parallel.DistributedDataParallel(nn.Linear(5, 3))
sampler = data.DistributedSampler(dataset)
loader = data.DataLoader(dataset, 4, sampler=sampler)
assert len(loader) == 2 - rank  # 5 rows and 4
steps = []
history = training.fit(ddp, loader, plugrad.optim.SGD(ddp.parameters(), lr=0.1), epochs=2, progress=False,
                       on_epoch=lambda epoch, loss: (sampler.set_epoch(epoch + 1), steps.append(loss)))
assert len(history.losses) == 2 and history.losses == steps
shared = plugrad.tensor(history.losses + ddp.module.weight.flatten().tolist(), dtype="f64")
other = shared.clone()
dist.broadcast(other, 0)
assert (shared == other).all()
"""))


def test_a_compiled_step_on_several_ranks(job):
    expect_passed(job("""
from plugrad import nn
dist.init_process_group()
def trained(compiled):
    plugrad.manual_seed(rank)
    ddp = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)),
                                              bucket_cap_mb=0.0001)
    optimizer = plugrad.optim.AdamW(ddp.parameters(), lr=1e-2)
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(ddp(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        return mean
    run = plugrad.compile(step) if compiled else step
    losses = []
    for i in range(10):
        plugrad.manual_seed(100 + 10 * rank + i)
        rows = 6 if i % 3 else 4 + rank
        losses.append(run(plugrad.randn(rows, 5), plugrad.randn(rows, 1)).item())
    return losses, [value.tolist() for value in ddp.state_dict().values()], run
losses, state, step = trained(True)
assert (losses, state) == trained(False)[:2]
assert " 6 replayed" in step.explain() and "by the host: all_reduce of" in step.explain(), step.explain()
"""))


def test_ddp_refuses_different_models(job):
    for output, status in job("""
from plugrad import nn
dist.init_process_group()
try:
    nn.parallel.DistributedDataParallel(nn.Linear(3, 3 + rank))
except ValueError as error:
    assert "make the same model on all ranks" in str(error)
    sys.exit(0)
sys.exit(1)
"""):
        assert status == 0, output


def test_a_distributed_sampler_has_each_sample_once():
    from plugrad.data import DistributedSampler
    for count in (0, 1, 7, 12):
        for size in (1, 2, 3, 5):
            samplers = [DistributedSampler(range(count), size, rank, seed=3) for rank in range(size)]
            parts = [list(sampler) for sampler in samplers]
            assert [len(part) for part in parts] == [len(sampler) for sampler in samplers]
            assert sorted(sum(parts, [])) == list(range(count))
            whole = list(DistributedSampler(range(count), 1, 0, seed=3))
            assert all(part == whole[rank::size] for rank, part in enumerate(parts))
            for rank in range(size):
                assert len(list(DistributedSampler(range(count), size, rank, drop_last=True))) == count // size
    one = DistributedSampler(range(50), 2, 1)
    first = list(one)
    one.set_epoch(1)
    assert list(one) != first
    one.set_epoch(0)
    assert list(one) == first
    with pytest.raises(ValueError, match="rank 2 of 2: a rank below num_replicas expected"):
        DistributedSampler(range(3), 2, 2)


def test_a_loader_of_a_distributed_sampler(job):
    expect_passed(job("""
from plugrad.utils.data import DataLoader, TensorDataset
from plugrad.utils.data.distributed import DistributedSampler
dist.init_process_group()
data = TensorDataset(plugrad.arange(10.0))
sampler = DistributedSampler(data, shuffle=False)
batches = [x.tolist() for (x,) in DataLoader(data, batch_size=2, sampler=sampler)]
assert batches == ([[0, 2], [4, 6], [8]] if rank == 0 else [[1, 3], [5, 7], [9]])
"""))
