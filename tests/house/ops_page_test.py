"""docs/generate_ops.py writes the expected parts, and its --check finds a page that is out of date."""
import importlib.util
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("generate_ops", ROOT / "docs/generate_ops.py")
generate_ops = importlib.util.module_from_spec(spec)
spec.loader.exec_module(generate_ops)


def main():
    text = generate_ops.page(ROOT)
    for part in ("`softmax(x, dim)`", "| composed |", "first and second", "EXP: "):
        assert part in text, part
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "ops.md"
        assert generate_ops.update(page, text, check=True) == 1
        assert generate_ops.update(page, text, check=False) == 0 and generate_ops.update(page, text, check=True) == 0
        page.write_text(text.replace("softmax", "softmin"))
        assert generate_ops.update(page, text, check=True) == 1


main()
