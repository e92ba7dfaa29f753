"""What a user of PyTorch expects of a device."""
import copy
import io
import os
import pickle
import subprocess
import sys
import threading

import models
import plugrad_torch
import pytest
import torch
from torch.nn import functional as F

CPU_ONLY = torch.tensor([1 + 2j, 3 - 1j])


def in_own_process(program, **variables):
    """Runs a program; returns its output and its errors."""
    environment = {**os.environ, "PLUGRAD_FALLBACK": "allow", **variables}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def test_every_device_is_an_index_and_has_a_name():
    names = plugrad_torch.devices()
    assert [plugrad_torch.device(name).index for name in names] == list(range(len(names)))
    assert torch.accelerator.device_count() == len(names)
    assert torch.accelerator.current_accelerator().type == "plugrad"
    with pytest.raises(ValueError, match="plugrad has no device 'nowhere'; the devices are: "):
        plugrad_torch.device("nowhere")


def test_an_index_out_of_range_is_named(first):
    with pytest.raises(RuntimeError, match="plugrad has no device 100: there are"):
        torch.ones(2, device="plugrad:100")


def test_views_share_memory(device):
    x = torch.arange(12.0).reshape(3, 4).to(device)
    x.t()[1:3].add_(100)
    assert x.cpu().tolist() == [[0, 101, 102, 3], [4, 105, 106, 7], [8, 109, 110, 11]]
    assert x[1].data_ptr() == x.data_ptr() + 16
    x[:, 0] = 7
    x[x > 100] = -1
    assert x.cpu().tolist() == [[7, -1, -1, 3], [7, -1, -1, 7], [7, -1, -1, 11]]
    assert x.view(torch.int32)[0, 0].item() == torch.tensor(7.0).view(torch.int32).item()


def test_a_functional_result_does_not_share_memory(device):
    x = torch.ones(3, device=device)
    for y in (torch.relu(x), x.clamp(0, 2), x.flip(0).flip(0), torch.floor(x), x.sum(dim=()), x.clone()):
        y.add_(1)
    assert x.cpu().tolist() == [1, 1, 1]


def test_pickle(device):
    x = torch.arange(6.0).reshape(2, 3).to(device)
    y = pickle.loads(pickle.dumps(x))
    assert y.device == x.device and torch.equal(y.cpu(), x.cpu())
    part = pickle.loads(pickle.dumps(x[:, 1:]))
    assert torch.equal(part.cpu(), x.cpu()[:, 1:])


def test_deepcopy(device):
    net = torch.nn.Linear(3, 2).to(device)
    twin = copy.deepcopy(net)
    with torch.no_grad():
        twin.weight.zero_()
    assert net.weight.abs().sum().item() > 0 and twin.weight.device == device


def test_save_and_load(device, tmp_path):
    net = models.model("gpt").to(device)
    torch.save(net.state_dict(), tmp_path / "model.pt")
    loaded = torch.load(tmp_path / "model.pt")
    assert all(value.device == device for value in loaded.values())
    on_cpu = torch.load(tmp_path / "model.pt", map_location="cpu")
    assert all(torch.equal(loaded[key].cpu(), on_cpu[key]) for key in on_cpu)
    twin = models.GPT()
    twin.load_state_dict(on_cpu)
    tokens = models.data("gpt")[0]
    torch.testing.assert_close(net(tokens.to(device)).cpu(), twin(tokens), rtol=1e-5, atol=1e-5)


def test_tied_weights_stay_tied(device):
    net = models.GPT().to(device)
    assert net.head.weight is net.token.weight
    net.cpu()
    assert net.head.weight is net.token.weight and net.head.weight.device.type == "cpu"


def test_a_model_moves_to_and_fro_and_keeps_its_optimiser(device):
    net, (x, y) = models.model("mlp"), models.data("mlp")
    rule = torch.optim.SGD(net.parameters(), lr=0.1)
    losses = []
    for place in ("cpu", device, "cpu", device):
        net.to(place)
        rule.zero_grad()
        loss = models.loss_of(net, x.to(place), y.to(place))
        loss.backward()
        rule.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)


def test_nine_axes(device):
    x = torch.arange(2.0 ** 9).reshape([2] * 9)
    y = x.to(device)
    assert torch.equal(y.cpu(), x)
    assert torch.equal(y.permute(8, 0, 7, 1, 6, 2, 5, 3, 4).contiguous().cpu(), x.permute(8, 0, 7, 1, 6, 2, 5, 3, 4))
    assert torch.equal(y.zero_().cpu(), torch.zeros([2] * 9))
    assert torch.equal((y + 1).cpu(), torch.ones([2] * 9))  # on the CPU
    assert plugrad_torch.fallbacks()


