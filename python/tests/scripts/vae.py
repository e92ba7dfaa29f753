"""A variational autoencoder of bars, in the manner of PyTorch's example, with its arguments and log."""
import argparse

import torch
import torch.utils.data
from torch import nn, optim
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--epochs", type=int, default=16)
parser.add_argument("--no-accel", action="store_true")
parser.add_argument("--seed", type=int, default=1)
args = parser.parse_args([])
use_cuda = not args.no_accel and torch.cuda.is_available()
torch.manual_seed(args.seed)
device = torch.device("cuda") if use_cuda else torch.device("cpu")
kwargs = {"num_workers": 1, "pin_memory": True} if use_cuda else {}

bars = torch.zeros(512, 1, 8, 8)
where = torch.randint(0, 8, (512,))
bars[torch.arange(512), 0, where, :] = 1.0
train_loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(bars, where), batch_size=args.batch_size,
                                           shuffle=True, **kwargs)


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(64, 64)
        self.fc21 = nn.Linear(64, 4)
        self.fc22 = nn.Linear(64, 4)
        self.fc3 = nn.Linear(4, 64)
        self.fc4 = nn.Linear(64, 64)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 64))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 64), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


model = VAE().to(device)
optimizer = optim.Adam(model.parameters(), lr=3e-3)
losses = []
for epoch in range(1, args.epochs + 1):
    model.train()
    train_loss = 0
    for batch_idx, (data, _) in enumerate(train_loader):
        data = data.to(device)
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        if batch_idx % 10 == 0:
            print("Train Epoch: {} [{}/{} ({:.0f}%)]\tLoss: {:.6f}".format(
                epoch, batch_idx * len(data), len(train_loader.dataset), 100. * batch_idx / len(train_loader),
                loss.item() / len(data)))
    losses.append(train_loss / len(train_loader.dataset))
with torch.no_grad():
    sample = model.decode(torch.randn(16, 4).to(device)).cpu()
assert sample.view(16, 1, 8, 8).shape == torch.Size((16, 1, 8, 8))
assert losses[-1] < 0.55 * losses[0], losses
