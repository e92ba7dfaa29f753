"""The test of exports and RUNPATHs can fail: it reports shared objects built with each fault. CXX names the compiler."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from binaries import core_faults, plugin_faults, runpath_faults, thread_local_faults

ENTRY = 'extern "C" int plugrad_backend_v0() { return 0; }\n'
CORE = """
#include <exception>
namespace plugrad {
struct Error : std::exception { ~Error() override; };
Error::~Error() = default;
void work() { throw Error(); }
template <class T> T item() { return T(); }
template int item<int>();
}
"""
HIDDEN = "-fvisibility=hidden"


class Binaries(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def built(self, source, *flags, name="planted"):
        name = Path(self.folder.name) / name
        name.with_suffix(".cpp").write_text(source)
        command = [os.environ["CXX"], "-std=c++20", "-O1", "-shared", "-fPIC", *flags,
                   str(name.with_suffix(".cpp")), "-o", str(name.with_suffix(".so"))]
        subprocess.run(command, check=True)
        return str(name.with_suffix(".so"))

    def test_core_names_of_ours_pass(self):
        self.assertEqual(core_faults(self.built(CORE)), [])

    def test_a_name_outside_the_namespace_is_found(self):
        for stray in ("int stray() { return 1; }", "namespace other { int plugrad() { return 1; } }",
                      'extern "C" int plugrad_stray() { return 1; }',
                      "#include <vector>\nnamespace plugrad { struct S {}; }\ntemplate class std::vector<plugrad::S>;"):
            with self.subTest(stray=stray):
                self.assertTrue(any("not in namespace" in fault for fault in core_faults(self.built(CORE + stray))))

    def test_a_core_that_exports_nothing_is_found(self):
        self.assertTrue(core_faults(self.built("namespace plugrad { void work() {} }", HIDDEN)))

    def test_plugins(self):
        self.assertEqual(plugin_faults(self.built(ENTRY)), [])
        self.assertTrue(plugin_faults(self.built(ENTRY + "int stray() { return 1; }")))
        self.assertTrue(plugin_faults(self.built(ENTRY, HIDDEN)))
        communicator = "libplugrad-communicator-planted"
        self.assertEqual(plugin_faults(self.built(ENTRY.replace("backend", "communicator"), name=communicator)), [])
        self.assertTrue(plugin_faults(self.built(ENTRY, name=communicator)))

    def test_thread_locals_of_another_library_are_found(self):
        own = self.built("thread_local int mine; int& get() { return mine; }")
        self.assertEqual(thread_local_faults(own), [])
        promise = self.built("#include <future>\nvoid work(std::promise<void>& done) { done.set_value(); }")
        self.assertTrue(any("__once_call" in fault for fault in thread_local_faults(promise)))

    def test_runpaths(self):
        for path, faults in (("$ORIGIN", 0), ("$ORIGIN/../lib", 0), ("$ORIGIN:", 1), ("/usr/local/lib", 1), ("lib", 1),
                             ("$ORIGIN/../lib:/opt:", 2), ("$ORIGINAL/lib", 1)):
            with self.subTest(path=path):
                self.assertEqual(len(runpath_faults(self.built(ENTRY, f"-Wl,-rpath,{path}"))), faults)
        self.assertEqual(runpath_faults(self.built(ENTRY)), [])


if __name__ == "__main__":
    unittest.main()