def test_complex_numbers_run_on_the_cpu(device):
    x = CPU_ONLY.to(device)
    assert torch.equal((x * x).cpu(), CPU_ONLY * CPU_ONLY)
    assert torch.equal(x.conj().clone().cpu(), CPU_ONLY.conj().resolve_conj())
    assert torch.equal(torch.fft.fft(torch.arange(4.0, device=device)).cpu(), torch.fft.fft(torch.arange(4.0)))
    assert "aten::mul.Tensor" in plugrad_torch.fallbacks()


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.uint16, torch.complex64, torch.complex128])
def test_dtypes_that_plugrad_lacks_are_copied(dtype, device):
    x = torch.tensor([1, 2, 3, 4], dtype=dtype)
    y = x.to(device)
    assert torch.equal(y.cpu().view(torch.uint8), x.view(torch.uint8))
    assert torch.equal(y[::2].clone().cpu().view(torch.uint8), x[::2].clone().view(torch.uint8))


def test_tensors_of_two_devices_are_refused(device):
    x = torch.ones(2, device=device)
    for other in (torch.ones(2), *(torch.ones(2, device=plugrad_torch.device(name)) for name in plugrad_torch.devices())):
        if other.device == device:
            continue
        with pytest.raises(RuntimeError, match="device"):
            x + other
        with pytest.raises(RuntimeError, match="device"):
            torch.linalg.solve(torch.eye(2, device=device), other)
    assert (x + torch.tensor(1.0)).cpu().tolist() == [2, 2]  # a number may lie on the CPU


def test_the_device_of_a_result_is_that_of_its_operands(first):
    for name in plugrad_torch.devices():
        place = plugrad_torch.device(name)
        assert torch.arange(3, device=place).device == place
        assert (torch.ones(2, device=place) * 2).device == place
        with torch.plugrad.device(place):
            assert torch.ones(2, device="plugrad").device == place


def test_an_index_error_is_one(device):
    with pytest.raises(IndexError):
        F.embedding(torch.tensor([7], device=device), torch.ones(3, 2, device=device))
        torch.accelerator.synchronize(device)


def test_memory_that_is_not_there(first):
    with pytest.raises(torch.OutOfMemoryError):
        torch.ones(2 ** 40, device=first)
    with pytest.raises(torch.OutOfMemoryError, match="exceeds the addresses of a process"):
        torch.ones(2 ** 43, device=first)
    assert torch.ones(2, device=first).sum().item() == 2


def test_memory_statistics(device):
    before = torch.accelerator.memory_allocated(device)
    x = torch.ones(1 << 20, device=device)
    assert torch.accelerator.memory_allocated(device) - before == 4 << 20
    assert torch.accelerator.max_memory_allocated(device) >= 4 << 20
    del x
    assert torch.accelerator.memory_allocated(device) == before


def test_a_lost_device_says_so():
    if "sim:0" not in plugrad_torch.devices():
        pytest.skip("the plugin sim, which can lose its device, is not in PLUGRAD_PLUGIN_PATH")
    in_own_process("""
import torch, plugrad_torch
plugrad_torch.set_option("sim", "lose_at", 4)
x = torch.ones(3, device=plugrad_torch.device("sim"))
try:
    for _ in range(10):
        x = x * 2
    x.cpu()
except RuntimeError as error:
    assert "lost" in str(error), error
else:
    raise SystemExit("the device was not lost")
""")


def test_threads(device):
    results = [None] * 4

    def work(i):
        x = torch.full((64, 64), float(i), device=device)
        for _ in range(20):
            x = (x @ torch.eye(64, device=device)) * 1.0
        results[i] = x.sum().item()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [i * 4096 for i in range(4)]


def test_a_forked_process_computes_or_says_that_it_was_forked(first):
    in_own_process("""
import os, torch, plugrad_torch
x = torch.ones(2, device="plugrad:0")
x.cpu()
child = os.fork()
if child == 0:
    torch.manual_seed(1)  # must not touch the device
    try:
        os._exit(0 if (x + 1).cpu().tolist() == [2, 2] else 1)
    except RuntimeError as error:
        os._exit(0 if "fork" in str(error) else 2)
assert os.waitpid(child, 0)[1] == 0
assert (x + 1).cpu().tolist() == [2, 2]
""")


def test_hooks(device):
    seen = []
    x = torch.ones(2, device=device, requires_grad=True)
    x.register_hook(lambda grad: seen.append(grad.cpu().tolist()) or grad * 2)
    (x * 3).sum().backward()
    assert seen == [[3, 3]] and x.grad.cpu().tolist() == [6, 6]


def test_checkpointing(device):
    net, (x, y) = models.model("mlp").to(device), models.data("mlp")
    x, y = x.to(device), y.to(device)
    F.cross_entropy(net(x), y).backward()
    want = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    out = torch.utils.checkpoint.checkpoint_sequential(net, 2, x.requires_grad_(), use_reentrant=False)
    F.cross_entropy(out, y).backward()
    assert all(torch.equal(p.grad, g) for p, g in zip(net.parameters(), want, strict=True))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_and_grad_scaler(dtype, device):
    net, (x, y) = models.model("gpt").to(device), models.data("gpt")
    x, y = x.to(device), y.to(device)
    rule, scaler, losses = torch.optim.SGD(net.parameters(), lr=0.05), torch.amp.GradScaler("plugrad"), []
    for _ in range(5):
        with torch.autocast("plugrad", dtype=dtype):
            out = net(x)
            assert out.dtype == dtype
            loss = F.cross_entropy(out.view(-1, 65), y.view(-1))
        assert loss.dtype == torch.float32
        rule.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(rule)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    scale = scaler.get_scale()
    net.head.weight.grad.fill_(float("inf"))
    weight = net.head.weight.detach().clone()
    scaler._per_optimizer_states.clear()
    scaler.step(rule)
    scaler.update()
    assert torch.equal(weight, net.head.weight) and scaler.get_scale() == scale / 2
    assert plugrad_torch.fallbacks() == {}


