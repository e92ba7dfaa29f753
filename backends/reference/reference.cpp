// Start reading here: this class and its rows of kernels are all that a backend of host memory needs. A plugin file adds
// one macro, PLUGRAD_EXPORT_BACKEND; this one gives its entry a name of its own, so that programs can link it as well.
#include <plugrad/backends/reference.hpp>

#include <backends/reference/families.hpp>

namespace plugrad::reference {
namespace {

class Reference final : public Backend {
 public:
  explicit Reference(const Opening& opening) { opening.options.allow({}); }

  plugrad_device_info info() const override { return host_info("reference (naive loops)"); }

  Rows elementwise() const override { return elementwise_rows(); }
  Rows reduce() const override { return reduce_rows(); }
  Rows matmul() const override { return matmul_rows(); }
  Rows indexing() const override { return indexing_rows(); }
  Rows random() const override { return random_rows(); }
  Rows backward() const override { return backward_rows(); }
  Rows update() const override { return update_rows(); }
};

}  // namespace
}  // namespace plugrad::reference

PLUGRAD_EXPORT_BACKEND_AS(plugrad_reference_backend, plugrad::reference::Reference, "reference", "0.1.0")
