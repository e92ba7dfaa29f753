"""registers.py finds spills and unreported kernels."""
import unittest

import registers

ENTRY = """ptxas info    : Compiling entry function '_ZN7plugrad4cuda{}' for 'sm_90'
ptxas info    : Function properties for _ZN7plugrad4cuda{}
    {} bytes stack frame, {} bytes spill stores, {} bytes spill loads
ptxas info    : Used {} registers, used 1 barriers, 400 bytes cmem[0]
"""


def entry(name, frame=0, stores=0, loads=0, used=32):
    return ENTRY.format(name, name, frame, stores, loads, used)


class Registers(unittest.TestCase):
    def test_each_kernel_is_read(self):
        usages = registers.parse("nonsense\n" + entry("10map_kernelIfE", used=40) + entry("13reduce_kernelIfE", 8, 0, 0, 64))
        self.assertEqual([(registers.short(u.name), u.registers, u.frame, u.spills) for u in usages],
                         [("map_kernel", 40, 0, 0), ("reduce_kernel", 64, 8, 0)])
        self.assertEqual(registers.faults_of(usages), [])

    def test_a_spill_of_a_kernel_bound_by_memory_is_a_fault(self):
        for name in ("10map_kernelIfE", "13reduce_kernelIfE", "27log_softmax_backward_kernelIfE", "14scatter_kernelIfE"):
            for stores, loads in ((4, 0), (0, 8)):
                self.assertEqual(len(registers.faults_of(registers.parse(entry(name, 8, stores, loads)))), 1)

    def test_a_spill_elsewhere_is_only_told(self):
        self.assertEqual(registers.faults_of(registers.parse(entry("13matmul_kernelIdE", 8, 8, 8))), [])

    def test_a_kernel_without_figures_is_a_fault(self):
        self.assertEqual(len(registers.faults_of(registers.parse(entry("10map_kernelIfE").splitlines()[0]))), 1)


if __name__ == "__main__":
    unittest.main()
