#!/usr/bin/env python3
"""Trains a small convolutional network on Fashion-MNIST, and draws some test pictures with the network's answers.

    sudo apt-get install dataset-fashion-mnist
    python examples/cnn/cnn.py [--epochs 6] [--device cuda] [--picture examples.png]
"""
import argparse
import time
from pathlib import Path

import plugrad
from plugrad import Tensor, nn, optim, training
from plugrad.optim import lr_scheduler

CLASSES = ["T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"]


def network() -> nn.Sequential:
    """Images (n, 1, 28, 28) -> logits (n, 10)."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.MaxPool2d(2), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.MaxPool2d(2), nn.BatchNorm2d(32), nn.ReLU(),
        nn.Flatten(), nn.Dropout(0.1), nn.Linear(32 * 7 * 7, 10))


def draw(model: nn.Module, images: Tensor, labels: Tensor, path: Path) -> None:
    import matplotlib.pyplot as plt
    with plugrad.no_grad():
        guesses = model(images[:24]).argmax(-1).tolist()
    figure, axes = plt.subplots(3, 8, figsize=(12, 5.4))
    for axis, image, guess, label in zip(axes.flat, images, guesses, labels.tolist()):
        axis.imshow(image[0].tolist(), cmap="gray_r")
        axis.set_title(CLASSES[guess], color="black" if guess == label else "red")
        axis.axis("off")
    figure.savefig(path, dpi=100, bbox_inches="tight")


def save_model(model: nn.Module, example: Tensor, path: Path) -> None:
    """Saves the network for inputs of the example's kind. `plugrad run` and C++ programs run the file."""
    forward = plugrad.compile(lambda x: model(x))
    with plugrad.no_grad():
        forward(example)
    forward.save(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=0.01, help="the largest learning rate")
    parser.add_argument("--device")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, help="the directory of Fashion-MNIST's four files")
    parser.add_argument("--limit", type=int, help="how many images to train on; all by default")
    parser.add_argument("--save", type=Path, help="where to save the network (.safetensors)")
    parser.add_argument("--saved-model", type=Path, help="where to save it as a model that classifies 100 images")
    parser.add_argument("--picture", type=Path, help="where to draw some test images (needs Matplotlib)")
    options = parser.parse_args()
    plugrad.set_default_device(options.device or str(plugrad.default_device()))
    plugrad.manual_seed(options.seed)
    (images, labels), (test_images, test_labels) = plugrad.data.fashion_mnist(options.data)
    images, test_images = images.unsqueeze(1), test_images.unsqueeze(1)
    if options.limit:
        images, labels = images[:options.limit], labels[:options.limit]
    model = network()
    steps = options.epochs * -(-len(images) // options.batch)
    optimizer = optim.Adam(model.parameters(), options.rate)
    # Rises to the largest rate in a fifth of the steps, then falls linearly to 0.
    schedule = lr_scheduler.LambdaLR(optimizer, lambda step: min(5 * (step + 1) / steps, 1.25 * (1 - step / steps)))
    start = time.perf_counter()

    def report(epoch: int, loss: float) -> None:
        model.eval()
        print(f"epoch {epoch + 1}: loss {loss:.4f}, {training.accuracy(model, test_images, test_labels):.2%} of the test "
              f"images right after {time.perf_counter() - start:.0f} s")
        model.train()
    training.fit(model, images, labels, optimizer, epochs=options.epochs, batch_size=options.batch, seed=options.seed,
                 scheduler=schedule, on_epoch=report)
    model.eval()
    if options.save:
        plugrad.save(model.state_dict(), options.save)
    if options.saved_model:
        save_model(model, test_images[:100], options.saved_model)
    if options.picture:
        draw(model, test_images, test_labels, options.picture)


if __name__ == "__main__":
    main()
