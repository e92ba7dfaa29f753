"""Trains on Fashion-MNIST with a single plugin, and expects at least the given accuracy.

whole_training.py PROGRAM DEVICE ACCURACY [OPTION ...]
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

DATA = Path("/usr/share/datasets/fashion-mnist")


def main(program, device, accuracy, *options):
    if not DATA.is_dir():
        print(f"skipped: no {DATA} (Debian's package dataset-fashion-mnist)")
        return 77
    others = ",".join(name for name in ("cpu", "reference") if name != device)
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([program, "train", "--data", "fashion-mnist", "--device", device, "--out", out, *options], check=True,
                       env={**os.environ, "PLUGRAD_DISABLE": others}, stderr=subprocess.STDOUT)
        results = json.loads((Path(out) / "results.json").read_text(encoding="utf-8"))
    print(json.dumps(results, indent=2))
    loaded = f"libplugrad-backend-{device}.so" in results["plugin"]
    return 0 if loaded and results["test_accuracy"] >= float(accuracy) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
