"""Tests the Debian packages in an empty root: programs that run without CUDA and without a compiler, a program and plugins
in three languages that are built there from the packages alone, and the files that remain after removal.

packages_test.py SOURCE SCRATCH    SCRATCH keeps the build of the packages. Needs root, debootstrap and a mirror of Debian.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "install"))
import tutorial  # noqa: E402

SUITE = "bookworm"
COMPILERS = ["g++", "cmake", "ninja-build", "pkg-config", "cargo", "python3"]
MOUNTS = ["proc", "dev", "sys"]


def run(*command, expect=0):
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != expect:
        raise AssertionError(f"{' '.join(map(str, command))}\nended with {done.returncode}, not {expect}:\n{done.stdout}")
    return done.stdout


def missing():
    """Returns why this test cannot run here, or None."""
    if os.geteuid() != 0:
        return "needs root, for chroot"
    absent = [program for program in ("debootstrap", "dpkg-shlibdeps", "chroot") if not shutil.which(program)]
    return f"{absent[0]} is not installed" if absent else None


def mirror():
    """The mirror that this machine uses, as an argument of debootstrap, which otherwise chooses a default mirror."""
    lists = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    text = "\n".join(path.read_text() for path in lists if path.is_file())
    found = re.search(r"^(?:deb(?: \[[^]]*\])?|URIs:)\s+(https?://\S+/debian/?)\s", text, re.MULTILINE)
    return [found.group(1)] if found else []


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="plugrad-packages-"))
        cls.root = cls.scratch / "root"
        cls.addClassCleanup(cls.tear_down)
        said = run(SOURCE / "scripts/package.sh", SCRATCH)
        cls.packages = {path.name.split("_")[0]: path for path in map(Path, said.split()) if path.suffix == ".deb"}
        run("debootstrap", "--variant=minbase", SUITE, cls.root, *mirror())
        for name in MOUNTS:
            run("mount", "--bind", f"/{name}", cls.root / name)
        for path in (Path("/etc/apt/apt.conf.d"), Path("/etc/apt/trusted.gpg.d")):
            shutil.copytree(path, cls.root / str(path)[1:], dirs_exist_ok=True)
        for name in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{name}", cls.root / "etc")
        (cls.root / "debs").mkdir()
        for path in cls.packages.values():
            shutil.copy(path, cls.root / "debs")
        index = subprocess.check_output(["dpkg-scanpackages", "-m", "."], cwd=cls.root / "debs", text=True)
        (cls.root / "debs/Packages").write_text(index)
        (cls.root / "etc/apt/sources.list.d/plugrad.list").write_text("deb [trusted=yes] file:/debs ./\n")
        cls.chroot("apt-get", "-qq", "update")

    @classmethod
    def tear_down(cls):
        for name in MOUNTS:
            if os.path.ismount(cls.root / name):
                run("umount", cls.root / name)
        shutil.rmtree(cls.scratch)

    @classmethod
    def chroot(cls, *command, expect=0, folder="/root", **variables):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
                       "DEBIAN_FRONTEND": "noninteractive", "CMAKE_GENERATOR": "Ninja", **variables}
        for name in ("http_proxy", "https_proxy"):
            if name in os.environ:
                environment[name] = os.environ[name]
        words = ["env", "-i", *(f"{key}={value}" for key, value in environment.items()),
                 "sh", "-c", 'cd "$0" && exec "$@"', folder, *command]
        return run("chroot", cls.root, *words, expect=expect)

    @classmethod
    def install(cls, *names):
        cls.chroot("apt-get", "-qq", "install", "--no-install-recommends", "-y", *names)

    def test_1_every_part_has_a_package(self):
        for name in ("libplugrad0", "libplugrad-dev", "libplugrad-static-dev", "plugrad", "plugrad-sdk", "plugrad-conform",
                     "plugrad-backend-cpu", "plugrad-backend-reference", "plugrad-communicator-gloo",
                     "plugrad-communicator-mpi", "plugrad-communicator-mpich", "plugrad-communicator-nccl",
                     "python3-plugrad"):
            self.assertIn(name, self.packages)
            contents = run("dpkg-deb", "-c", self.packages[name])
            self.assertIn(f"/usr/share/doc/{name}/copyright", contents)

    def test_2_a_cpu_trains_without_cuda_and_without_a_compiler(self):
        self.install("libplugrad0", "plugrad-backend-cpu", "plugrad")
        self.assertEqual(self.chroot("sh", "-c", "command -v g++ nvcc", expect=127), "")
        self.assertEqual([line.split()[0] for line in self.chroot("plugrad", "devices").splitlines()[1:]], ["cpu:0"])
        self.chroot("plugrad", "trial", "cpu")
        self.chroot("plugrad", "train", "--data", "moons", "--epochs", "2", "--out", "run")

    def test_3_python(self):
        self.install("python3-plugrad")
        said = self.chroot("python3", "-c", "import plugrad as pg; x = pg.tensor([1., 2.], requires_grad=True); "
                                            "(x * x).sum().backward(); print(x.grad.tolist(), x.device)")
        self.assertIn("[2.0, 4.0] cpu", said)

    def test_4_a_program_is_built_with_the_packages(self):
        self.install("libplugrad-dev", *COMPILERS)
        shutil.copytree(SOURCE / "examples/consumer", self.root / "root/consumer")
        self.chroot("cmake", "-S", "consumer", "-B", "by-cmake")
        self.chroot("cmake", "--build", "by-cmake")
        self.assertIn("libplugrad-backend-cpu.so", self.chroot("by-cmake/consumer", "cpu"))
        self.chroot("sh", "-c", "c++ -std=c++20 consumer/main.cpp $(pkg-config --cflags --libs plugrad) -o by-hand")
        self.assertIn("libplugrad-backend-cpu.so", self.chroot("./by-hand", "cpu"))

    def test_5_new_plugins_conform_and_train(self):
        self.install("plugrad-sdk", "plugrad-conform")
        for language in ("c++", "c", "rust"):
            with self.subTest(language):
                begun = time.monotonic()
                self.chroot("plugrad", "new-plugin", "npu", "--lang", language, "--directory", f"npu-{language}")
                said = self.chroot(f"npu-{language}/ci.sh")
                print(f"new-plugin --lang {language}: built, conforms and trains after {time.monotonic() - begun:.0f} s")
                self.assertIn("0 failed" if language == "rust" else "100% tests passed, 0 tests failed out of 2", said)
        devices = self.chroot("plugrad", "devices", PLUGRAD_PLUGIN_PATH="/root/npu-rust/build")
        self.assertIn("npu:0", devices)

    def test_6_the_tutorial_is_true_word_by_word(self):
        state = self.root / "root/tutorial-state"
        state.mkdir()
        (state / "folder").write_text("/root")
        (state / "variables").write_text("export PATH=/usr/sbin:/usr/bin:/sbin:/bin\n")

        def in_root(script):
            proxies = [f"{name}={os.environ[name]}" for name in ("http_proxy", "https_proxy") if name in os.environ]
            words = ["chroot", self.root, "env", "-i", "HOME=/root", "DEBIAN_FRONTEND=noninteractive", *proxies]
            done = subprocess.run([*words, "bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True)
            return done.returncode, done.stdout

        def write(name, text):
            (self.root / (state / "folder").read_text().strip()[1:] / name).write_text(text)

        self.assertGreater(tutorial.follow(SOURCE / "docs/tutorial.md", "/root/tutorial-state", in_root, write, True), 15)

    def test_7_cuda_without_a_gpu_harms_nobody(self):
        if "plugrad-backend-cuda" not in self.packages:
            self.skipTest("there is no nvcc, so there is no package for CUDA")
        self.install("plugrad-backend-cuda")
        self.assertIn("cuda", self.chroot("plugrad", "backends", "--verbose"))
        self.chroot("plugrad", "trial", "cpu")

    def test_8_removal_leaves_nothing(self):
        known = self.chroot("dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\\n")
        installed = [line.split()[0] for line in known.splitlines() if line.endswith(" installed")]
        self.chroot("apt-get", "-qq", "purge", "-y", *sorted(set(self.packages) & set(installed)))
        left = list((self.root / "usr").rglob("*plugrad*"))
        self.assertEqual(left, [])


if __name__ == "__main__":
    SCRATCH, SOURCE = Path(sys.argv.pop()).resolve(), Path(sys.argv.pop()).resolve()
    if missing():
        print(f"skipped: {missing()}")
    else:
        unittest.main()
