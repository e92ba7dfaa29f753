"""change_costs.py finds an op and a dtype in files that no table lists, and tables that are too long."""
import tempfile
from pathlib import Path

import change_costs

OP_ROWS = ["| `sdk/ops.def` | its row |", "| `core/ops/` | its definition |"]
DTYPE_ROWS = ["| `sdk/dtypes.def` | its row |"]


def found(files, op_rows=(), dtype_rows=()):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in (*change_costs.FOLDERS, "docs"):
            (root / name).mkdir()
        page = ["## Adding an op", *OP_ROWS, *op_rows, "", "## Adding a dtype", *DTYPE_ROWS, *dtype_rows, ""]
        (root / "docs/architecture.md").write_text("\n".join(page))
        for name, text in {"sdk/ops.def": "PLUGRAD_OP(ERF, 17)", "sdk/dtypes.def": '"i16"', **files}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return "\n".join(change_costs.check(root)[0])


assert not found({"core/ops/functions.cpp": "Op::ERF", "sdk/data/ops.json": "ERF", "core/io/idx.cpp": '"int16"'})
assert "tools/list.cpp names the op ERF" in found({"tools/list.cpp": "PLUGRAD_OP_ERF"})
assert "tools/list.cpp names the op SILU" in found({"tools/list.cpp": "OP_SILU,"})
assert "tools/list.cpp names the dtype i16" in found({"tools/list.cpp": "DType::i16"})
assert "a dtype stands in 4 files" in found({f"core/{n}.cpp": "DType::i16" for n in range(3)})
assert "lists 10 places" in found({}, op_rows=["| `core/x.cpp` | more |"] * 8)
