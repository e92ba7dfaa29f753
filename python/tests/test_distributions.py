"""Probability distributions: numbers of PyTorch 2.15, samples, gradients, transforms."""

import math

import pytest

import plugrad
from plugrad import distributions as d
from plugrad.distributions import _samplers, transforms as t


def f64(numbers):
    return plugrad.tensor(numbers, dtype="f64")


A, B, P = f64([0.5, 1.5, 3.0]), f64([0.7, 2.0, 1.2]), f64([0.2, 0.5, 0.9])
S, OTHER = f64([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]), f64([[0.3, 0.3, 0.4], [0.2, 0.3, 0.5]])
L, EYE = f64([[1.0, 0, 0], [0.5, 2.0, 0.0], [-0.3, 0.2, 0.7]]), plugrad.eye(3, dtype="f64")

# A distribution, a value, and the value's log_prob, the mean, the variance and the entropy.
CASES = [
    ("Normal", lambda: d.Normal(A, B), f64([[0.0, 1.0, 2.0], [3.0, -1.0, 0.5]]),
     [-0.81736563, -1.64333571, -1.44848231, -6.93981461, -2.39333571, -3.27139898], [0.5, 1.5, 3], [0.49, 4, 1.44],
     [1.06226359, 2.11208571, 1.60126009]),
    ("HalfNormal", lambda: d.HalfNormal(B), f64([0.1, 1.0, 2.0]),
     [0.12067951, -1.04393853, -1.7970018], [0.558519193, 1.59576912, 0.957461473],
     [0.178056312, 1.45352091, 0.523267528],
     [0.369116409, 1.41893853, 0.908112909]),
    ("LogNormal", lambda: d.LogNormal(A, B), f64([0.1, 1.0, 2.0]),
     [-6.27445728, -1.89333571, -3.64217461], [2.10644143, 33.115452, 41.2643941], [2.80564747, 58777.5086, 5484.04051],
     [1.56226359, 3.61208571, 4.60126009]),
    ("MVN", lambda: d.MultivariateNormal(f64([1.0, 2.0, 3.0]), scale_tril=L), f64([[0.0, 1.0, 2.0], [3.0, -1.0, 0.5]]),
     [-5.21892559, -9.3892062], [1, 2, 3], [1, 4.25, 0.62],
     [4.59328784]),
    ("MVN2", lambda: d.MultivariateNormal(f64([1.0, 2.0, 3.0]), covariance_matrix=L@L.T), f64([0.0, 1.0, 2.0]),
     [-5.21892559], [1, 2, 3], [1, 4.25, 0.62],
     [4.59328784]),
    ("MVN3", lambda: d.MultivariateNormal(f64([1.0, 2.0, 3.0]), precision_matrix=L@L.T), f64([0.0, 1.0, 2.0]),
     [-5.80534336], [1, 2, 3], [1.3125, 0.270408163, 2.04081633],
     [3.92034336]),
    ("Uniform", lambda: d.Uniform(A, A+B), A+B*0.3,
     [0.356674944, -0.693147181, -0.182321557], [0.85, 2.5, 3.6], [0.0408333333, 0.333333333, 0.12],
     [-0.356674944, 0.693147181, 0.182321557]),
    ("Exponential", lambda: d.Exponential(A), B,
     [-1.04314718, -2.59453489, -2.50138771], [2, 0.666666667, 0.333333333], [4, 0.444444444, 0.111111111],
     [1.69314718, 0.594534892, -0.0986122887]),
    ("Laplace", lambda: d.Laplace(A, B), f64([0.0, 2.0, 3.5]),
     [-1.05075795, -1.63629436, -1.2921354], [0.5, 1.5, 3], [0.98, 8, 2.88],
     [1.33647224, 2.38629436, 1.87546874]),
    ("Cauchy", lambda: d.Cauchy(A, B), f64([0.0, 2.0, 3.5]),
     [-1.20029974, -1.89850169, -1.48713686], [math.nan, math.nan, math.nan], [math.inf, math.inf, math.inf],
     [2.1743493, 3.22417143, 2.7133458]),
    ("Gumbel", lambda: d.Gumbel(A, B), f64([0.0, 2.0, 3.5]),
     [-0.971766412, -1.72194796, -1.25822885], [0.904050965, 2.65443133, 3.6926588],
     [0.806017693, 6.57973627, 2.36870506],
     [1.22054072, 2.27036285, 1.75953722]),
    ("Weibull", lambda: d.Weibull(A, B), f64([0.1, 2.0, 3.5]),
     [0.495172291, -1.20241363, -2.08865595], [0.632911753, 1.32934039, 2.82196757],
     [0.856708888, 0.482854132, 5.5776784],
     [0.416149621, 1.00092576, 2.01249334]),
    ("Pareto", lambda: d.Pareto(A, B), A+f64([0.1, 2.0, 3.5]),
     [0.0265255901, -2.25421151, -2.61730849], [math.inf, 3, 18], [math.inf, math.inf, math.inf],
     [2.09209919, 1.21231793, 2.74962407]),
    ("Gamma", lambda: d.Gamma(A, B), f64([0.1, 2.0, 3.5]),
     [0.330590132, -2.4929234, -1.84065657], [0.714285714, 0.75, 2.5], [1.02040816, 0.375, 2.08333333],
     [0.447284874, 0.667825595, 1.66525695]),
    ("Chi2", lambda: d.Chi2(A), f64([0.1, 2.0, 3.5]),
     [0.2156295, -1.89642813, -2.04255705], [0.5, 1.5, 3], [1, 3, 6],
     [-0.939420445, 1.37496291, 2.05411996]),
    ("Beta", lambda: d.Beta(A, B), f64([0.1, 0.5, 0.9]),
     [0.264294422, 0.282035069, 0.769544496], [0.416666667, 0.428571429, 0.714285714],
     [0.110479798, 0.0544217687, 0.0392464678],
     [-0.197923882, -0.108050201, -0.343597676]),
    ("Dirichlet", lambda: d.Dirichlet(S*4), f64([[0.2, 0.2, 0.6], [0.5, 0.4, 0.1]]),
     [1.21424826, -4.78702545], [0.2, 0.3, 0.5, 0.1, 0.1, 0.8], [0.032, 0.042, 0.05, 0.018, 0.018, 0.032],
     [-1.02693428, -3.32798835]),
    ("StudentT", lambda: d.StudentT(A, B, P), f64([0.1, 2.0, 3.5]),
     [-1.90942425, -0.383503104, -3.20737455], [math.nan, 2, 1.2], [math.nan, math.inf, 2.43],
     [2.0572895, 1.45651229, 1.66811706]),
    ("Bernoulli", lambda: d.Bernoulli(P), f64([0.0, 1.0, 1.0]),
     [-0.223143551, -0.693147181, -0.105360516], [0.2, 0.5, 0.9], [0.16, 0.25, 0.09],
     [0.500402424, 0.693147181, 0.325082973]),
    ("BernoulliL", lambda: d.Bernoulli(logits=A), f64([0.0, 1.0, 1.0]),
     [-0.974076984, -0.201413278, -0.0485873516], [0.622459331, 0.817574476, 0.952574127],
     [0.235003712, 0.149146452, 0.0451766597],
     [0.662847319, 0.475051564, 0.190864971]),
    ("Geometric", lambda: d.Geometric(P), f64([0.0, 1.0, 3.0]),
     [-1.60943791, -1.38629436, -7.01311579], [4, 1, 0.111111111], [20, 2, 0.12345679],
     [2.50201212, 1.38629436, 0.361203304]),
    ("Binomial", lambda: d.Binomial(5, P), f64([0.0, 1.0, 5.0]),
     [-1.11571776, -1.85629799, -0.526802578], [1, 2.5, 4.5], [0.8, 1.25, 0.45],
     [1.24302416, 1.52367087, 0.91020512]),
    ("Poisson", lambda: d.Poisson(A), f64([0.0, 1.0, 5.0]),
     [-0.5, -1.09453489, -2.2944303], [0.5, 1.5, 3], [0.5, 1.5, 3],
     None),
    ("Categorical", lambda: d.Categorical(S), plugrad.tensor([0, 2]),
     [-1.60943791, -0.223143551], [math.nan, math.nan], [math.nan, math.nan],
     [1.02965301, 0.63903186]),
    ("CategoricalL", lambda: d.Categorical(logits=S), plugrad.tensor([0, 2]),
     [-1.23983106, -0.689726641], [math.nan, math.nan], [math.nan, math.nan],
     [1.09063561, 1.0385274]),
    ("OneHot", lambda: d.OneHotCategorical(S), f64([[1.0, 0, 0], [0, 0, 1.0]]),
     [-1.60943791, -0.223143551], [0.2, 0.3, 0.5, 0.1, 0.1, 0.8], [0.16, 0.21, 0.25, 0.09, 0.09, 0.16],
     [1.02965301, 0.63903186]),
    ("Multinomial", lambda: d.Multinomial(4, S), f64([[1.0, 1, 2], [0, 0, 4.0]]),
     [-1.71479843, -0.892574205], [0.8, 1.2, 2, 0.4, 0.4, 3.2], [0.64, 0.84, 1, 0.36, 0.36, 0.64],
     [2.34908398, 1.60108673]),
    ("Indep", lambda: d.Independent(d.Normal(S, S+1), 1), S,
     [-3.60696653, -3.53522262], [0.2, 0.3, 0.5, 0.1, 0.1, 0.8], [1.44, 1.69, 2.25, 1.21, 1.21, 3.24],
     [5.10696653, 5.03522262]),
    ("Mix", lambda: d.MixtureSameFamily(d.Categorical(S[0]), d.Normal(A, B)), f64([0.0, 1.0, 5.0]),
     [-1.96046624, -1.67254964, -2.91156751], [2.05], [3.0405],
     None),
    ("Trans", lambda: d.TransformedDistribution(d.Normal(A, B), [t.ExpTransform(), t.AffineTransform(1.0, 2.0)]),
     f64([2.0, 3.0, 4.0]),
     [-2.01491685, -2.58648289, -4.53723742], None, None,
     None),
    ("Logistic", lambda: d.TransformedDistribution(
        d.Uniform(f64(0.0), f64(1.0)), [t.SigmoidTransform().inv, t.AffineTransform(1.0, -2.0)]), f64([2.0, 3.0, -4.0]),
     [-2.14130115, -2.31967056, -3.35092665], None, None,
     None),
    ("Stick", lambda: d.TransformedDistribution(
        d.Independent(d.Normal(f64([0.0, 0.0]), f64([1.0, 1.0])), 1), t.StickBreakingTransform()), f64([0.2, 0.3, 0.5]),
     [1.29798292], None, None,
     None),
]
NAMES = [case[0] for case in CASES]


