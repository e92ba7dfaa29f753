"""Fine-tuning with matrices of low rank beside frozen layers."""
import copy
import math
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F


class LoRALinear(nn.Module):
    def __init__(self, linear: nn.Linear, r: int = 4, lora_alpha: int = 8, lora_dropout: float = 0.0):
        super().__init__()
        self.linear = linear
        self.lora_A = nn.Parameter(torch.empty(r, linear.in_features))
        self.lora_B = nn.Parameter(torch.empty(linear.out_features, r))
        self.scaling = lora_alpha / r
        self.lora_dropout = nn.Dropout(p=lora_dropout) if lora_dropout > 0. else nn.Identity()
        self.reset_parameters()
        self.merged = False

    def reset_parameters(self):
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        nn.init.zeros_(self.lora_B)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.merged:
            return self.linear(x)
        low = self.lora_dropout(x) @ self.lora_A.transpose(0, 1) @ self.lora_B.transpose(0, 1)
        return self.linear(x) + low * self.scaling

    @torch.no_grad()
    def merge(self):
        self.linear.weight.data += (self.lora_B @ self.lora_A) * self.scaling
        self.merged = True

    def extra_repr(self):
        return f"r={self.lora_A.shape[0]}, scaling={self.scaling}"


def add_lora(model, r=4):
    for name, module in list(model.named_modules()):
        for child_name, child in list(module.named_children()):
            if isinstance(child, nn.Linear) and not isinstance(module, LoRALinear):
                setattr(module, child_name, LoRALinear(child, r=r))
    return model


def mark_only_lora_as_trainable(model):
    for n, p in model.named_parameters():
        if "lora_" not in n:
            p.requires_grad = False


def lora_state_dict(model):
    return {k: v for k, v in model.state_dict().items() if "lora_" in k}


class Net(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.inp = nn.Linear(4, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(2))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = F.gelu(self.inp(x))
        for block in self.blocks:
            x = x + block(x)
        return self.out(x)


def fit(model, target, steps, lr):
    optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=lr, weight_decay=0.)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=lr, epochs=1, steps_per_epoch=steps)
    for _ in range(steps):
        x = torch.randn(64, 4)
        loss = F.mse_loss(input=model(x), target=target(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    return loss.detach()


torch.manual_seed(0)
base = Net()
fit(base, lambda x: x[:, :1].sin(), 200, 1e-2)
base.zero_grad()
model = add_lora(copy.deepcopy(base))
mark_only_lora_as_trainable(model)
assert "(lora_dropout): Identity()" in repr(model) and "r=4, scaling=2.0" in repr(model), repr(model)
trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
total = sum(p.numel() for p in model.parameters())
print(f"trainable params: {trainable:,d} || all params: {total:,d} || trainable%: {100 * trainable / total:.2f}")
assert 0 < trainable < total / 2
frozen = model.inp.linear.weight.detach().clone()


def other(x):
    return x[:, :1].sin() + 0.5 * x[:, 1:2]


before = F.mse_loss(base(torch.ones(8, 4)), other(torch.ones(8, 4)))
loss = fit(model, other, 300, 1e-2)
print(f"loss {loss:.4f}, without adaptation {before:.4f}")
assert loss < 0.02 and torch.equal(frozen, model.inp.linear.weight)
assert all(p.grad is None for n, p in model.named_parameters() if "lora_" not in n)

path = os.path.join(tempfile.mkdtemp(), "adapter.pt")
torch.save(lora_state_dict(model), path)
fresh = add_lora(copy.deepcopy(base))
result = fresh.load_state_dict(torch.load(path), strict=False)
assert not result.unexpected_keys and "inp.linear.weight" in result.missing_keys
x = torch.randn(16, 4)
with torch.inference_mode():
    want = model(x)
    torch.testing.assert_close(fresh(x), want)
    for module in fresh.modules():
        if isinstance(module, LoRALinear):
            module.merge()
    torch.testing.assert_close(fresh(x), want, rtol=1e-4, atol=1e-5)
