#include <tests/runtime/mutated.hpp>

#include <elf.h>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace plugrad::test {
namespace {
using Random = std::mt19937_64;
uint64_t below(Random& random, uint64_t end) { return random() % end; }

struct Region {
  size_t begin, end;
};

// The parts of a file that the system loader reads: headers, dynamic section, relocations, symbols, hashes, code.
std::vector<Region> deadly_regions(const std::string& file) {
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof header);
  std::vector<Region> regions{{0, sizeof header}, {header.e_phoff, header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr)}};
  for (int i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, file.data() + header.e_shoff + static_cast<size_t>(i) * sizeof section, sizeof section);
    const bool loaded = section.sh_flags & SHF_ALLOC && section.sh_type != SHT_NOBITS && section.sh_size;
    if (loaded && section.sh_offset + section.sh_size <= file.size())
      regions.push_back({section.sh_offset, section.sh_offset + section.sh_size});
  }
  return regions;
}

}  // namespace

std::string mutated(std::string file, Random& random) {
  const std::vector<Region> regions = deadly_regions(file);
  const auto place = [&] {
    if (below(random, 4) == 0) return static_cast<size_t>(below(random, file.size()));
    const Region& r = regions[below(random, regions.size())];
    return r.begin + static_cast<size_t>(below(random, r.end - r.begin));
  };
  switch (below(random, 6)) {
    case 0: return file.substr(0, below(random, file.size()));
    case 1: {  // a run of other bytes
      const size_t at = place(), bytes = std::min<size_t>(1 + below(random, 64), file.size() - at);
      for (size_t i = 0; i < bytes; ++i) file[at + i] = static_cast<char>(random());
      return file;
    }
    case 2: {  // zeros, as after a crash of the file system
      const size_t at = place(), bytes = std::min<size_t>(1 + below(random, 4096), file.size() - at);
      return file.replace(at, bytes, bytes, '\0');
    }
    case 3: {  // a large number
      const size_t at = place() & ~size_t{7};
      const uint64_t values[] = {~0ull, 1ull << 63, 1ull << 31, 0x7fffffff, random()};
      if (at + 8 <= file.size()) std::memcpy(file.data() + at, &values[below(random, 5)], 8);
      return file;
    }
    default:  // a few flipped bits
      for (uint64_t i = 0, n = 1 + below(random, 4); i < n; ++i) file[place()] ^= static_cast<char>(1 << below(random, 8));
      return file;
  }
}

}  // namespace plugrad::test