@pytest.mark.parametrize("name, make, value, log_prob, mean, variance, entropy", CASES, ids=NAMES)
def test_densities_and_moments_are_pytorchs(name, make, value, log_prob, mean, variance, entropy):
    made = make()
    assert made.log_prob(value).flatten().tolist() == pytest.approx(log_prob, rel=1e-7, abs=1e-8)
    for found, wanted in ((lambda: made.mean, mean), (lambda: made.variance, variance), (made.entropy, entropy)):
        if wanted is not None:
            assert found().flatten().tolist() == pytest.approx(wanted, rel=1e-7, abs=1e-8, nan_ok=True)
    if variance is not None:
        assert plugrad.allclose(made.stddev ** 2, made.variance, equal_nan=True)


@pytest.mark.parametrize("make", [case[1] for case in CASES], ids=NAMES)
def test_samples_have_the_moments_and_lie_in_the_support(make):
    plugrad.manual_seed(5)
    made, count = make(), 20_000
    x = made.sample((count,))
    assert x.shape == (count, *made.batch_shape, *made.event_shape) and not x.requires_grad
    assert bool(made.support.check(x).all())
    assert made.sample((2, 3)).shape == (2, 3, *made.batch_shape, *made.event_shape)
    try:
        mean, variance = made.mean, made.variance
    except NotImplementedError:
        return
    for found, wanted, spread in zip(x.to("f64").mean(0).flatten().tolist(), mean.flatten().tolist(),
                                     variance.flatten().tolist(), strict=True):
        if math.isfinite(spread) and spread < 100:
            assert abs(found - wanted) < 5 * (spread / count) ** 0.5


