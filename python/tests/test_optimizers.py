"""Optimisers: PyTorch's steps, options as Python shows them, states, pickles, compiled steps."""

import pickle

import pytest

import plugrad
from plugrad import optim

START = [0.5, -1.25, 3.0, 0.0, -0.001, 0.25]


def gradient(step):
    return [((step * 7 + i * 5) % 11 - 5) / 8 for i in range(len(START))]


# The parameter after 8 steps of PyTorch 2.15 in float64.
KINDS = [
    ("SGD", dict(lr=0.1, momentum=0.9, dampening=0.5, weight_decay=0.1),
     [0.1988253298, -0.786686611, 2.490619216, 0.1876469918, 0.1289365669, -0.1367592745]),
    ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True, maximize=True),
     [0.8187797427, -1.491249722, 2.895431693, -0.02032914687, -0.2676663575, 0.6486196306]),
    ("Adam", dict(lr=0.1, betas=(0.5, 0.75), eps=0.001, amsgrad=True, maximize=True, weight_decay=0.1),
     [0.5946803455, -1.175759177, 2.455166776, 0.007163225993, -0.1269186582, 0.3771239509]),
    ("Adam", dict(lr=0.1, decoupled_weight_decay=True, weight_decay=0.1),
     [0.1826521705, -0.9279690127, 2.717762409, 0.1243232211, 0.200772619, -0.07913717791]),
    ("AdamW", dict(lr=0.1, weight_decay=0.25, maximize=True),
     [0.6689741776, -1.229521339, 2.492624188, -0.1098994035, -0.1914130425, 0.4916215976]),
    ("RMSprop", dict(lr=0.1, alpha=0.75, eps=0.001, weight_decay=0.25, momentum=0.5, centered=True, maximize=True),
     [0.4128001057, -0.6095401606, 0.8554922505, 0.05778069341, -0.266001422, 0.2896541296]),
    ("NAdam", dict(lr=0.1, betas=(0.5, 0.75), eps=0.001, weight_decay=0.1, momentum_decay=0.1),
     [0.3383913908, -1.043897142, 2.669507533, -0.04789349425, 0.09389899722, 0.1101321921]),
    ("NAdam", dict(weight_decay=0.5, decoupled_weight_decay=True, maximize=True),
     [0.4984623959, -1.241531851, 2.975243647, 2.582077631e-05, -0.002874542671, 0.2507107025]),
    ("RAdam", dict(lr=0.1, betas=(0.5, 0.75), eps=0.001, weight_decay=0.1),
     [0.3991083556, -1.104397734, 2.795864463, 0.007069646214, 0.04674155159, 0.1334032682]),
    ("RAdam", dict(weight_decay=0.5, decoupled_weight_decay=True, maximize=True),
     [0.4987319394, -1.245969814, 2.988094092, -0.0008679071928, -0.001554556479, 0.250454508]),
    ("Adamax", dict(lr=0.1, betas=(0.5, 0.75), eps=0.01, weight_decay=0.1, maximize=True),
     [0.600812369, -1.204585937, 2.535669982, -0.02002092953, -0.1151895478, 0.3843721583]),
    ("Adamax", dict(),
     [0.4956853896, -1.246081834, 2.998626615, 0.002499379816, 0.001732989517, 0.2448809849]),
    ("Adagrad", dict(lr=0.1, lr_decay=0.25, weight_decay=0.1, initial_accumulator_value=0.5, eps=0.01, maximize=True),
     [0.5194216209, -1.240388921, 2.861647658, -0.02368976205, -0.03618580491, 0.3052951655]),
    ("Adagrad", dict(),
     [0.490638402, -1.243670559, 3.000698261, 0.001174112173, 0.006414093284, 0.2400937914]),
    ("Adadelta", dict(lr=0.5, rho=0.5, eps=0.01, weight_decay=0.1, maximize=True),
     [0.4931711358, -1.122958187, 2.582461675, 0.05918955787, -0.02447762552, 0.2878645339]),
    ("Adadelta", dict(),
     [0.4974528793, -1.249571869, 3.004265353, -0.001783348495, 0.0003763183934, 0.2468154094]),
    ("Rprop", dict(lr=0.1, etas=(0.3, 1.5), step_sizes=(0.05, 0.2), maximize=True),
     [0.725, -1.475, 2.975, -0.05, -0.276, 0.45]),
    ("Rprop", dict(),
     [0.479, -1.2275, 2.9955, 0.01125, 0.023, 0.231]),
    ("ASGD", dict(lr=0.1, lambd=0.25, alpha=0.5, t0=3, weight_decay=0.1, maximize=True),
     [0.4076934561, -0.9557719465, 2.224227239, 0.0258217099, -0.01747925876, 0.2389874081]),
    ("ASGD", dict(),
     [0.4962460292, -1.248740016, 3.006225968, -0.00249999073, 0.00149998662, 0.2437480445]),
]


