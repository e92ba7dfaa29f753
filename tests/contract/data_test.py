"""Tests the contract as data: the files match the headers, are complete, and agree with independent computations.

data_test.py PROGRAM SOURCE, where PROGRAM is plugrad-abi-data. Uses cargo if it is installed.
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MASK32, MASK64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def fnv(text_bytes, h):
    for number in text_bytes:
        h = (h ^ number) * 0x100000001B3 & MASK64
    return h


def philox(counter, key, data):
    """Philox 4x32 with the constants of the data."""
    m0, m1 = (int(m, 16) for m in data["multipliers"])
    w0, w1 = (int(w, 16) for w in data["key_increments"])
    (a, b, c, d), (k0, k1) = counter, key
    for _ in range(data["rounds"]):
        p0, p1 = m0 * a, m1 * c
        a, b, c, d = (p1 >> 32) ^ b ^ k0, p1 & MASK32, (p0 >> 32) ^ d ^ k1, p0 & MASK32
        k0, k1 = k0 + w0 & MASK32, k1 + w1 & MASK32
    return [a, b, c, d]


def numbers(texts):
    return [int(text, 16) for text in texts]


class Data(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = SOURCE / "sdk/data"
        cls.layout, cls.ops, cls.philox = (json.loads((cls.folder / f"{name}.json").read_text()) for name in
                                           ("layout", "ops", "philox"))

    def test_the_files_are_what_the_headers_say(self):
        for name in ("layout", "ops", "philox"):
            said = subprocess.run([PROGRAM, name], check=True, capture_output=True, text=True).stdout
            self.assertEqual((self.folder / f"{name}.json").read_text(), said,
                             f"write it again: plugrad-abi-data {name} > sdk/data/{name}.json")

    def test_every_constant_of_the_header_is_there(self):
        header = re.sub(r"//[^\n]*", "", (SOURCE / "sdk/include/plugrad/sdk/abi.h").read_text())
        declared = dict(re.findall(r"\bPLUGRAD_([A-Z0-9_]+) = (0x[0-9a-f]+|\d+)", header))
        known = {name: value for group in self.layout["constants"].values() for name, value in group.items()}
        self.assertGreater(len(declared), 30)
        self.assertEqual({name: int(value, 0) for name, value in declared.items()}, known)

    def test_the_hash_follows_from_the_fields(self):
        h = 0xCBF29CE484222325
        for struct in self.layout["structs"]:
            for field in struct["fields"]:
                h = fnv(f"{struct['name']}.{field['name']}".encode(), h)
                h = fnv([field["offset"], field["size"]], h)
        self.assertEqual(self.layout["hashes"], [f"{h:#018x}"])

    def test_random_numbers(self):
        for block in self.philox["blocks"]:
            self.assertEqual(numbers(block["words"]), philox(numbers(block["counter"]), numbers(block["key"]), self.philox))
        for row in self.philox["uniform"]:
            seed, offset = int(row["seed"], 16), int(row["offset"], 16)

            def words(n):
                c = offset + n & MASK64
                return philox([c & MASK32, c >> 32, 0, 0], [seed & MASK32, seed >> 32], self.philox)

            singles = [(words(i // 4)[i % 4] >> 8) * 2.0**-24 for i in range(6)]
            pairs = [words(i // 2)[2 * (i % 2):][:2] for i in range(6)]
            doubles = [((high << 32 | low) >> 11) * 2.0**-53 for low, high in pairs]
            self.assertEqual([self.value(text, "f") for text in row["f32"]], singles)
            self.assertEqual([self.value(text, "d") for text in row["f64"]], doubles)

    @staticmethod
    def value(text, code):
        import struct
        return struct.unpack(f">{code}", bytes.fromhex(text[2:]))[0]

    def test_the_ops_have_distinct_numbers_and_known_gradients(self):
        names = {op["name"] for op in self.ops["ops"]}
        self.assertEqual(len({op["id"] for op in self.ops["ops"]}), len(names))
        self.assertLessEqual({op["gradient"] for op in self.ops["ops"]} - {None}, names)

    def test_the_rust_transcription_is_generated_from_them(self):
        rust = SOURCE / "sdk/rust"
        crate = rust / "plugrad-sys/src/lib.rs"
        subprocess.run([sys.executable, rust / "generate.py", self.folder, crate, "--check"], check=True)

    @unittest.skipUnless(shutil.which("cargo"), "cargo is not installed")
    def test_the_rust_transcription_has_the_hash(self):
        with tempfile.TemporaryDirectory() as folder:
            crate = shutil.copytree(SOURCE / "sdk/rust/plugrad-sys", Path(folder) / "crate")
            done = subprocess.run(["cargo", "test", "--offline", "--quiet"], cwd=crate, text=True, capture_output=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("1 passed", done.stdout)
            self.assertNotIn("warning", done.stderr)


if __name__ == "__main__":
    SOURCE, PROGRAM = Path(sys.argv.pop()).resolve(), Path(sys.argv.pop()).resolve()
    unittest.main()