@pytest.mark.parametrize("make, value", [case[1:3] for case in CASES], ids=NAMES)
def test_distributions_expand(make, value):
    made = make()
    wide = made.expand((2, *made.batch_shape))
    assert wide.batch_shape == (2, *made.batch_shape) and wide.event_shape == made.event_shape
    assert wide.sample((3,)).shape == (3, 2, *made.batch_shape, *made.event_shape)
    if value.ndim >= len(made.batch_shape) + len(made.event_shape) > 0:
        one = value if value.shape == (*made.batch_shape, *made.event_shape) else value[0]
        if one.shape == (*made.batch_shape, *made.event_shape):
            assert wide.log_prob(one).tolist() == [made.log_prob(one).tolist()] * 2


@pytest.mark.parametrize("make", [case[1] for case in CASES if case[0] not in ("Indep", "Mix")],
                         ids=[name for name in NAMES if name not in ("Indep", "Mix")])
def test_icdf_is_the_inverse_of_cdf(make):
    made = make()
    for level in (0.1, 0.5, 0.8):
        try:
            x = made.icdf(plugrad.full(made.batch_shape, level, dtype="f64"))
        except NotImplementedError:
            return
        assert made.cdf(x).flatten().tolist() == pytest.approx([level] * math.prod(made.batch_shape))
        x = x.detach().requires_grad_()
        density = plugrad.autograd.grad(made.cdf(x).sum(), x)[0]
        assert plugrad.allclose(density.abs(), made.log_prob(x).exp(), rtol=1e-9)


