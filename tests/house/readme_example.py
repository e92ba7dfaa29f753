"""Extracts a page's program, its first C++ block, and the expected output, the next block. The README is such a page.

readme_example.py README OUT           writes the program
readme_example.py --run README BINARY  runs it, and fails if it prints something else
"""
import re
import subprocess
import sys
from pathlib import Path


def blocks(readme):
    found = re.search(r"```cpp\n(.*?)```.*?```(?:text)?\n(.*?)```", Path(readme).read_text(encoding="utf-8"), re.DOTALL)
    if not found:
        sys.exit(f"{readme}: a ```cpp block and a ```text block after it were expected")
    return found.groups()


def main(arguments):
    if arguments[0] != "--run":
        readme, out = arguments
        Path(out).write_text(blocks(readme)[0], encoding="utf-8")
        return 0
    _, readme, binary = arguments
    expected = blocks(readme)[1]
    printed = subprocess.run([binary], check=True, capture_output=True, text=True).stdout
    if printed == expected:
        return 0
    print(f"{readme} says that its program prints\n{expected}but it prints\n{printed}")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
