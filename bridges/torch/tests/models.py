"""Models and a training loop of PyTorch, as a user writes them: nothing here knows plugrad."""
import torch
from torch import nn
from torch.nn import functional as F


def mlp():
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AvgPool2d(2),
                         nn.Flatten(), nn.Linear(16 * 16, 10))


class Residual(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out))
        self.second = nn.Sequential(nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out))
        self.short = nn.Identity() if stride == 1 and channels == out else nn.Sequential(
            nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        y = F.relu(self.first(x), inplace=True)
        return F.relu(self.second(y) + self.short(x), inplace=True)


def resnet18(width=8, classes=10):
    w = width
    stages = [(w, w, 1), (w, w, 1), (w, 2 * w, 2), (2 * w, 2 * w, 1), (2 * w, 4 * w, 2), (4 * w, 4 * w, 1),
              (4 * w, 8 * w, 2), (8 * w, 8 * w, 1)]
    return nn.Sequential(nn.Conv2d(3, w, 7, 2, 3, bias=False), nn.BatchNorm2d(w), nn.ReLU(inplace=True),
                         nn.MaxPool2d(3, 2, 1), *(Residual(*stage) for stage in stages), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(8 * w, classes))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = (y.view(n, length, self.heads, -1).transpose(1, 2) for y in self.qkv(self.before(x)).split(width, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).contiguous().view(n, length, width))
        return x + self.down(F.gelu(self.up(self.after(x))))


class GPT(nn.Module):
    """The weight of the head is the weight of the embedding."""

    def __init__(self, vocabulary=65, length=16, width=32, heads=4, layers=2):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.token.weight

    def forward(self, tokens):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class BERT(nn.Module):
    """An encoder that does not see padding, token 0."""

    def __init__(self, vocabulary=65, length=16, width=32, heads=4, layers=2):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width, padding_idx=0), nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.encoder(self.norm(x), src_key_padding_mask=tokens == 0))


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.cells, self.head = nn.Embedding(65, 16), nn.LSTM(16, 24, 2, batch_first=True), nn.Linear(24, 65)

    def forward(self, tokens):
        return self.head(self.cells(self.token(tokens))[0])


class GRU(LSTM):
    def __init__(self):
        super().__init__()
        self.cells = nn.GRU(16, 24, 2, batch_first=True)


MODELS = {"mlp": mlp, "cnn": cnn, "resnet18": resnet18, "gpt": GPT, "bert": BERT, "lstm": LSTM, "gru": GRU}
SHAPES = {"mlp": (32,), "cnn": (1, 16, 16), "resnet18": (3, 32, 32)}


def model(name, dtype=torch.float32):
    torch.manual_seed(1)
    return MODELS[name]().to(dtype)


def data(name, n=8, dtype=torch.float32):
    """Returns a batch and its classes on the CPU."""
    generator = torch.Generator().manual_seed(5)
    if name in SHAPES:
        return (torch.randn(n, *SHAPES[name], generator=generator).to(dtype), torch.randint(10, (n,), generator=generator))
    return torch.randint(65, (n, 16), generator=generator), torch.randint(65, (n, 16), generator=generator)


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3),
    "sgd fused": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01, nesterov=True, fused=True),
    "adamw fused": lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True),
    "adamw capturable": lambda p: torch.optim.AdamW(p, lr=1e-3, capturable=True, foreach=True),
}


def loss_of(net, x, y):
    out = net(x)
    return F.cross_entropy(out.view(-1, out.shape[-1]), y.view(-1))


def train(name, optimizer, device, steps=5, dtype=torch.float32):
    """Returns the losses of a model that trains on a device."""
    net = model(name, dtype).to(device)
    x, y = (tensor.to(device) for tensor in data(name, dtype=dtype))
    rule = OPTIMIZERS[optimizer](net.parameters())
    losses = []
    for _ in range(steps):
        rule.zero_grad()
        loss = loss_of(net, x, y)
        loss.backward()
        rule.step()
        losses.append(loss.item())
    return losses


def worst(ours, theirs):
    """Returns the largest relative difference of two lists of losses."""
    return max(abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True))
