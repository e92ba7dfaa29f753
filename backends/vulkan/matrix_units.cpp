#include <backends/vulkan/matrix_units.hpp>

#include <backends/vulkan/spirv.hpp>

#include <plugrad/sdk/backend.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace plugrad::vulkan {
namespace {

// As product_units.comp has them.
constexpr uint32_t kTile = 64, kDepth = 32, kGroup = 256;
constexpr uint32_t kSpecRows = 7, kSpecColumns = 8, kSpecInner = 9;
constexpr uint32_t kLeast = 8;  // elements: rows of fragments are aligned to 16 bytes

bool is_usable(const VkCooperativeMatrixPropertiesKHR& p) {
  const bool halves = p.AType == VK_COMPONENT_TYPE_FLOAT16_KHR && p.BType == VK_COMPONENT_TYPE_FLOAT16_KHR;
  const bool floats = p.CType == VK_COMPONENT_TYPE_FLOAT32_KHR && p.ResultType == VK_COMPONENT_TYPE_FLOAT32_KHR;
  const bool large = std::min({p.MSize, p.NSize, p.KSize}) >= kLeast;
  return halves && floats && large && p.scope == VK_SCOPE_SUBGROUP_KHR && kTile % p.MSize == 0 && kTile % p.NSize == 0 &&
         kDepth % p.KSize == 0;
}

// The uses of matrices, in SPIR-V's numbers.
enum : uint32_t { kLeft, kRight, kSum, kUses };

class Rewriter {
 public:
  explicit Rewriter(std::span<const uint32_t> given)
      : given_(given), made_(given.begin(), given.begin() + kHeaderWords), next_(given[kBoundAt]) {}

  std::vector<uint32_t> module() {
    for (size_t at = kHeaderWords; at < given_.size(); at += words_of(given_[at]))
      rewrite(given_.subspan(at, words_of(given_[at])));
    made_[kBoundAt] = next_;
    return std::move(made_);
  }

 private:
  using Instruction = std::span<const uint32_t>;

  void rewrite(Instruction in) {
    switch (opcode_of(in[0])) {
      case kOpCapability:
        return add({in[0], in[1] == kCapabilityCooperativeMatrixNV ? kCapabilityCooperativeMatrixKHR : in[1]});
      case kOpExtension: return rewrite_extension(in);
      case kOpDecorate: note_decoration(in); return copy(in);
      case kOpTypeInt:
        if (in[2] == 32 && !in[3]) uint_type_ = in[1];
        return copy(in);
      case kOpTypeCooperativeMatrixNV: return rewrite_type(in);
      case kOpCooperativeMatrixLoadNV: return rewrite_access(in, kOpCooperativeMatrixLoadKHR, 3);
      case kOpCooperativeMatrixStoreNV: return rewrite_access(in, kOpCooperativeMatrixStoreKHR, 2);
      case kOpCooperativeMatrixMulAddNV: copy(in, kOpCooperativeMatrixMulAddKHR); return;
      default: copy(in);
    }
  }

  void rewrite_extension(Instruction in) {
    if (std::strcmp(reinterpret_cast<const char*>(&in[1]), "SPV_NV_cooperative_matrix") != 0) return copy(in);
    std::array<uint32_t, 7> name{};
    std::strcpy(reinterpret_cast<char*>(name.data()), "SPV_KHR_cooperative_matrix");
    add({first_word(kOpExtension, 1 + name.size())});
    made_.insert(made_.end(), name.begin(), name.end());
  }

  void note_decoration(Instruction in) {
    if (in[2] != kDecorationSpecId) return;
    if (in[3] == kSpecRows) rows_ = in[1];
    if (in[3] == kSpecColumns) columns_ = in[1];
    if (in[3] == kSpecInner) inner_ = in[1];
  }

  void rewrite_type(Instruction in) {  // result, component, scope, rows, columns
    if (!uses_) define_uses();
    const uint32_t rows = in[4], columns = in[5];
    if ((rows != rows_ && rows != inner_) || (columns != columns_ && columns != inner_) || rows == columns)
      throw BackendError(PLUGRAD_INTERNAL, "a matrix of the shader has a shape of its own");
    const uint32_t use = columns == inner_ ? kLeft : rows == inner_ ? kRight : kSum;
    add({first_word(kOpTypeCooperativeMatrixKHR, 7), in[1], in[2], in[3], rows, columns, uses_ + use});
  }

  // Defines the constants 0, 1 and 2. The constant 0 also means row-major matrices.
  void define_uses() {
    uses_ = next_;
    for (uint32_t use = 0; use < kUses; ++use) add({first_word(kOpConstant, 4), uint_type_, next_++, use});
  }

  // Replaces the operands (stride, is column-major) by (layout, stride).
  void rewrite_access(Instruction in, uint32_t opcode, size_t pointer_words) {
    copy(in, opcode);
    uint32_t* const stride = &made_[made_.size() - in.size() + pointer_words + 1];
    stride[1] = stride[0];
    stride[0] = uses_;
  }

  void copy(Instruction in) { made_.insert(made_.end(), in.begin(), in.end()); }
  void copy(Instruction in, uint32_t opcode) {
    copy(in);
    made_[made_.size() - in.size()] = first_word(opcode, static_cast<uint32_t>(in.size()));
  }
  void add(std::initializer_list<uint32_t> words) { made_.insert(made_.end(), words); }

  const Instruction given_;
  std::vector<uint32_t> made_;
  uint32_t next_, uses_ = 0;                                     // ids: the next free id, the first constant's id
  uint32_t rows_ = 0, columns_ = 0, inner_ = 0, uint_type_ = 0;  // ids
};

}  // namespace

MatrixUnits find_matrix_units(const InstanceFunctions& functions, VkPhysicalDevice device, uint32_t subgroup) {
  const auto ask = functions.vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR;
  uint32_t count = 0;
  if (!ask || subgroup == 0 || kGroup % subgroup != 0 || ask(device, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<VkCooperativeMatrixPropertiesKHR> all(
      count, typed<VkCooperativeMatrixPropertiesKHR>(VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR));
  if (ask(device, &count, all.data()) < VK_SUCCESS) return {};
  all.resize(count);
  const auto found = std::ranges::find_if(all, is_usable);
  if (found == all.end()) return {};
  const uint32_t fragments = kTile / found->MSize * (kTile / found->NSize), subgroups = kGroup / subgroup;
  return {found->MSize, found->NSize, found->KSize, (fragments + subgroups - 1) / subgroups};
}

bool has_matrices(std::span<const uint32_t> module) {
  for (size_t at = kHeaderWords; opcode_of(module[at]) == kOpCapability; at += words_of(module[at]))
    if (module[at + 1] == kCapabilityCooperativeMatrixNV) return true;
  return false;
}

std::vector<uint32_t> with_khr_matrices(std::span<const uint32_t> module) { return Rewriter(module).module(); }

}  // namespace plugrad::vulkan
