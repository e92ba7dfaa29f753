// Damages plugins.
#pragma once
#include <random>
#include <string>

namespace plugrad::test {

// Returns a copy of an ELF file that is truncated or has changed bytes, mostly where the system loader reads them.
std::string mutated(std::string file, std::mt19937_64& random);

}  // namespace plugrad::test
