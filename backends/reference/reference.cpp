// Start reading here: this class and its kernel rows are all that a backend for host memory needs. A plugin file adds one
// macro, PLUGRAD_EXPORT_BACKEND; here the entry has its own name, so that programs can also link the backend.
#include <plugrad/backends/reference.hpp>

#include <backends/reference/kernels.hpp>
#include <backends/reference/program.hpp>

#include <plugrad/sdk/loop_rows.hpp>

namespace plugrad::reference {
namespace {

class Reference final : public Backend, public Programs {
 public:
  explicit Reference(const Opening& opening) {
    opening.options.allow({});
    for (const Rows rows : {loops::rows(), rowwise_kernels(), normalization_kernels(), attention_kernels(), window_kernels(),
                            update_kernels()})
      rows_.insert(rows_.end(), rows.begin(), rows.end());
  }

  plugrad_device_info info() const override { return host_info("reference (naive loops)"); }

  Rows kernels() const override { return rows_; }

  // Programs gain nothing here, and take memory of their own; but tests want them.
  static const void* extension(std::string_view name) noexcept {
    constexpr uint32_t kContents = PLUGRAD_PROGRAM_REDUCTIONS | PLUGRAD_PROGRAM_ROWS | PLUGRAD_PROGRAM_UPDATES;
    return name == PLUGRAD_PROGRAMS ? &kPrograms<Reference, kContents, 65536, INT64_MAX> : nullptr;
  }
  const plugrad_kernel* program_kernel(OpenDevice& device, const plugrad_program& program) override {
    std::unique_ptr<ProgramKernel> made = make_program(device, program);
    return made ? programs_.keep(std::move(made)) : nullptr;
  }

 private:
  std::vector<KernelRow> rows_;
  ProgramKernels programs_;
};

}  // namespace
}  // namespace plugrad::reference

PLUGRAD_EXPORT_BACKEND_AS(plugrad_reference_backend, plugrad::reference::Reference, "reference", "0.1.0",
                          PLUGRAD_AS_FALLBACK)
