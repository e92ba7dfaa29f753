"""Converts a GGUF file's weights to wider dtypes with llama.cpp, as f32.gguf and bf16.gguf: widen_gguf.py FILE FOLDER"""
import ctypes
import sys
from pathlib import Path

import llama_cpp

F32, BF16 = 0, 32  # llama.cpp's numbers of file types

source, folder = sys.argv[1], Path(sys.argv[2])
for name, kind in (("f32", F32), ("bf16", BF16)):
    options = llama_cpp.llama_model_quantize_default_params()
    options.ftype, options.allow_requantize = kind, True
    target = folder / f"{name}.gguf"
    if llama_cpp.llama_model_quantize(source.encode(), str(target).encode(), ctypes.byref(options)):
        sys.exit(f"widen_gguf.py: llama.cpp could not convert {source} to {target}")
    print(target)
