"""Small problems of CUTEst, from More, Garbow and Hillstrom, Testing Unconstrained Optimization Software, 1981."""

import math

import plugrad

stack, exp, tensor = plugrad.stack, plugrad.exp, plugrad.tensor


def at(start, stop):
    return plugrad.arange(start, stop, dtype="f64")


def rosenbrock(x):
    return plugrad.cat([10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]])


def beale(x):
    return stack([1.5 - x[0] * (1 - x[1]), 2.25 - x[0] * (1 - x[1] ** 2), 2.625 - x[0] * (1 - x[1] ** 3)])


def helix(x):
    angle = plugrad.atan2(x[1], x[0]) / (2 * math.pi)
    return stack([10 * (x[2] - 10 * angle), 10 * ((x[0] ** 2 + x[1] ** 2).sqrt() - 1), x[2]])


def woods(x):
    return stack([10 * (x[1] - x[0] ** 2), 1 - x[0], 90 ** 0.5 * (x[3] - x[2] ** 2), 1 - x[2],
                  10 ** 0.5 * (x[1] + x[3] - 2), 10 ** -0.5 * (x[1] - x[3])])


def powell_singular(x):
    return stack([x[0] + 10 * x[1], 5 ** 0.5 * (x[2] - x[3]), (x[1] - 2 * x[2]) ** 2, 10 ** 0.5 * (x[0] - x[3]) ** 2])


def powell_badly_scaled(x):
    return stack([1e4 * x[0] * x[1] - 1, exp(-x[0]) + exp(-x[1]) - 1.0001])


def bard(x):
    y = tensor([.14, .18, .22, .25, .29, .32, .35, .39, .37, .58, .73, .96, 1.34, 2.1, 4.39], dtype="f64")
    u = at(1, 16)
    v = 16 - u
    return y - (x[0] + u / (v * x[1] + plugrad.minimum(u, v) * x[2]))


def kowalik_osborne(x):
    y = tensor([.1957, .1947, .1735, .16, .0844, .0627, .0456, .0342, .0323, .0235, .0246], dtype="f64")
    u = tensor([4, 2, 1, .5, .25, .167, .125, .1, .0833, .0714, .0625], dtype="f64")
    return y - x[0] * (u ** 2 + u * x[1]) / (u ** 2 + u * x[2] + x[3])


def biggs(x):
    t = at(1, 14) / 10
    y = exp(-t) - 5 * exp(-10 * t) + 3 * exp(-4 * t)
    return x[2] * exp(-t * x[0]) - x[3] * exp(-t * x[1]) + x[5] * exp(-t * x[4]) - y


def box(x):
    t = at(1, 11) / 10
    return exp(-t * x[0]) - exp(-t * x[1]) - x[2] * (exp(-t) - exp(-10 * t))


def brown_dennis(x):
    t = at(1, 21) / 5
    return (x[0] + t * x[1] - exp(t)) ** 2 + (x[2] + x[3] * plugrad.sin(t) - plugrad.cos(t)) ** 2


def jennrich_sampson(x):
    i = at(1, 11)
    return 2 + 2 * i - exp(i * x[0]) - exp(i * x[1])


def freudenstein_roth(x):
    return stack([-13 + x[0] + ((5 - x[1]) * x[1] - 2) * x[1], -29 + x[0] + ((x[1] + 1) * x[1] - 14) * x[1]])


def osborne(x):
    y = tensor([.844, .908, .932, .936, .925, .908, .881, .85, .818, .784, .751, .718, .685, .658, .628, .603, .58, .558,
                .538, .522, .506, .49, .478, .467, .457, .448, .438, .431, .424, .42, .414, .411, .406], dtype="f64")
    t = 10 * at(0, 33)
    return y - (x[0] + x[1] * exp(-t * x[3]) + x[2] * exp(-t * x[4]))


def meyer(x):
    y = tensor([34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872.],
               dtype="f64")
    return x[0] * exp(x[1] / (45 + 5 * at(1, 17) + x[2])) - y


def watson(x):
    t = at(1, 30).reshape(-1, 1) / 29
    j = at(0, x.numel())
    whole = (x * t ** j).sum(1)
    slope = (x[1:] * j[1:] * t ** (j[1:] - 1)).sum(1)
    return plugrad.cat([slope - whole ** 2 - 1, x[:1], x[1:2] - x[:1] ** 2 - 1])


def chained_rosenbrock(x):
    return plugrad.cat([4 * (x[:-1] - x[1:] ** 2), 1 - x[1:]])


# A name in CUTEst, residuals, and the standard start.
PROBLEMS = [("ROSENBR", rosenbrock, [-1.2, 1]), ("BEALE", beale, [1, 1]), ("HELIX", helix, [-1, 0, 0]),
            ("WOODS", woods, [-3, -1, -3, -1]), ("POWELLSG", powell_singular, [3, -1, 0, 1]),
            ("POWELLBS", powell_badly_scaled, [0, 1]), ("BARD", bard, [1, 1, 1]),
            ("KOWOSB", kowalik_osborne, [.25, .39, .415, .39]), ("BIGGS6", biggs, [1, 2, 1, 1, 1, 1]),
            ("BOX3", box, [0, 10, 20]),
            ("BROWNDEN", brown_dennis, [25, 5, -5, -1]), ("JENSMP", jennrich_sampson, [.3, .4]),
            ("FREUROTH", freudenstein_roth, [.5, -2]), ("OSBORNEA", osborne, [.5, 1.5, -1, .01, .02]),
            ("MEYER3", meyer, [.02, 4000, 250]), ("WATSON", watson, [0] * 6), ("EXTROSNB", rosenbrock, [-1.0] * 10),
            ("CHNROSNB", chained_rosenbrock, [-1.0] * 10)]
