"""Tests the installed tree after moving it: programs, packages, a consumer, and a third-party plugin.

install_test.py BUILD, after a build of everything. Environment: CMAKE, CXX.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
CMAKE = os.environ.get("CMAKE", "cmake")
CXX = os.environ.get("CXX", "c++")
COMPONENTS = ["core", "dev", "sdk", "sdk-tools", "tools", "backend-cpu", "backend-cuda", "backend-vulkan",
              "backend-reference", "communicator-gloo", "communicator-mpi", "communicator-mpich",
              "communicator-nccl", "static"]
sys.path[:0] = [str(SOURCE / "tests/house"), str(SOURCE / "tests/install")]
import binaries  # noqa: E402  (the checks of the build tree apply to the installed tree)
import tutorial  # noqa: E402


def environment(**more):
    """Returns a user's environment: it names neither plugins nor libraries, and selects an installed generator."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PLUGRAD_") and key != "LD_LIBRARY_PATH"}
    return {**kept, "CMAKE_GENERATOR": "Ninja", "CXX": CXX, **more}


def run(*command, expect=0, **more):
    done = subprocess.run([str(part) for part in command], env=environment(**more), cwd="/", text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != expect:
        raise AssertionError(f"{' '.join(map(str, command))}\nended with {done.returncode}, not {expect}:\n{done.stdout}")
    return done.stdout


def files_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


class InstalledTree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = Path(tempfile.mkdtemp(prefix="plugrad-install-")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.scratch)
        cls.moved = cls.scratch / "moved"
        cls.sdk = cls.scratch / "sdk"
        run(CMAKE, "--install", BUILD, "--prefix", cls.scratch / "first")
        (cls.scratch / "first").rename(cls.moved)
        run(CMAKE, "--install", BUILD, "--prefix", cls.sdk, "--component", "sdk")
        cls.library = next(cls.moved.rglob("libplugrad.so")).parent
        cls.plugins = cls.library / "plugrad/plugins-v0"

    def build_example(self, name, prefix):
        """Configures and builds an example from examples/ against an installed prefix only. Returns the build folder."""
        folder = self.scratch / f"{name}-{prefix.name}"
        if not folder.exists():
            run(CMAKE, "-S", SOURCE / "examples" / name, "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}",
                "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF", "-DCMAKE_CXX_FLAGS=-Wall -Werror")
            run(CMAKE, "--build", folder)
        return folder

    def installed_devices(self):
        """Returns the devices that need no hardware."""
        return [name for name in ("cpu", "reference") if (self.plugins / f"libplugrad-backend-{name}.so").exists()]

    def test_every_file_belongs_to_one_component(self):
        owners = {}
        for component in COMPONENTS:
            prefix = self.scratch / "components" / component
            run(CMAKE, "--install", BUILD, "--prefix", prefix, "--component", component)
            for file in files_below(prefix):
                owners.setdefault(file, []).append(component)
        self.assertEqual({file: parts for file, parts in owners.items() if len(parts) > 1}, {})
        self.assertEqual(set(owners), files_below(self.moved))

    def test_no_text_file_names_the_build_or_the_first_prefix(self):
        for file in files_below(self.moved):
            content = (self.moved / file).read_bytes()
            if b"\0" in content:
                continue
            for path in (BUILD, SOURCE, self.scratch / "first"):
                self.assertNotIn(str(path).encode(), content, file)

    def test_exports_and_runpaths(self):
        plugins = sorted(str(path) for path in self.plugins.glob("*.so"))
        programs = sorted(str(path) for path in self.moved.glob("bin/*"))
        self.assertTrue(plugins and programs)
        self.assertEqual(binaries.core_faults(str(self.library / "libplugrad.so")), [])
        for file in plugins:
            self.assertEqual(binaries.plugin_faults(file), [])
        for file in [*plugins, *programs, str(self.library / "libplugrad.so")]:
            self.assertEqual(binaries.runpath_faults(file), [])

    def test_the_program_finds_core_and_plugins_where_they_were_moved(self):
        listing = run(self.moved / "bin/plugrad", "backends", "--verbose")
        for device in self.installed_devices():
            self.assertIn(str(self.plugins / f"libplugrad-backend-{device}.so"), listing)
        self.assertNotIn(str(BUILD), listing)

    def test_a_relative_library_path_does_no_harm(self):
        program = self.moved / "bin/plugrad"
        relative = os.path.relpath(self.library, "/")
        self.assertIn(str(self.plugins), run(program, "backends", "--verbose", LD_LIBRARY_PATH=relative))

    def test_consumer_by_find_package(self):
        consumer = self.build_example("consumer", self.moved) / "consumer"
        self.assertTrue(self.installed_devices())
        for device in self.installed_devices():
            self.assertIn(str(self.plugins / f"libplugrad-backend-{device}.so"), run(consumer, device))
        self.assertIn("npu", run(consumer, "npu", expect=1))

    def test_consumer_by_pkg_config(self):
        path = {"PKG_CONFIG_PATH": str(self.library / "pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", "plugrad", **path).split()
        self.assertEqual(Path(run("pkg-config", "--variable=libdir", "plugrad", **path).strip()).resolve(), self.library)
        consumer = self.scratch / "consumer-by-pkg-config"
        run(CXX, "-std=c++20", SOURCE / "examples/consumer/main.cpp", *flags, f"-Wl,-rpath,{self.library}", "-o", consumer)
        device = self.installed_devices()[0]
        self.assertIn(str(self.plugins / f"libplugrad-backend-{device}.so"), run(consumer, device))

    def test_the_models_in_cpp_compile_and_train(self):
        folder = self.build_example("", self.moved)
        text = self.scratch / "text.txt"
        text.write_text("the cat sat on the mat and the dog sat on the log. " * 60)
        losses = [float(line.split()[-1]) for line in run(folder / "gpt", text, "25").splitlines() if "validation" in line]
        self.assertLess(losses[1], losses[0] - 0.5)
        self.assertIn("is missing or has fewer", run(folder / "gpt", self.scratch / "nothing", expect=1))
        self.assertIn("nothing.gguf", run(folder / "llm", "nothing.gguf", "Hello", expect=1))

    def test_a_plugin_is_built_with_the_sdk_alone_conforms_and_trains(self):
        self.assertFalse(list(self.sdk.rglob("*.so*")))
        self.assertFalse((self.sdk / "include/plugrad/tensor").exists())
        folder = self.build_example("plugin", self.sdk)
        plugin = folder / "libplugrad-backend-npu.so"
        self.assertEqual(binaries.plugin_faults(str(plugin)), [])
        run(self.moved / "bin/plugrad-conform", plugin)
        consumer = self.build_example("consumer", self.moved) / "consumer"
        self.assertIn(str(plugin), run(consumer, "npu", PLUGRAD_PLUGIN_PATH=str(folder)))

    def new_plugin(self, language, name, *options, **more):
        """Writes a plugin's project in a folder with a blank in its name, and runs its script. Returns the folder."""
        project = self.scratch / "new" / " ".join(["my", language, *options])
        run(self.moved / "bin/plugrad", "new-plugin", name, "--lang", language, *options, "--directory", project)
        flags = [] if language == "rust" else [f"-DCMAKE_PREFIX_PATH={self.moved}"]
        if language == "c" and not options:  # the loops throw nothing inside
            flags.append("-DCMAKE_MODULE_LINKER_FLAGS=-Wl,--no-eh-frame-hdr")
        said = run(project / "ci.sh", *flags, PATH=f"{self.moved}/bin:{os.environ['PATH']}", **more)
        self.assertIn("0 failed" if language == "rust" else "100% tests passed, 0 tests failed out of 2", said)
        self.assertEqual(binaries.plugin_faults(str(project / f"build/libplugrad-backend-{name}.so")), [])
        return project

    def test_a_new_plugin_builds_with_the_sdk_conforms_and_trains(self):
        for language in ("c++", "c"):
            with self.subTest(language):
                project = self.new_plugin(language, "my-npu")
                lines = (project / f"my-npu.{'cpp' if language == 'c++' else 'c'}").read_text().count("\n")
                self.assertLess(lines, 120)
                alone = self.scratch / "new" / f"{language} alone"
                run(CMAKE, "-S", project, "-B", alone, f"-DCMAKE_PREFIX_PATH={self.sdk}",
                    "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF")
                run(CMAKE, "--build", alone)

    def test_a_new_plugin_with_device_memory_and_streams_conforms_and_trains(self):
        for language in ("c++", "c", "rust"):
            with self.subTest(language):
                if language == "rust" and not (shutil.which("cargo") and shutil.which("pkg-config")):
                    self.skipTest("cargo or pkg-config is not installed")
                begun = time.monotonic()
                project = self.new_plugin(language, "my-npu", "--memory", "device", "--streams",
                                          PKG_CONFIG_PATH=str(self.library / "pkgconfig"))
                print(f"device memory, {language}: built, conforms and trains after {time.monotonic() - begun:.0f} s")
                said = run(self.moved / "bin/plugrad-conform", "--only", "stream.,failure.,memory.alloc",
                           project / "build/libplugrad-backend-my-npu.so")
                self.assertRegex(said, r"stream.done +3 cases +ok")

    def test_the_opencl_plugin_builds_with_the_sdk_conforms_and_trains(self):
        probe = subprocess.run(["pkg-config", "--exists", "OpenCL"], check=False)
        if probe.returncode:
            self.skipTest("OpenCL's headers are not installed")
        lines = (SOURCE / "examples/plugin-opencl/opencl.cpp").read_text().count("\n")
        self.assertLessEqual(lines, 300)
        folder = self.build_example("plugin-opencl", self.moved)
        plugin = folder / "libplugrad-backend-opencl.so"
        said = run(self.moved / "bin/plugrad-conform", "--only",
                   "contract.,memory.,stream.,failure.,thread.dense,scale.elements,op.ADD,op.EXP,op.RELU_BACKWARD,op.MATMUL,"
                   "op.SUM,op.GATHER", plugin)
        if "loads, but has no device" in said:
            self.skipTest(said)
        self.assertRegex(said, r"stream.done +3 cases +ok")
        trained = run(self.moved / "bin/plugrad", "train", "--data", "moons", "--epochs", "20", "--device", "opencl:0",
                      "--out", self.scratch / "opencl run", PLUGRAD_PLUGIN_PATH=str(folder), PLUGRAD_FALLBACK="error")
        self.assertNotIn("warning", trained)

    @unittest.skipUnless(shutil.which("cargo") and shutil.which("pkg-config"), "cargo or pkg-config is not installed")
    def test_a_new_plugin_in_rust_builds_with_the_sdk_conforms_and_trains(self):
        project = self.new_plugin("rust", "my-npu", PKG_CONFIG_PATH=str(self.library / "pkgconfig"))
        said = run(self.moved / "bin/plugrad-conform", "--only", "contract.transcription",
                   project / "build/libplugrad-backend-my-npu.so")
        self.assertRegex(said, r"contract.transcription +\d{3} cases +ok")

    def test_the_tutorial_is_true_word_by_word(self):
        state = self.scratch / "tutorial"
        state.mkdir()
        (state / "folder").write_text(str(state))
        (state / "variables").write_text(f"export PATH={self.moved}/bin:$PATH CMAKE_PREFIX_PATH={self.moved}\n")

        def in_bash(script):
            done = subprocess.run(["bash", "-c", script], env=environment(), cwd="/", stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            return done.returncode, done.stdout

        def write(name, text):
            (Path((state / "folder").read_text().strip()) / name).write_text(text)

        self.assertGreater(tutorial.follow(SOURCE / "docs/tutorial.md", state, in_bash, write), 15)

    def test_the_plugin_project_installs_beside_the_others(self):
        folder = self.build_example("plugin", self.sdk)
        copy = self.scratch / "with-npu"
        shutil.copytree(self.moved, copy, symlinks=True)
        run(CMAKE, "--install", folder, "--prefix", copy)
        self.assertIn("npu", run(copy / "bin/plugrad", "devices"))

    def test_the_sdk_alone_says_that_there_is_no_core(self):
        folder = self.scratch / "refused"
        said = run(CMAKE, "-S", SOURCE / "examples/consumer", "-B", folder, f"-DCMAKE_PREFIX_PATH={self.sdk}",
                   "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF", expect=1)
        self.assertIn("no component core in", said)

    def statically_linked(self):
        """Builds examples/consumer with core and backends linked in. Returns the program, alone in a folder."""
        project = self.scratch / "static"
        alone = self.scratch / "empty/alone"
        if alone.exists():
            return alone
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(static LANGUAGES CXX)\n"
            "find_package(plugrad 0.1 REQUIRED COMPONENTS static)\n"
            f"add_executable(alone {SOURCE}/examples/consumer/main.cpp)\nplugrad_link_static(alone cpu reference)\n")
        run(CMAKE, "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={self.moved}", "-DCMAKE_BUILD_TYPE=Release")
        run(CMAKE, "--build", project / "build")
        alone.parent.mkdir()
        shutil.copy(project / "build/alone", alone)
        return alone

    def test_a_program_with_core_and_backends_linked_in_needs_no_file_of_plugrad(self):
        alone = self.statically_linked()
        self.assertNotIn("plugrad", run("ldd", alone).replace(str(alone), ""))
        for device in ("cpu", "reference"):
            self.assertIn(f"{device}:0 from linked in", run(alone, device))
        project = self.scratch / "static"
        refused = project / "refused"
        (project / "CMakeLists.txt").write_text((project / "CMakeLists.txt").read_text().replace("cpu reference", "abacus"))
        said = run(CMAKE, "-S", project, "-B", refused, f"-DCMAKE_PREFIX_PATH={self.moved}", expect=1)
        self.assertIn("no backend 'abacus' is installed as an archive", " ".join(said.split()))

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root, to make a set-user-id program")
    def test_a_set_user_id_program_ignores_the_variables_of_its_user(self):
        plugins = self.build_example("plugin", self.sdk)
        os.chmod(self.scratch, 0o755)
        program = self.scratch / "set-user-id"
        shutil.copy(self.statically_linked(), program)
        if os.statvfs(program).f_flag & os.ST_NOSUID:
            self.skipTest("the file system of temporary files ignores the set-user-id bit")
        nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        self.assertIn("npu:0 from", run(*nobody, program, "npu", PLUGRAD_PLUGIN_PATH=str(plugins)))
        os.chmod(program, 0o4755)
        said = run(*nobody, program, "npu", expect=1, PLUGRAD_PLUGIN_PATH=str(plugins))
        self.assertIn("no device 'npu'", said)
        self.assertNotIn(str(plugins), said)

    def test_a_version_of_another_minor_is_refused(self):
        project = self.scratch / "newer"
        project.mkdir()
        (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(newer LANGUAGES CXX)\n"
                                                "find_package(plugrad 0.2 REQUIRED COMPONENTS sdk)\n")
        said = run(CMAKE, "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={self.sdk}", expect=1)
        self.assertIn("version: 0.1.0", said)

    def test_the_author_of_a_plugin_can_test_with_the_installed_conformance_program(self):
        project = self.scratch / "tested"
        project.mkdir()
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(tested LANGUAGES CXX)\n"
            "find_package(plugrad 0.1 REQUIRED COMPONENTS sdk sdk-tools)\nenable_testing()\n"
            f"plugrad_add_plugin(npu {SOURCE}/examples/plugin/npu.cpp)\n"
            "add_test(NAME conform COMMAND plugrad::plugrad-conform $<TARGET_FILE:plugrad-backend-npu>)\n")
        run(CMAKE, "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={self.moved}", "-DCMAKE_BUILD_TYPE=Release")
        run(CMAKE, "--build", project / "build")
        said = run("ctest", "--test-dir", project / "build", "--output-on-failure")
        self.assertIn("100% tests passed", said)


if __name__ == "__main__":
    BUILD = Path(sys.argv.pop(1)).resolve()
    unittest.main()
