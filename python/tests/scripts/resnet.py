"""A residual network that is trained, stopped and resumed, in the manner of PyTorch's ImageNet example."""
import os
import shutil
import tempfile
import time

import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.optim
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset


def conv3x3(in_planes, out_planes, stride=1):
    return nn.Conv2d(in_planes, out_planes, kernel_size=3, stride=stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inplanes, planes, stride=1, downsample=None):
        super(BasicBlock, self).__init__()
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, block, layers, num_classes=4):
        super().__init__()
        self.inplanes = 8
        self.conv1 = nn.Conv2d(3, 8, kernel_size=3, stride=1, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=2, stride=2)
        self.layer1 = self._make_layer(block, 8, layers[0])
        self.layer2 = self._make_layer(block, 16, layers[1], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(16 * block.expansion, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)
        for m in self.modules():
            if isinstance(m, BasicBlock):
                nn.init.constant_(m.bn2.weight, 0)

    def _make_layer(self, block, planes, blocks, stride=1):
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(nn.Conv2d(self.inplanes, planes, kernel_size=1, stride=stride, bias=False),
                                       nn.BatchNorm2d(planes))
        layers = [block(self.inplanes, planes, stride, downsample)]
        self.inplanes = planes * block.expansion
        for _ in range(1, blocks):
            layers.append(block(self.inplanes, planes))
        return nn.Sequential(*layers)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer2(self.layer1(x))
        x = torch.flatten(self.avgpool(x), 1)
        return self.fc(x)


class AverageMeter(object):
    def __init__(self):
        self.sum = self.count = self.avg = 0

    def update(self, val, n=1):
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        batch_size = target.size(0)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        return [correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / batch_size) for k in topk]


def augment(images):
    flipped = torch.where(torch.rand(images.size(0), 1, 1, 1) < 0.5, images, images.flip(-1))
    return torch.roll(flipped, shifts=int(torch.randint(-1, 2, ())), dims=2)


def train(loader, model, criterion, optimizer, device):
    losses, top1, top2 = AverageMeter(), AverageMeter(), AverageMeter()
    model.train()
    for images, target in loader:
        images, target = augment(images).to(device, non_blocking=True), target.to(device, non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        acc1, acc2 = accuracy(output, target, topk=(1, 2))
        losses.update(loss.item(), images.size(0))
        top1.update(acc1[0], images.size(0))
        top2.update(acc2[0], images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses.avg, top1.avg


def make():
    model = ResNet(BasicBlock, [1, 2]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    return model, optimizer, CosineAnnealingLR(optimizer, T_max=4)


def run(model, optimizer, scheduler, epochs):
    for _ in epochs:
        started = time.time()
        loss, acc = train(loader, model, criterion, optimizer, device)
        scheduler.step()
        print(f"loss {loss:.4f}, acc@1 {acc:6.2f}, lr {scheduler.get_last_lr()[0]:.4f}, {time.time() - started:.1f} s")
    return loss, acc


torch.manual_seed(0)
cudnn.benchmark = True
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
labels = torch.randint(0, 4, (256,))
pictures = torch.randn(256, 3, 16, 16) * 0.5
for i in range(4):
    pictures[labels == i, i % 3, 4 * i:4 * i + 4] += 1.0
loader = DataLoader(TensorDataset(pictures, labels), batch_size=32, shuffle=True, num_workers=0,
                    pin_memory=device.type == "cuda")
criterion = nn.CrossEntropyLoss(label_smoothing=0.05).to(device)

model, optimizer, scheduler = make()
run(model, optimizer, scheduler, range(2))
path = os.path.join(tempfile.mkdtemp(), "checkpoint.pth.tar")
torch.save({
    "epoch": 2,
    "arch": "resnet",
    "state_dict": model.state_dict(),
    "best_acc1": 12.5,
    "optimizer": optimizer.state_dict(),
    "scheduler": scheduler.state_dict(),
    "rng": torch.get_rng_state(),
}, path)
shutil.copyfile(path, path + ".best")
want = run(model, optimizer, scheduler, range(2, 4))

again, second, third = make()
checkpoint = torch.load(path + ".best", map_location=device, weights_only=True)
assert checkpoint["epoch"] == 2 and checkpoint["arch"] == "resnet" and checkpoint["best_acc1"] == 12.5
again.load_state_dict(checkpoint["state_dict"])
second.load_state_dict(checkpoint["optimizer"])
third.load_state_dict(checkpoint["scheduler"])
torch.set_rng_state(checkpoint["rng"])
got = run(again, second, third, range(checkpoint["epoch"], 4))
assert got[0] == want[0] and got[1] == want[1]
for (name, p), q in zip(model.state_dict().items(), again.state_dict().values()):
    assert torch.equal(p, q), name
assert want[1] > 60
