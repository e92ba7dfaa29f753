"""Random functions of globals, closures, attributes, items and arguments, compiled, against themselves: between the calls,
random values change. Run it with a number of functions and a seed: outside_fuzz.py 100000 1."""

import random
import sys
import types
import warnings

import plugrad
from plugrad import nn

PLACES = ["G0", "G1", "c0", "c1", "obj.a", "obj.b", "obj.inner.a", "table['a']", "table['list'][1]", "numbers[0]", "Kind.a",
          "default", "net.scale", "net.inner[1].negative_slope", "mod.a", "obj.method()", "helper()", "number"]
VALUES = [0.5, 1.0, 2.0, -1.0, 3, 0, True]


class World:
    """The values of one function, and the function."""

    def __init__(self, draw):
        self.draw = draw
        source = f"""
class Kind:
    a = 1.0
    def __init__(self):
        self.a, self.b = 1.0, 2.0
    def method(self):
        return self.b
class Net(nn.Module):
    def __init__(self):
        self.scale, self.unread = 1.0, 0
        self.inner = nn.Sequential(nn.Identity(), nn.LeakyReLU(0.1))
    def forward(self, x):
        return self.inner(x) * self.scale
G0, G1 = 1.0, 2.0
table, numbers, mod = {{"a": 1.0, "list": [1.0, 2.0]}}, [1.0], types.ModuleType("mod")
obj, net = Kind(), Net()
obj.inner, mod.a = Kind(), 1.0
def helper():
    return G1
def make():
    c0, c1 = 1.0, 2.0
    def set_closure(name, value):
        nonlocal c0, c1
        if name == "c0":
            c0 = value
        else:
            c1 = value
    def f(x, number, default=1.0):
        return {self.expression(draw.randrange(1, 4))}
    return f, set_closure
f, set_closure = make()
"""
        self.names = {"nn": nn, "plugrad": plugrad, "types": types, "__name__": "world"}
        exec(source, self.names)
        self.source = source[source.index("return {") if "return {" in source else source.rindex("def f("):]

    def expression(self, depth):
        draw = self.draw
        if depth == 0:
            place = draw.choice(PLACES)
            return draw.choice(["x", f"x * {place}", f"(x + {place})"])
        one, two = self.expression(depth - 1), self.expression(depth - 1)
        place, other = draw.choice(PLACES), draw.choice(PLACES)
        return draw.choice([f"({one} + {two})", f"{one} * {place}", f"({one} if {place} > {other} else {two})",
                            f"net({one})",
                            f"({one} - {place} * {two})", f"plugrad.where({one} > {place}, {one}, {two})",
                            f"sum([{one}] * {draw.choice([1, 2])}, {two})"])

    def change(self):
        """Changes one of the values, or one that the function cannot read."""
        names, value, draw = self.names, self.draw.choice(VALUES), self.draw
        changes = [lambda: names.update(G0=value), lambda: names.update(G1=value),
                   lambda: names["set_closure"](draw.choice(["c0", "c1"]), value),
                   lambda: setattr(draw.choice([names["obj"], names["obj"].inner]), draw.choice("ab"), value),
                   lambda: names["table"].update(a=value), lambda: names["table"]["list"].__setitem__(1, value),
                   lambda: names["numbers"].__setitem__(0, value), lambda: setattr(names["Kind"], "a", value),
                   lambda: setattr(names["f"], "__defaults__", (value,)), lambda: setattr(names["net"], "scale", value),
                   lambda: setattr(names["net"].inner[1], "negative_slope", float(value)),
                   lambda: setattr(names["mod"], "a", value), lambda: names.update(helper=lambda: value),
                   lambda: setattr(names["Kind"], "method", lambda self: value),
                   lambda: names.update(table={"a": value, "list": [0, value]}), lambda: names.update(numbers=[value]),
                   lambda: names.update(obj=self.another()), lambda: setattr(names["net"], "unread", value)]
        draw.choice(changes)()

    def another(self):
        made = self.names["Kind"]()
        made.inner = self.names["Kind"]()
        made.a = self.draw.choice(VALUES)
        return made


def check(count, seed):
    """Raises AssertionError for a function whose results differ. Returns the numbers of recordings and of replays."""
    draw = random.Random(seed)
    x = plugrad.tensor([0.5, -1.5, 2.0])
    recorded = replayed = 0
    for at in range(count):
        world = World(draw)
        f = world.names["f"]
        compiled = plugrad.compile(f)
        for _ in range(10):
            number = draw.choice([1.0, 2.0, draw.random()])
            for _ in range(draw.choice([0, 0, 1, 2])):
                world.change()
            expected, result = repr(f(x, number).tolist()), repr(compiled(x, number).tolist())
            assert result == expected, f"function {at} of seed {seed}: {result}, not {expected}:\n{world.source}"
        figures = compiled.figures()
        recorded, replayed = recorded + figures.recorded, replayed + figures.replayed
    return recorded, replayed


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print("recorded %d, replayed %d" % check(int(sys.argv[1]), int(sys.argv[2])))