def trained(optimizer, x, steps):
    for step in steps:
        x.grad = plugrad.tensor(gradient(step), dtype=x.dtype)
        optimizer.step()
    return x.tolist()


@pytest.mark.parametrize("name, options, wanted", KINDS)
def test_steps_are_those_of_pytorch(name, options, wanted):
    x = plugrad.tensor(START, dtype="f64", requires_grad=True)
    # PyTorch keeps NAdam's product of momenta and ASGD's rate in float32.
    error = 1e-7 if name in ("NAdam", "ASGD") else 1e-9
    assert trained(getattr(optim, name)([x], **options), x, range(1, 9)) == pytest.approx(wanted, rel=error, abs=error)


@pytest.mark.parametrize("name, options, wanted", KINDS)
def test_a_state_and_a_pickle_continue_a_training(name, options, wanted):
    del wanted
    x = plugrad.tensor(START, dtype="f64", requires_grad=True)
    optimizer = getattr(optim, name)([x], **options)
    trained(optimizer, x, range(1, 4))
    later = x.detach().clone().requires_grad_()
    resumed = getattr(optim, name)([later], lr=0.5)
    resumed.load_state_dict(optimizer.state_dict())
    pickled = pickle.loads(pickle.dumps(optimizer))
    for group in (resumed.param_groups[0], pickled.param_groups[0]):
        assert {k: v for k, v in group.items() if k != "params"} == \
            {k: v for k, v in optimizer.param_groups[0].items() if k != "params"}
    third = pickled.param_groups[0]["params"][0]
    wanted = trained(optimizer, x, range(4, 9))
    assert trained(resumed, later, range(4, 9)) == wanted and trained(pickled, third, range(4, 9)) == wanted


@pytest.mark.parametrize("name, options, wanted", KINDS)
def test_compiled_steps_have_the_same_bits(name, options, wanted):
    del wanted
    results = []
    for compiled in (False, True):
        x = plugrad.tensor(START, dtype="f64", requires_grad=True)
        optimizer = getattr(optim, name)([x], **options)
        schedule = optim.lr_scheduler.StepLR(optimizer, 3)

        def step(target):
            optimizer.zero_grad()
            loss = ((x - target) ** 2).sum() * 0.5
            loss.backward()
            optimizer.step()
            optimizer.step()
            return loss
        run = plugrad.compile(step) if compiled else step
        losses = []
        for i in range(9):
            losses.append(run(plugrad.tensor(gradient(i), dtype="f64")).item())
            schedule.step()
        results.append((losses, x.tolist(), optimizer.steps))
    assert results[0] == results[1]


def test_dampening_begins_with_each_parameters_first_gradient():
    early, late = (plugrad.tensor([1.0], requires_grad=True) for _ in range(2))
    optimizer = optim.SGD([early], lr=0.1, momentum=0.9, dampening=0.5)
    early.grad = plugrad.ones(1)
    optimizer.step()
    optimizer.add_param_group({"params": [late]})
    late.grad = plugrad.ones(1)
    optimizer.step()
    assert late.tolist() == pytest.approx([0.9]) and early.tolist() == pytest.approx([0.9 - 0.1 * 1.4])
    group = {key: value for key, value in optimizer.param_groups[0].items() if key != "params"} | {"params": [0]}
    theirs = {"state": {0: {"momentum_buffer": plugrad.tensor([2.0])}}, "param_groups": [group]}
    resumed = optim.SGD([late], lr=0.5)
    resumed.load_state_dict(theirs)
    before = late.item()
    resumed.step()
    assert late.item() == pytest.approx(before - 0.1 * (0.9 * 2 + 0.5))


