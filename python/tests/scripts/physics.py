"""A network that solves u'' = -u, u(0) = 0, u'(0) = 1, by its derivatives, trained by Adam, then by L-BFGS."""
import torch
from torch import autograd, nn


class Sine(nn.Module):
    def forward(self, x):
        return torch.sin(x)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential()
        self.layers.add_module("first", nn.Linear(1, width))
        self.layers.add_module("sine", Sine())
        self.layers.append(nn.Linear(width, width))
        self.layers.append(nn.Tanh())
        self.layers.append(nn.Linear(width, 1))
        for module in self.layers:
            if isinstance(module, nn.Linear):
                nn.init.xavier_normal_(module.weight, gain=nn.init.calculate_gain("tanh"))
                module.bias.data.zero_()

    def forward(self, t):
        return t * self.layers(t)


def residual(net, t):
    u = net(t)
    du = autograd.grad(u, t, grad_outputs=torch.ones_like(u), create_graph=True, retain_graph=True)[0]
    ddu, = autograd.grad(outputs=du, inputs=t, grad_outputs=torch.ones_like(du), create_graph=True)
    return (ddu + u).pow(2).mean() + (du[0] - 1).pow(2).sum()


torch.manual_seed(2)
torch.set_default_dtype(torch.float64)
net = Net(16)
assert next(net.parameters()).dtype == torch.float64
t = torch.linspace(0, 3, 40).reshape(-1, 1).requires_grad_()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for _ in range(300):
    optimizer.zero_grad()
    loss = residual(net, t)
    loss.backward()
    optimizer.step()
adam = loss.item()
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=20, history_size=20, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = residual(net, t)
    loss.backward()
    return loss


for _ in range(5):
    loss = optimizer.step(closure)
error = (net(t) - t.sin()).abs().max()
print(f"Adam {adam:.2e}, L-BFGS {loss.item():.2e}, largest error {error.item():.2e}")
assert loss < adam and error < 0.05
torch.set_default_dtype(torch.float32)
