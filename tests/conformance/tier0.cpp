// A plugin with only the kernels of tier 0: it shows that they suffice for training.
#include <plugrad/sdk/loop_rows.hpp>

#include <algorithm>
#include <vector>

namespace {

using namespace plugrad;

// The source of a cast may have any dtype of tier 0.
bool is_asked_for(const KernelRow& row) {
  const OpInfo& op = *op_info(row.opcode);
  constexpr uint8_t kTier0[] = {PLUGRAD_F32, PLUGRAD_I64, PLUGRAD_BOOL};
  return std::ranges::any_of(kTier0, [&](uint8_t dtype) {
    if (!op.is_needed_in(dtype)) return false;
    for (int i = 0; i < op.operand_count(); ++i) {
      const uint8_t needed = op.operand_dtype(i, dtype);
      if (needed ? needed != row.dtypes[i] : std::ranges::count(kTier0, row.dtypes[i]) == 0) return false;
    }
    return true;
  });
}

const std::vector<KernelRow>& rows() {
  static const std::vector<KernelRow> chosen = [] {
    std::vector<KernelRow> list;
    for (const KernelRow& row : loops::rows())
      if (is_asked_for(row)) list.push_back(row);
    return list;
  }();
  return chosen;
}

class Tier0 final : public Backend {
 public:
  explicit Tier0(const Opening& opening) { opening.options.allow({}); }
  static DeviceCount count() { return {1, ""}; }
  plugrad_device_info info() const override { return host_info("tier 0"); }
  Rows kernels() const override { return rows(); }
};

}  // namespace

PLUGRAD_EXPORT_BACKEND(Tier0, "tier0", "1")