def test_random_numbers_follow_the_seed(device):
    def draw():
        return (torch.rand(4, device=device).cpu(), torch.randn(4, device=device).cpu(),
                torch.randperm(9, device=device).cpu())
    torch.manual_seed(3)
    first, second = draw(), draw()
    torch.manual_seed(3)
    assert all(torch.equal(a, b) for a, b in zip(first, draw(), strict=True))
    assert not torch.equal(first[0], second[0])
    generator = torch.Generator(device).manual_seed(5)
    one = torch.rand(4, device=device, generator=generator)
    state = generator.get_state()
    two = torch.rand(4, device=device, generator=generator)
    assert not torch.equal(one, two)
    generator.set_state(state)
    assert torch.equal(two, torch.rand(4, device=device, generator=generator))
    kept = torch.plugrad.get_rng_state(device)
    three = torch.rand(4, device=device)
    torch.plugrad.set_rng_state(kept, device)
    assert torch.equal(three, torch.rand(4, device=device))


def test_dropout(device):
    x = torch.ones(10000, device=device, requires_grad=True)
    y = F.dropout(x, 0.25)
    y.sum().backward()
    assert set(y.detach().cpu().unique().tolist()) == {0, torch.tensor(1 / 0.75).item()}
    assert 0.22 < (y == 0).float().mean().item() < 0.28
    assert torch.equal(x.grad, y)


def test_pinned_memory_and_a_data_loader(device):
    pinned = torch.arange(1000.0).pin_memory()
    assert pinned.is_pinned() and not torch.ones(2).is_pinned()
    y = pinned.to(device, non_blocking=True)
    assert torch.equal(y.cpu(), pinned)
    back = torch.empty(1000).pin_memory()
    back.copy_(y, non_blocking=True)
    torch.accelerator.synchronize(device)
    assert torch.equal(back, pinned)
    data = torch.utils.data.TensorDataset(torch.arange(64.0).reshape(16, 4))
    loader = torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True)
    total = sum(x.to(device, non_blocking=True).sum().item() for x, in loader)
    assert total == 64 * 63 / 2


def test_events_and_streams(device):
    start, end = (torch.Event(device, enable_timing=True) for _ in range(2))
    start.record()
    torch.ones(100, 100, device=device) @ torch.ones(100, 100, device=device)
    end.record()
    end.synchronize()
    assert end.query() and start.elapsed_time(end) > 0
    assert torch.accelerator.current_stream(device).query() in (True, False)


def test_functions_of_functions(device):
    x = torch.tensor([0.5, 1.0], device=device)
    assert torch.allclose(torch.func.grad(lambda t: t.sin().sum())(x).cpu(), x.cpu().cos())
    assert torch.allclose(torch.func.jvp(torch.sin, (x,), (x,))[1].cpu(), x.cpu().cos() * x.cpu())
    assert torch.vmap(torch.sum)(x.reshape(2, 1)).cpu().tolist() == [0.5, 1.0]
    hessian = torch.autograd.functional.hessian(lambda t: (t ** 3).sum(), x)
    assert torch.allclose(hessian.cpu(), torch.diag(6 * x.cpu()))


def test_foreign_memory_is_named(first):
    x = torch.ones(2, device=first)
    buffer = io.BytesIO()
    torch.save(x, buffer)
    assert buffer.getbuffer().nbytes > 0
    with pytest.raises((TypeError, RuntimeError), match="plugrad"):
        x.numpy()


def test_the_policy_for_ops_without_a_kernel(first):
    x = torch.tensor([[2.0, 0.0], [0.0, 4.0]], device=first)
    plugrad_torch.set_fallback("error")
    try:
        with pytest.raises(NotImplementedError, match=r"plugrad has no kernel for aten::linalg_eig \(Float \[2, 2\]\)"):
            torch.linalg.eig(x)
    finally:
        plugrad_torch.set_fallback("allow")
    assert torch.linalg.eig(x).eigenvalues.real.sum().item() == 6
    assert plugrad_torch.fallbacks()["aten::linalg_eig"] == 1
    with pytest.raises(ValueError, match="the policies are: error warn allow"):
        plugrad_torch.set_fallback("never")


def test_profiler_names_the_ops(first):
    x = torch.ones(8, 8, device=first)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        (x @ x).relu()
    assert {"aten::mm", "aten::relu"} <= {event.key for event in profile.key_averages()}
