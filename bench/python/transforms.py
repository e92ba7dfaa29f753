#!/usr/bin/env python3
"""Compares Fourier transforms with those of PyTorch (MKL), NumPy and SciPy (both pocketfft) in one run: alternating rounds,
medians, and the spread.

    bench/python/transforms.py [--threads 1] [--only REGEX] [--peers build-peers/venv] [--rounds 9] [--out FILE]
"""
import turns

LENGTHS = {"2^10": 2**10, "2^14": 2**14, "2^20": 2**20, "2^4 3^6": 11664, "3^12": 3**12, "5^6 7": 109375, "1009": 1009,
           "65537": 65537, "1000003": 1000003}


def line(function, x):
    return lambda: function(x)


def rows(fft, make):
    """fft: a module with NumPy's names; make turns an array into what it takes."""
    import numpy as np
    random = np.random.default_rng(0)
    made = {}
    for name, n in LENGTHS.items():
        for width, kind in (("f32", "complex64"), ("f64", "complex128")):
            x = (random.standard_normal(n) + 1j * random.standard_normal(n)).astype(kind)
            real = np.ascontiguousarray(x.real)
            made[f"fft {name}, {width}"] = line(fft.fft, make(x))
            made[f"rfft {name}, {width}"] = line(fft.rfft, make(real))
    lines = random.standard_normal((256, 1024)).astype("float32")
    image = random.standard_normal((1024, 1024)).astype("float32")
    made["rfft of 256 lines of 1024, f32"] = line(fft.rfft, make(lines))
    made["fft2 of 1024 x 1024, f32"] = line(fft.fft2, make(image.astype("complex64")))
    made["rfft2 of 1024 x 1024, f32"] = line(fft.rfft2, make(image))
    return made


def plugrad_rows():
    import plugrad
    plugrad.set_grad_enabled(False)
    return rows(plugrad.fft, plugrad.tensor)


def torch_rows():
    import torch
    torch.set_grad_enabled(False)
    return rows(torch.fft, torch.from_numpy)


def numpy_rows():
    import numpy as np
    return rows(np.fft, lambda x: x)


def scipy_rows():
    import scipy.fft
    return rows(scipy.fft, lambda x: x)


if __name__ == "__main__":
    turns.beside_torch(__doc__, __file__, plugrad_rows, torch_rows, NumPy=numpy_rows, SciPy=scipy_rows)
