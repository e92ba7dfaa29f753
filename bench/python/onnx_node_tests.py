"""Writes the node tests of the installed package onnx as files, for the program onnx_cases.

onnx_node_tests.py FOLDER

Each case becomes FOLDER/NAME/model.onnx with its inputs and outputs in test_data_set_N/{input,output}_K.pb.
"""
import sys
import warnings
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper


def message(value, info):
    """The protobuf message of a value, of the kind that its declaration says."""
    if hasattr(value, "SerializeToString"):
        return value
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    return numpy_helper.from_array(np.asarray(value), info.name)


def write_case(case, folder):
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(case.model, folder / "model.onnx")
    graph = case.model.graph
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir(exist_ok=True)
        for kind, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
            values = list(values.values()) if isinstance(values, dict) else values
            for k, (value, info) in enumerate(zip(values, infos)):
                (data / f"{kind}_{k}.pb").write_bytes(message(value, info).SerializeToString())


def main():
    warnings.filterwarnings("ignore")
    from onnx.backend.test.case.node import collect_testcases
    cases = collect_testcases(None)
    for case in cases:
        write_case(case, Path(sys.argv[1]) / case.name)
    print(f"{len(cases)} cases of onnx {onnx.__version__}")


if __name__ == "__main__":
    main()