@pytest.mark.parametrize("name", ["SGD", "Adam", "NAdam", "RMSprop", "ASGD", "LBFGS"])
def test_a_state_of_pytorch_may_lack_parameters_without_steps(name):
    used, unused = (plugrad.tensor([1.0], requires_grad=True) for _ in range(2))
    options = {"momentum": 0.9} if name == "SGD" else {}
    optimizer = getattr(optim, name)([used, unused], **options)
    group = {key: value for key, value in optimizer.param_groups[0].items() if key != "params"} | {"params": [0, 1]}
    optimizer.load_state_dict({"state": {}, "param_groups": [group]})
    assert optimizer.steps == 0
    if name == "Adam":
        slots = {"step": plugrad.tensor(3.0), "exp_avg": plugrad.ones(1), "exp_avg_sq": plugrad.ones(1)}
        optimizer.load_state_dict({"state": {0: slots}, "param_groups": [group | {"lr": plugrad.tensor(0.25)}]})
        state = optimizer.state_dict()
        assert (state["step.0"].item(), state["step.1"].item(), state["exp_avg.1"].item()) == (3, 0, 0)
        assert optimizer.lr == 0.25


def test_groups_show_options_as_pytorch_does():
    x, matrix = plugrad.ones(2, requires_grad=True), plugrad.ones(2, 3, requires_grad=True)
    group = optim.Rprop([x], etas=(0.25, 1.5), step_sizes=(0.5, 2), maximize=True).param_groups[0]
    assert (group["etas"], group["step_sizes"], group["maximize"]) == ((0.25, 1.5), (0.5, 2.0), True)
    group["etas"] = (0.5, 2)
    assert group["etas"] == (0.5, 2.0)
    muon = optim.Muon([{"params": [matrix], "adjust_lr_fn": "match_rms_adamw"}], ns_coefficients=(1.5, -0.5, 0.0),
                      ns_steps=7)
    group = muon.param_groups[0]
    assert set(group.keys()) == {"params", "lr", "weight_decay", "momentum", "nesterov", "ns_coefficients", "eps",
                                 "ns_steps", "adjust_lr_fn"}
    assert (group["ns_coefficients"], group["nesterov"]) == ((1.5, -0.5, 0.0), True)
    assert group["adjust_lr_fn"] == "match_rms_adamw"
    assert group["ns_steps"] == 7 and isinstance(group["ns_steps"], int)
    group["adjust_lr_fn"] = None
    assert group["adjust_lr_fn"] == "original"


def test_a_muon_step_makes_the_gradient_nearly_orthogonal():
    plugrad.manual_seed(0)
    x = plugrad.zeros(4, 6, dtype="f64", requires_grad=True)
    x.grad = plugrad.randn(4, 6, dtype="f64")
    optim.Muon([x], lr=1.0, weight_decay=0.0).step()
    values = plugrad.linalg.svdvals(x.detach())
    assert 0.6 < values.min().item() and values.max().item() < 1.25  # Jordan et al., 2024


@pytest.mark.parametrize("name, slots", [
    ("NAdam", {"step": 3.0, "mu_product": 0.25, "exp_avg": [0.5], "exp_avg_sq": [0.25]}),
    ("ASGD", {"step": 3.0, "eta": 0.25, "mu": 0.5, "ax": [0.5]}),
    ("Rprop", {"step": 3.0, "prev": [0.5], "step_size": [0.25]}),
])
def test_states_of_pytorch_load(name, slots):
    optimizer = getattr(optim, name)([plugrad.ones(1, requires_grad=True)])
    group = {key: value for key, value in optimizer.param_groups[0].items() if key != "params"}
    tensors = {key: plugrad.tensor(value) for key, value in slots.items()}
    optimizer.load_state_dict({"state": {0: tensors}, "param_groups": [group | {"lr": 0.125, "params": [0]}]})
    state = optimizer.state_dict()
    assert optimizer.lr == 0.125 and optimizer.steps == 3
    assert {key: state[f"{key}.0"].tolist() for key in slots} == slots


