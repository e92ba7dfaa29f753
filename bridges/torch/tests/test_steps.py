"""torch.compile and recorded steps: the bits of the eager run, without PyTorch."""
import models
import plugrad_torch
import pytest
import torch
from torch.nn import functional as F

STEPS = 6


@pytest.fixture(autouse=True)
def deterministic():
    """Bits are compared; on some devices sums over indices have another order in each run, unless told otherwise."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def training(net, rule):
    """Returns a training step."""
    def train(x, y):
        rule.zero_grad()
        loss = models.loss_of(net, x, y)
        loss.backward()
        rule.step()
        return loss
    return train


def eager(name, optimizer, device):
    return models.train(name, optimizer, device, STEPS)


# An optimiser of several ops for each parameter takes longer, most of all on a GPU that the CPU stands in for.
@pytest.mark.parametrize("optimizer", ["sgd fused", pytest.param("sgd", id="sgd full")])
@pytest.mark.parametrize("name", ["mlp", "cnn", "gpt", "bert", "lstm"])
def test_a_recorded_step_has_the_bits_of_the_eager_one(name, optimizer, device):
    net = models.model(name).to(device)
    x, y = (tensor.to(device) for tensor in models.data(name))
    rule = models.OPTIMIZERS[optimizer](net.parameters())
    train = plugrad_torch.step(training(net, rule))

    losses = [train(x, y).item() for _ in range(STEPS)]
    assert losses == eager(name, optimizer, device)
    assert train.figures["replayed"] >= STEPS - 3 and train.figures["called"] == 0
    assert plugrad_torch.fallbacks() == {}


@pytest.mark.parametrize("optimizer", ["adamw fused", "adamw capturable"])
def test_a_recorded_step_counts_on_the_device(optimizer, device):
    net = models.model("mlp").to(device)
    x, y = (tensor.to(device) for tensor in models.data("mlp"))
    rule = models.OPTIMIZERS[optimizer](net.parameters())
    train = plugrad_torch.step(training(net, rule))

    losses = [train(x, y).item() for _ in range(STEPS)]
    assert models.worst(losses, eager("mlp", optimizer, device)) < 2e-6
    assert train.figures["replayed"] >= STEPS - 3
    assert next(iter(rule.state.values()))["step"].item() == STEPS


def test_an_optimiser_that_counts_on_the_host_is_refused(first):
    net = models.model("mlp").to(first)
    x, y = (tensor.to(first) for tensor in models.data("mlp"))
    rule = torch.optim.AdamW(net.parameters(), lr=1e-3)
    train = plugrad_torch.step(training(net, rule))

    train(x, y)
    with pytest.raises(RuntimeError, match="Give an optimiser that counts its steps capturable=True or fused=True"):
        train(x, y)
    assert train.f(x, y).item() > 0


def test_the_rate_of_an_optimiser_is_not_stale(first):
    x, y = (tensor.to(first) for tensor in models.data("mlp"))

    def run(wrap):
        net = models.model("mlp").to(first)
        rule = torch.optim.SGD(net.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.StepLR(rule, 3, 0.1)
        train, losses = wrap(training(net, rule)), []
        for _ in range(8):
            losses.append(train(x, y).item())
            schedule.step()
        return losses
    assert run(plugrad_torch.step) == run(lambda f: f)


def test_gradients_outlive_a_recorded_step(first):
    net = models.model("mlp").to(first)
    x, y = (tensor.to(first) for tensor in models.data("mlp"))

    @plugrad_torch.step
    def accumulate(x, y):
        loss = models.loss_of(net, x, y)
        loss.backward()
        return loss

    models.loss_of(net, x, y).backward()
    one = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    for round_ in range(4):  # without gradients before: the step makes them
        accumulate(x, y)
        assert all(torch.equal(p.grad, g) for p, g in zip(net.parameters(), one, strict=True)), round_
        net.zero_grad()
    for count in range(1, 6):  # with gradients: the step adds to them
        accumulate(x, y)
        for p, g in zip(net.parameters(), one, strict=True):
            torch.testing.assert_close(p.grad, g * count)
    assert accumulate.figures["replayed"] >= 4


def test_a_moved_parameter_records_anew(first):
    net = torch.nn.Linear(3, 2).to(first)

    @plugrad_torch.step
    def forward(x):
        return net(x)

    x = torch.ones(4, 3, device=first)
    for _ in range(3):
        forward(x)
    net.weight = torch.nn.Parameter(torch.zeros(2, 3, device=first))
    with torch.no_grad():
        net.bias.fill_(5)
    assert forward(x).cpu().tolist() == [[5, 5]] * 4


def test_random_numbers_of_a_recorded_step_advance(device):
    @plugrad_torch.step
    def noisy(x):
        return F.dropout(x, 0.5)

    x = torch.ones(64, device=device)
    torch.manual_seed(7)
    drawn = [noisy(x).cpu() for _ in range(4)]
    torch.manual_seed(7)
    assert all(torch.equal(each, F.dropout(x, 0.5).cpu()) for each in drawn)
    assert not torch.equal(drawn[2], drawn[3])


def test_what_a_step_cannot_contain_is_named(first):
    matrix = torch.tensor([[2.0, 1.0], [1.0, 3.0]], device=first)
    for name, f in {"aten::linalg_eig": torch.linalg.eig, "read": lambda x: x * x.sum().item()}.items():
        step = plugrad_torch.step(lambda x, f=f: f(x))
        step(matrix)
        with pytest.raises((RuntimeError, NotImplementedError), match=name):
            step(matrix)
    assert (matrix + 1).sum().item() == 11
    with pytest.raises(ValueError, match="a step takes tensors of plugrad, but found one of cpu"):
        plugrad_torch.step(lambda x: x)(torch.ones(2))


@pytest.mark.parametrize("name", ["mlp", "cnn", "gpt", "bert"])
def test_torch_compile_has_the_bits_of_the_eager_run(name, first):
    torch._dynamo.reset()
    net = models.model(name).to(first)
    x, y = (tensor.to(first) for tensor in models.data(name))
    compiled = torch.compile(models.loss_of, backend="plugrad")
    for _ in range(3):
        net.zero_grad()
        loss = models.loss_of(net, x, y)
        loss.backward()
        want = [p.grad.clone() for p in net.parameters()]
        net.zero_grad()
        # Buffers of a norm that the eager run changed do not matter for training.
        again = compiled(net, x, y)
        again.backward()
        assert torch.equal(loss, again)
        assert all(torch.equal(p.grad, g) for p, g in zip(net.parameters(), want, strict=True))
    assert plugrad_torch.fallbacks() == {}


def test_torch_compile_serves_changing_batch_sizes(first):
    torch._dynamo.reset()
    net = models.model("mlp").to(first)
    compiled = torch.compile(net, backend="plugrad", dynamic=True)
    with torch.no_grad():
        for n in (3, 5, 8, 5, 3):
            x = torch.randn(n, 32).to(first)
            assert torch.equal(compiled(x), net(x))


def test_an_op_of_the_cpu_inside_a_compiled_graph_is_named(first):
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.special.airy_ai(x) + 1, backend="plugrad")
    with pytest.raises(Exception, match="aten::special_airy_ai"):
        compiled(torch.ones(3, device=first))


def test_a_rate_on_the_host_is_not_stale(first):
    net = torch.nn.Linear(3, 2).to(first)
    rate = torch.tensor(0.5)
    rule = torch.optim.SGD(net.parameters(), lr=rate, foreach=False)

    @plugrad_torch.step
    def train(x):
        rule.zero_grad()
        loss = net(x).sum()
        loss.backward()
        rule.step()
        return loss

    x = torch.ones(1, 3, device=first)
    for value in (0.5, 0.5, 0.5, 2.0, 0.5):
        rate.fill_(value)
        before = net.bias.detach().cpu()
        train(x)
        assert torch.equal(net.bias.detach().cpu(), before - value), value


def test_the_betas_of_an_optimiser_are_not_stale(first):
    x, y = (tensor.to(first) for tensor in models.data("mlp"))

    def run(wrap):
        net = models.model("mlp").to(first)
        rule = torch.optim.AdamW(net.parameters(), lr=1e-2, fused=True)
        train, losses = wrap(training(net, rule)), []
        for beta in (0.9, 0.9, 0.9, 0.5, 0.9):
            rule.param_groups[0]["betas"] = beta, 0.99
            losses.append(train(x, y).item())
        return losses
    assert models.worst(run(plugrad_torch.step), run(lambda f: f)) < 2e-6


def test_a_parameter_that_comes_to_the_device_later_gets_its_gradient(first):
    there, later = torch.nn.Linear(3, 2).to(first), torch.nn.Linear(3, 2)

    @plugrad_torch.step
    def train(x):
        loss = sum(part(x).sum() for part in (there, later) if not part.bias.is_cpu)
        loss.backward()
        return loss

    x = torch.ones(1, 3, device=first)
    for _ in range(3):
        train(x)
    later.to(first)
    for count in (1, 2, 3):
        train(x)
        assert later.bias.grad.cpu().tolist() == [count, count]
