"""A classifier of two rings, in the manner of PyTorch's quickstart."""
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Rings(Dataset):
    def __init__(self, count, transform=None):
        radius = torch.randint(0, 2, (count,))
        angle = torch.rand(count) * 6.2832
        noise = torch.randn(count, 2) * 0.1
        self.points = (radius + 1).unsqueeze(1) * torch.stack([angle.cos(), angle.sin()], dim=1) + noise
        self.labels = radius
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, idx):
        point = self.points[idx]
        if self.transform:
            point = self.transform(point)
        return point, self.labels[idx]


class NeuralNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.linear_relu_stack = nn.Sequential(
            nn.Linear(2, 64),
            nn.ReLU(),
            nn.Linear(64, 64),
            nn.ReLU(inplace=True),
            nn.Linear(64, 2),
        )

    def forward(self, x):
        x = self.flatten(x)
        logits = self.linear_relu_stack(x)
        return logits


def train(dataloader, model, loss_fn, optimizer):
    size = len(dataloader.dataset)
    model.train()
    for batch, (X, y) in enumerate(dataloader):
        X, y = X.to(device), y.to(device)
        pred = model(X)
        loss = loss_fn(pred, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if batch % 10 == 0:
            loss, current = loss.item(), (batch + 1) * len(X)
            print(f"loss: {loss:>7f}  [{current:>5d}/{size:>5d}]")


def test(dataloader, model, loss_fn):
    size = len(dataloader.dataset)
    num_batches = len(dataloader)
    model.eval()
    test_loss, correct = 0, 0
    with torch.no_grad():
        for X, y in dataloader:
            X, y = X.to(device), y.to(device)
            pred = model(X)
            test_loss += loss_fn(pred, y).item()
            correct += (pred.argmax(1) == y).type(torch.float).sum().item()
    test_loss /= num_batches
    correct /= size
    return correct, test_loss


torch.manual_seed(0)
device = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
generator = torch.Generator().manual_seed(42)
training_data, test_data = random_split(Rings(1200, transform=lambda p: p * 2), [1000, 200], generator=generator)
train_dataloader = DataLoader(training_data, batch_size=64, shuffle=True)
test_dataloader = DataLoader(test_data, batch_size=64)
for X, y in test_dataloader:
    assert X.shape == torch.Size([64, 2]) and y.dtype == torch.int64
    break

model = NeuralNetwork().to(device)
text = str(model)
assert "(linear_relu_stack): Sequential(" in text, text
assert "(0): Linear(in_features=2, out_features=64, bias=True)" in text, text
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
for epoch in range(5):
    train(train_dataloader, model, loss_fn, optimizer)
accuracy, _ = test(test_dataloader, model, loss_fn)
assert accuracy > 0.95, accuracy

path = os.path.join(tempfile.mkdtemp(), "model.pth")
torch.save(model.state_dict(), path)
model = NeuralNetwork().to(device)
model.load_state_dict(torch.load(path, weights_only=True))
assert test(test_dataloader, model, loss_fn)[0] == accuracy
model.eval()
x, y = test_data[0][0], test_data[0][1]
with torch.no_grad():
    x = x.to(device)
    pred = model(x.unsqueeze(0))
    predicted, actual = pred[0].argmax(0), y
    print(f"predicted {predicted}, actual {actual}, probability {pred.softmax(-1).max():.3f}")
