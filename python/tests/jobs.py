"""Jobs of a few processes, each an interpreter of its own."""

import os
import subprocess
import sys
import textwrap

import pytest

from plugrad import distributed as dist

needs_gloo = pytest.mark.skipif(not dist.is_gloo_available(), reason="the communicator gloo is not installed")

PRELUDE = """
import os, sys, plugrad
from plugrad import Tensor, distributed as dist
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
"""


@pytest.fixture
def job(tmp_path):
    """Runs a program in `size` processes. Returns the output and status of each."""
    def run(code, size=2, timeout=60, **environment):
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PLUGRAD_")}
        program = PRELUDE + textwrap.dedent(code)
        processes = []
        for rank in range(size):
            own = kept | {"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size),
                          "PLUGRAD_STORE": f"file://{tmp_path}/store", "PLUGRAD_DISTRIBUTED_TIMEOUT": "20"} | environment
            processes.append(subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, env=own, text=True,
                                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        try:
            outputs = [process.communicate(timeout=timeout)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
        return [(output, process.returncode) for output, process in zip(outputs, processes)]
    return run


def expect_passed(results):
    for output, status in results:
        assert status == 0, output