@pytest.mark.parametrize("p, q, wanted", [
    (d.Normal(A, B), d.Normal(B, A), [0.223527763, 0.156762372, 0.676290732]),
    (d.LogNormal(A, B), d.LogNormal(B, A), [0.223527763, 0.156762372, 0.676290732]),
    (d.HalfNormal(A), d.HalfNormal(B), [0.0915742774, 0.0689320725, 1.70870927]),
    (d.MultivariateNormal(f64([1.0, 2.0, 3.0]), scale_tril=L),
     d.MultivariateNormal(f64([0.0, 2.0, 3.0]), scale_tril=EYE * 2), [1.10171931]),
    (d.Uniform(A, A + B), d.Uniform(A - 1, A + B + f64([1.0, 1.0, -0.5])), [1.34992672, 0.693147181, math.inf]),
    (d.Exponential(A), d.Exponential(B), [0.0635277634, 0.0456512609, 0.316290732]),
    (d.Laplace(A, B), d.Laplace(B, A), [0.115595974, 0.084052305, 0.605542796]),
    (d.Gamma(A, B), d.Gamma(B, A), [0.173877732, 0.302901396, 4.28294165]),
    (d.Beta(A, B), d.Beta(B, A), [0.148697294, 0.193147181, 2.18128362]),
    (d.Dirichlet(S * 4), d.Dirichlet(S + 1), [0.245282858, 2.33472359]),
    (d.Bernoulli(P), d.Bernoulli(P * 0.5), [0.0444030076, 0.143841036, 0.453357653]),
    (d.Binomial(5, P), d.Binomial(5, P * 0.5), [0.222015038, 0.719205181, 2.26678827]),
    (d.Geometric(P), d.Geometric(P * 0.5), [0.222015038, 0.287682072, 0.503730726]),
    (d.Poisson(A), d.Poisson(B), [0.0317638817, 0.0684768913, 0.948872196]),
    (d.Categorical(S), d.Categorical(OTHER), [0.030478754, 0.196826956]),
    (d.Independent(d.Normal(S, S + 1), 1), d.Independent(d.Normal(S + 1, S + 1), 1), [0.865302433, 0.980767269]),
    (d.OneHotCategorical(S), d.OneHotCategorical(OTHER), [0.030478754, 0.196826956]),
    (d.Chi2(A), d.Chi2(B), [0.0693040558, 0.0681842685, 0.551857072]),
])
def test_divergences_are_pytorchs(p, q, wanted):
    assert d.kl_divergence(p, q).flatten().tolist() == pytest.approx(wanted, rel=1e-7)
    same = d.kl_divergence(p, p)
    assert same.tolist() == pytest.approx(plugrad.zeros_like(same).tolist(), abs=1e-12)


