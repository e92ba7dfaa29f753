"""Trains a network on Fashion-MNIST.

    python fashion_mnist.py --device cpu --epochs 5 --out model.safetensors

The data are those of Debian's package dataset-fashion-mnist, or of a directory with the four original files (--data).
"""
import argparse

import plugrad
from plugrad import data, nn, optim, training


def network(device: str) -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 256, device=device), nn.ReLU(), nn.Linear(256, 10, device=device))


def main() -> float:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--rows", type=int, default=60_000, help="how many of the training images to use")
    parser.add_argument("--data", help="directory with the four files")
    parser.add_argument("--out", help="where to write the parameters")
    options = parser.parse_args()

    plugrad.manual_seed(1)
    (images, labels), (test_images, test_labels) = data.fashion_mnist(options.data, device=options.device)
    model = network(options.device)
    optimizer = optim.Adam(model.parameters(), lr=options.rate)
    history = training.fit(model, images[:options.rows], labels[:options.rows], optimizer, epochs=options.epochs,
                           batch_size=options.batch)
    share = training.accuracy(model, test_images, test_labels)
    interrupted = "interrupted; " if history.interrupted else ""
    print(f"{interrupted}test accuracy {100 * share:.2f}% on {plugrad.Device(options.device)}")
    if options.out:
        plugrad.save(model.state_dict(), options.out)
    return share


if __name__ == "__main__":
    main()
