// Start reading here: a backend for host memory needs only this class and its kernel rows. A plugin file adds one macro,
// PLUGRAD_EXPORT_BACKEND; here the entry has its own name, so that programs can also link the backend.
#include <plugrad/backends/reference.hpp>

#include <backends/reference/fusion.hpp>
#include <backends/reference/kernels.hpp>

#include <plugrad/sdk/loop_rows.hpp>

namespace plugrad::reference {
namespace {

class Reference final : public Backend, public Fusions {
 public:
  explicit Reference(const Opening& opening) {
    opening.options.allow({});
    for (const Rows rows : {loops::rows(), rowwise_kernels(), normalization_kernels(), attention_kernels(), window_kernels(),
                            update_kernels()})
      rows_.insert(rows_.end(), rows.begin(), rows.end());
  }

  plugrad_device_info info() const override { return host_info("reference (naive loops)"); }

  Rows kernels() const override { return rows_; }

  // Fusions bring no gain here, and take additional memory; but tests want them.
  static const void* extension(std::string_view name) noexcept {
    constexpr uint32_t kContents = PLUGRAD_FUSION_REDUCTIONS | PLUGRAD_FUSION_ROWS | PLUGRAD_FUSION_UPDATES |
                                   PLUGRAD_FUSION_PRODUCTS | PLUGRAD_FUSION_NORMS | PLUGRAD_FUSION_ATTENTION;
    return name == PLUGRAD_FUSIONS ? &kFusions<Reference, kContents, 65536, INT64_MAX> : nullptr;
  }
  const plugrad_kernel* fusion_kernel(OpenDevice& device, const plugrad_fusion& fusion) override {
    std::unique_ptr<FusionKernel> made = make_fusion(device, fusion);
    return made ? fusions_.keep(std::move(made)) : nullptr;
  }

 private:
  std::vector<KernelRow> rows_;
  FusionKernels fusions_;
};

}  // namespace
}  // namespace plugrad::reference

PLUGRAD_EXPORT_BACKEND_AS(plugrad_reference_backend, plugrad::reference::Reference, "reference", "0.1.0",
                          PLUGRAD_AS_FALLBACK)