def test_divergences_without_a_formula_are_named():
    with pytest.raises(NotImplementedError, match="no formula for LogNormal and Normal"):
        d.kl_divergence(d.LogNormal(A, B), d.Normal(A, B))

    class Own(d.Normal):
        pass

    @d.register_kl(Own, d.Laplace)
    def own(p, q):
        return p.loc - q.loc
    assert d.kl_divergence(Own(A, B), d.Laplace(B, A)).tolist() == (A - B).tolist()
    assert d.kl_divergence(Own(A, B), d.Normal(B, A)).tolist() == d.kl_divergence(d.Normal(A, B), d.Normal(B, A)).tolist()


# --- Gradients of samples.

# The derivative of a gamma quantile for the concentration, by differences of SciPy 1.17's gammaincinv: concentration,
# quantile at 0.1, 0.5 and 0.999, and the derivatives there.
SLOPES = [
    (0.1, [6.073048363e-11, 0.0005933911045, 3.363677012], [1.4029249e-08, 0.041597743, 9.6998066]),
    (0.5, [0.007895387047, 0.2274682116, 5.413783085], [0.077489281, 0.85836744, 3.519883]),
    (1.0, [0.1053605157, 0.6931471806, 6.907755279], [0.29996021, 0.96804483, 2.6380154]),
    (2.0, [0.5318116084, 1.67834699, 9.233413476], [0.51737492, 0.99329489, 2.1139663]),
    (20.0, [14.52526147, 19.66767242, 36.70097876], [0.8556647, 0.9999488, 1.3451107]),
    (90.0, [78.07631309, 89.66688704, 122.1852337], [0.93234518, 0.99999754, 1.1627867]),
    (150.0, [134.5339304, 149.6667987, 190.7126243], [0.94762917, 0.99999912, 1.1261153]),
    (1000.0, [959.6939327, 999.6666864, 1100.578098], [0.97973388, 0.99999998, 1.0488578]),
]


@pytest.mark.parametrize("concentration, quantiles, slopes", SLOPES)
def test_gamma_samples_have_the_gradient_of_their_quantile(concentration, quantiles, slopes):
    a = plugrad.full((3,), concentration, dtype="f64")
    x = f64(quantiles)
    assert (_samplers.gamma_slope(a, x.log()) * x).tolist() == pytest.approx(slopes, rel=2e-5)


@pytest.mark.parametrize("make, f, wanted", [
    (lambda a, b: d.Normal(a, b), lambda x: x ** 2, lambda a, b: a ** 2 + b ** 2),
    (lambda a, b: d.LogNormal(a, b), lambda x: x, lambda a, b: (a + b ** 2 / 2).exp()),
    (lambda a, b: d.Uniform(a, a + b), lambda x: x ** 2, lambda a, b: ((a + b) ** 3 - a ** 3) / (3 * b)),
    (lambda a, b: d.Exponential(a + b), lambda x: x, lambda a, b: 1 / (a + b)),
    (lambda a, b: d.Laplace(a, b), lambda x: x ** 2, lambda a, b: a ** 2 + 2 * b ** 2),
    (lambda a, b: d.Gumbel(a, b), lambda x: x, lambda a, b: a + 0.5772156649 * b),
    (lambda a, b: d.Gamma(a, b), lambda x: x ** 2, lambda a, b: a * (a + 1) / b ** 2),
    (lambda a, b: d.Beta(a, b), lambda x: x, lambda a, b: a / (a + b)),
    (lambda a, b: d.Chi2(a + b), lambda x: x, lambda a, b: a + b),
    (lambda a, b: d.StudentT(a + 8, b, a), lambda x: x ** 2, lambda a, b: b ** 2 + a ** 2 * (a + 8) / (a + 6)),
    (lambda a, b: d.Dirichlet(plugrad.stack([a, b, b])), lambda x: x[..., 0] ** 2,
     lambda a, b: a * (a + 1) / ((a + 2 * b) * (a + 2 * b + 1))),
])
def test_gradients_of_samples_are_those_of_the_mean(make, f, wanted):
    plugrad.manual_seed(2)
    a, b = f64(0.8).requires_grad_(), f64(0.6).requires_grad_()
    samples = f(make(a, b).rsample((40_000,)))
    found = plugrad.autograd.grad(samples.mean(), [a, b], allow_unused=True)
    exact = plugrad.autograd.grad(wanted(a, b), [a, b], allow_unused=True)
    for gradient, truth in zip(found, exact, strict=True):
        assert (gradient is None) == (truth is None) or truth is None
        if truth is not None:
            assert gradient.item() == pytest.approx(truth.item(), rel=0.05, abs=0.05)