@pytest.mark.parametrize("make, message", [
    (lambda x: optim.Rprop([x], etas=(1.5, 1.2)), "eta_minus is 1.5"),
    (lambda x: optim.Rprop([x], etas=(0.5,)), "etas must be two numbers"),
    (lambda x: optim.Muon([x]), "Muon takes matrices"),
    (lambda x: optim.Muon([x], ns_coefficients=(1, 2)), "ns_coefficients must be three numbers"),
    (lambda x: optim.Muon([x], adjust_lr_fn="none"), "expected None or 'original'"),
    (lambda x: optim.Adam([x], differentiable=True), "differentiable is not supported"),
    (lambda x: optim.SGD([x], momentum=0.5, dampening=0.5, nesterov=True), "dampening of 0"),
    (lambda x: optim.Adadelta([x], rho=1.5), "rho is 1.5"),
    (lambda x: optim.Adagrad([x], lr_decay=-1), "lr_decay is -1"),
    (lambda x: optim.LBFGS([x]).param_groups[0].update({"max_iter": 1e15}), "max_iter is 1e\\+15: expected a whole number"),
    (lambda x: optim.LBFGS([x]).param_groups[0].update({"max_iter": 1.5}), "max_iter is 1.5"),
    (lambda x: optim.LBFGS([x]).load_state_dict(optim.LBFGS([x]).state_dict() | {
        "param_groups.0.strong_wolfe": plugrad.tensor(1e6, dtype="f64")}), "strong_wolfe is 1e\\+06"),
    (lambda x: optim.LBFGS([x]).load_state_dict(optim.LBFGS([x]).state_dict() | {
        "n_iter.0": plugrad.tensor(float("nan"))}), "n_iter.0 is .*nan"),
])
def test_senseless_options_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make(plugrad.ones(2, requires_grad=True))


# --- L-BFGS.

def rosenbrock(x):
    return ((1 - x[:-1]) ** 2 + 100 * (x[1:] - x[:-1] ** 2) ** 2).sum()


def beale(x):
    return (1.5 - x[0] + x[0] * x[1]) ** 2 + (2.25 - x[0] + x[0] * x[1] ** 2) ** 2 + (2.625 - x[0] + x[0] * x[1] ** 3) ** 2


def powell(x):
    return (x[0] + 10 * x[1]) ** 2 + 5 * (x[2] - x[3]) ** 2 + (x[1] - 2 * x[2]) ** 4 + 10 * (x[0] - x[3]) ** 4


def minimized(function, start, steps=3, **options):
    """Returns the number of evaluations, the losses of the steps, and the optimiser with its parameter."""
    x = plugrad.tensor(start, dtype="f64", requires_grad=True)
    optimizer = optim.LBFGS([x], **options)
    evaluations = 0

    def closure():
        nonlocal evaluations
        evaluations += 1
        optimizer.zero_grad()
        loss = function(x)
        loss.backward()
        return loss
    losses = [optimizer.step(closure).item() for _ in range(steps)]
    return evaluations, losses, optimizer, x


EXACT = dict(line_search_fn="strong_wolfe", max_iter=100, tolerance_grad=1e-9, tolerance_change=1e-14)
SHORT = dict(line_search_fn="strong_wolfe", history_size=3, max_iter=4)


