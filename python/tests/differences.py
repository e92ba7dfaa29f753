"""Compares gradients with central differences along random directions, in f64."""
import numpy as np
import plugrad

STEP = 1e-5


class Problem:
    """The weighted sum of the elements of an op's floating results, as a function of the leaves that its operands view."""

    def __init__(self, row, call, device, random):
        self.row, self.call, self.device, self.random = row, call, device, random
        self.operands = [each for each in call.operands() if each.dtype == "f64"]
        self.directions = [random.standard_normal(each.base.shape) for each in self.operands]
        self.weights = {}

    def leaves(self, step=0.0):
        return [plugrad.Tensor(each.base + step * along, device=self.device, requires_grad=True)
                for each, along in zip(self.operands, self.directions)]

    def weighted(self, key, x):
        """Returns the sum of x times its weights."""
        if key not in self.weights:
            self.weights[key] = self.random.uniform(0.5, 1.5, tuple(x.shape))
        return (x * plugrad.Tensor(self.weights[key], device=x.device)).sum()

    def loss(self, leaves):
        known = {id(each): leaf for each, leaf in zip(self.operands, leaves)}
        args, named = self.call.mapped(
            lambda each: each.view(known[id(each)] if id(each) in known else each.leaf(plugrad, self.device)))
        results = self.row.called(plugrad, *args, **named)
        total = None
        for i, each in enumerate(results if isinstance(results, (list, tuple)) else [results]):
            term = self.weighted(("result", i), each)
            total = term if total is None else total + term
        return total

    def gradients(self, leaves, create_graph=False):
        """Returns the gradients of the leaves; zeros for a leaf without influence on the loss."""
        loss = self.loss(leaves)
        if not loss.requires_grad:
            return [plugrad.zeros_like(each.detach()) for each in leaves]
        found = plugrad.grad(loss, leaves, create_graph=create_graph, allow_unused=True)
        return [plugrad.zeros_like(each.detach()) if slope is None else slope for each, slope in zip(leaves, found)]

    def slope(self, leaves):
        """Returns a weighted sum of all first derivatives, recorded."""
        total = None
        for i, each in enumerate(self.gradients(leaves, create_graph=True)):
            term = self.weighted(("gradient", i), each)
            total = term if total is None else total + term
        return total


def along(problem, gradients):
    return sum(float(np.sum(each.numpy() * direction)) for each, direction in zip(gradients, problem.directions))


def size(problem, gradients):
    """Returns 1 plus the sum of the magnitudes of the terms of `along`."""
    return 1 + sum(float(np.sum(np.abs(each.numpy() * direction))) for each, direction in zip(gradients, problem.directions))


def first(problem):
    """Returns (the derivative along the directions, the central difference, the size of the terms)."""
    gradients = [each.detach() for each in problem.gradients(problem.leaves())]
    above, below = (problem.loss(problem.leaves(step)).item() for step in (STEP, -STEP))
    return along(problem, gradients), (above - below) / (2 * STEP), size(problem, gradients)


def second(problem):
    leaves = problem.leaves()
    total = problem.slope(leaves)
    zeros = [plugrad.zeros_like(each.detach()) for each in leaves]
    found = plugrad.grad(total, leaves, allow_unused=True) if total.requires_grad else [None] * len(leaves)
    gradients = [zero if each is None else each.detach() for each, zero in zip(found, zeros)]
    above, below = (problem.slope(problem.leaves(step)).item() for step in (STEP, -STEP))
    return along(problem, gradients), (above - below) / (2 * STEP), size(problem, gradients)