def test_scores_train_distributions_without_reparametrised_samples():
    logits = plugrad.zeros(3, dtype="f64").requires_grad_()
    optimizer = plugrad.optim.Adam([logits], 0.1)
    plugrad.manual_seed(0)
    for _ in range(60):
        optimizer.zero_grad()
        made = d.Categorical(logits=logits)
        action = made.sample((64,))
        (-(made.log_prob(action) * (action == 2)).mean()).backward()
        optimizer.step()
    assert d.Categorical(logits=logits).probs[2].item() > 0.9
    with pytest.raises(NotImplementedError, match="use sample"):
        d.Categorical(logits=logits).rsample()


def test_a_variational_step_compiles():
    def step(mean, logscale):
        q, p = d.Normal(mean, logscale.exp()), d.Gamma(mean.exp(), logscale.exp())
        x, y = q.rsample((8,)), p.rsample((8,))
        loss = (x ** 2).mean() + y.mean() + d.kl_divergence(q, d.Normal(0.0, 1.0)).sum() + d.Poisson(y).sample().mean()
        return loss, *plugrad.autograd.grad(loss, [mean, logscale])
    results = []
    for run in (step, plugrad.compile(step)):
        plugrad.manual_seed(3)
        results.append([[each.tolist() for each in run(plugrad.tensor([0.5, 1.0], requires_grad=True),
                                                       plugrad.tensor([0.1, -0.2], requires_grad=True))] for _ in range(3)])
    assert results[0] == results[1]


@pytest.mark.parametrize("make, value, wanted, gradient", [
    (lambda x: d.Multinomial(3, logits=x), [-200.0, 0.0], [1.0, 2.0], (-198.9013877, [1, -1])),
    (lambda x: d.OneHotCategorical(logits=x), [-math.inf, 0.0, 1.0], [0.0, 1.0, 0.0], (-1.3132617, None)),
    (lambda x: d.Geometric(probs=x), [1.0], [0.0], (0.0, [1])),
])
def test_impossible_classes_leave_densities_finite(make, value, wanted, gradient):
    x = f64(value).requires_grad_()
    found = make(x).log_prob(f64(wanted)).sum()
    assert found.item() == pytest.approx(gradient[0], abs=1e-6)
    if gradient[1]:
        assert plugrad.autograd.grad(found, x)[0].tolist() == pytest.approx(gradient[1])


def test_divergences_have_gradients_at_the_edges():
    x = f64([-math.inf, 0.0, 1.0]).requires_grad_()
    entropy = d.Categorical(logits=x).entropy()
    assert entropy.item() == pytest.approx(0.5822032)
    assert plugrad.autograd.grad(entropy, x)[0].tolist() == pytest.approx([0, 0.1966119, -0.1966119], abs=1e-6)
    p = f64(0.3).requires_grad_()
    assert plugrad.autograd.grad(d.kl_divergence(d.Binomial(4, p), d.Binomial(4, f64(0.6))), p)[0].item() == pytest.approx(
        -5.0110519)
    q = f64(1.0).requires_grad_()
    divergence = d.kl_divergence(d.Poisson(f64(0.0)), d.Poisson(q))
    assert divergence.item() == 1 and plugrad.autograd.grad(divergence, q)[0].item() == 1
    assert d.kl_divergence(d.Bernoulli(0.5), d.Bernoulli(plugrad.tensor([0.0, 1.0]))).tolist() == [math.inf] * 2


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_samples_are_finite_in_every_dtype(dtype):
    plugrad.manual_seed(0)
    one = plugrad.ones(1, dtype=dtype)
    for made in (d.Laplace(one, one), d.Gumbel(one, one), d.Exponential(one), d.Weibull(one, one),
                 d.Normal(one, one), d.Bernoulli(one), d.Categorical(logits=plugrad.zeros(3, dtype=dtype))):
        x = made.sample((50_000,))
        assert bool(x.isfinite().all()) and bool(made.log_prob(x).isfinite().all())