# The number of evaluations and the losses at the begin of three steps of PyTorch 2.15.
@pytest.mark.parametrize("function, start, options, evaluations, losses", [
    (rosenbrock, [-1.2, 1.0], EXACT, 47, [24.2, 6.43169829e-17, 6.43169829e-17]),
    (rosenbrock, [-1.2, 1.0] * 5, SHORT, 15, [2057.0, 71.7867703, 9.59259074]),
    (rosenbrock, [-1.2, 1.0], dict(lr=1e-3), 60, [24.2, 23.3413022, 22.6322636]),
    (beale, [1.0, 1.0], EXACT, 18, [14.203125, 1.94709157e-15, 1.94709157e-15]),
    (beale, [1.0, 1.0], SHORT | dict(lr=0.25), 15, [14.203125, 3.26368106, 0.62878872]),
    (powell, [3.0, -1.0, 0.0, 1.0], EXACT | dict(max_eval=30), 60, [215.0, 1.13200323e-07, 1.37928807e-13]),
    (powell, [3.0, -1.0, 0.0, 1.0], SHORT, 15, [215.0, 11.2565329, 3.93538359]),
])
def test_lbfgs_moves_as_pytorch(function, start, options, evaluations, losses):
    found = minimized(function, start, **options)
    assert found[0] == evaluations and found[1] == pytest.approx(losses, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("options", [EXACT, SHORT, dict(lr=1e-3)])
def test_lbfgs_continues_from_its_state_and_pickle(options):
    _, _, optimizer, x = minimized(rosenbrock, [-1.2, 1.0, 0.5], steps=2, **(options | {"max_iter": 5}))

    def goes_on(optimizer, x):
        def closure():
            optimizer.zero_grad()
            loss = rosenbrock(x)
            loss.backward()
            return loss
        return [optimizer.step(closure).item() for _ in range(2)], x.tolist()
    later = x.detach().clone().requires_grad_()
    resumed = optim.LBFGS([later])
    resumed.load_state_dict(optimizer.state_dict())
    assert len([name for name in resumed.state_dict() if name.startswith("old_dirs.")]) >= 3
    pickled = pickle.loads(pickle.dumps(optimizer))
    assert pickled.param_groups[0]["line_search_fn"] == options.get("line_search_fn")
    wanted = goes_on(optimizer, x)
    assert goes_on(resumed, later) == wanted
    assert goes_on(pickled, pickled.param_groups[0]["params"][0]) == wanted


def test_lbfgs_reads_a_state_of_pytorch():
    x = plugrad.tensor([1.0, 2.0], requires_grad=True)
    optimizer, vector = optim.LBFGS([x]), plugrad.tensor([0.5, 0.25])
    slots = {"func_evals": 5, "n_iter": 4, "d": vector, "t": 1, "old_dirs": [vector], "old_stps": [vector * 2],
             "ro": [plugrad.tensor(1.0)], "H_diag": plugrad.tensor(2.0), "prev_flat_grad": vector, "prev_loss": 3.0,
             "al": [None]}
    group = dict(optimizer.param_groups[0].items()) | {"lr": 0.5, "max_eval": None, "params": [0]}
    optimizer.load_state_dict({"state": {0: slots}, "param_groups": [group]})
    state = optimizer.state_dict()
    assert optimizer.lr == 0.5 and state["n_iter.0"].item() == 4 and state["old_stps.0.0"].tolist() == [1.0, 0.5]
    wrong = slots | {"d": plugrad.ones(3)}
    with pytest.raises(ValueError, match=r"d.0 is f32 \(3,\), expected f32 \(2,\)"):
        optimizer.load_state_dict({"state": {0: wrong}, "param_groups": [group]})
    assert optimizer.state_dict()["d.0"].tolist() == [0.5, 0.25]


def test_lbfgs_maximizes_and_names_what_makes_no_sense():
    evaluations, losses, optimizer, x = minimized(lambda x: -beale(x), [1.0, 1.0], maximize=True, **EXACT)
    assert x.tolist() == pytest.approx([3, 0.5]) and losses[0] == -14.203125
    for wrong, message in ((dict(params=[]), "no parameters"), (dict(params=[x], lr=0), "lr is 0"),
                           (dict(params=[x], line_search_fn="armijo"), "line_search_fn 'armijo'"),
                           (dict(params=[x], max_iter=0), "max_iter is 0"),
                           (dict(params=[x], history_size=0), "history_size is 0"),
                           (dict(params=[{"params": [x]}, {"params": [plugrad.ones(1, requires_grad=True)]}]), "one group"),
                           (dict(params=[x, plugrad.ones(1, requires_grad=True)]), "f32 on .* the first one f64")):
        with pytest.raises(ValueError, match=message):
            optim.LBFGS(**wrong)
    with pytest.raises(TypeError, match="needs a closure"):
        optimizer.step()
    with pytest.raises(ZeroDivisionError):
        optimizer.step(lambda: 1 / 0)
    with pytest.raises(TypeError, match="the result of the closure"):
        optimizer.step(lambda: None)
    resumed = optim.LBFGS([x], line_search_fn="strong_wolfe")
    group = {key: value for key, value in resumed.param_groups[0].items() if key != "params"}
    resumed.load_state_dict({"state": {}, "param_groups": [group | {"line_search_fn": None, "params": [0]}]})
    assert resumed.param_groups[0]["line_search_fn"] is None


def test_adagrad_shows_its_start():
    x = plugrad.ones(2, requires_grad=True)
    assert optim.Adagrad([x], initial_accumulator_value=0.5).state_dict()["sum.0"].tolist() == [0.5, 0.5]