def test_small_concentrations_draw_corners():
    plugrad.manual_seed(0)
    x = d.Beta(0.01, 0.01).sample((20_000,))
    assert (x == 0.5).sum().item() < 60 and x.var().item() == pytest.approx(0.245, rel=0.02)
    simplex = d.Dirichlet(plugrad.full((3,), 0.01)).sample((5000,))
    assert simplex.max(-1)[0].mean().item() > 0.98


# --- What is refused.

@pytest.mark.parametrize("call, error, message", [
    (lambda: d.Normal(0.0, -1.0), ValueError, r"\[Normal\] scale has values outside of greater_than\(lower_bound=0.0\)"),
    (lambda: d.Normal(math.nan, 1.0), ValueError, "loc has values outside of real"),
    (lambda: d.Uniform(1.0, 0.0), ValueError, "low must be below high"),
    (lambda: d.Bernoulli(0.5, 0.0), ValueError, "give either probs or logits, not both"),
    (lambda: d.Categorical(), ValueError, "not none"),
    (lambda: d.Categorical(plugrad.tensor(0.5)), ValueError, "at least 1 dim"),
    (lambda: d.Geometric(0.0), ValueError, "probs must be above 0"),
    (lambda: d.Bernoulli(1.5), ValueError, "probs has values outside"),
    (lambda: d.Exponential(1.0).log_prob(plugrad.tensor(-1.0)), ValueError, "outside of the support"),
    (lambda: d.Poisson(1.0).log_prob(plugrad.tensor(0.5)), ValueError, "outside of the support"),
    (lambda: d.Normal(A, B).log_prob(plugrad.zeros(2)), ValueError,
     r"shape \(2,\): it must broadcast with batch_shape \(3,\)"),
    (lambda: d.Dirichlet(S).log_prob(f64([0.5, 0.5])), ValueError, "end with event_shape"),
    (lambda: d.Normal(0.0, 1.0).log_prob(0.5), TypeError, "expected a tensor"),
    (lambda: d.MultivariateNormal(A, EYE, EYE), ValueError, "give one of covariance_matrix"),
    (lambda: d.MultivariateNormal(A, covariance_matrix=-EYE), ValueError, "covariance_matrix has values outside"),
    (lambda: d.Independent(d.Normal(A, B), 2), ValueError, "expected 0 to 1"),
    (lambda: d.MixtureSameFamily(d.Categorical(P[:2]), d.Normal(A, B)), ValueError, "a class for each"),
    (lambda: d.Multinomial(-1, S), ValueError, "total_count is -1"),
    (lambda: t.ReshapeTransform((2,), (3,)), ValueError, "different numbers of elements"),
    (lambda: d.Cauchy(0.0, 1.0).enumerate_support(), NotImplementedError, "cannot list its support"),
])
def test_what_makes_no_sense_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_checks_can_be_switched_off():
    assert d.Exponential(1.0, validate_args=False).log_prob(plugrad.tensor(-1.0)).item() == 1
    d.Distribution.set_default_validate_args(False)
    try:
        d.Normal(0.0, -1.0)
    finally:
        d.Distribution.set_default_validate_args(True)
    assert repr(d.Normal(A, 2.0)) == "Normal(loc: (3,), scale: (3,))"
    assert repr(d.Poisson(2.0)) == "Poisson(rate: Tensor(2.0))"
