// The kernels of loops.hpp as rows, and behind functions of C.
#include <plugrad/sdk/loops.h>
#include <plugrad/sdk/loop_rows.hpp>
#include <plugrad/sdk/loops.hpp>

namespace {

class Loops final : public plugrad::Backend {
 public:
  explicit Loops(const plugrad::Opening& opening) { opening.options.allow({}); }
  static plugrad::DeviceCount count() { return {1, ""}; }
  plugrad_device_info info() const override { return host_info("loops"); }
  plugrad::Rows kernels() const override { return plugrad::loops::kRows; }
};

constexpr plugrad_backend kTable = plugrad::backend_table<Loops>("loops", "0");

}  // namespace

plugrad::Rows plugrad::loops::rows() { return kRows; }

plugrad_status plugrad_loops_open(const plugrad_host* host, const plugrad_options* options, plugrad_device** loops,
                                  plugrad_device_info* info) {
  if (options && options->count) {  // without exceptions: see loops.h
    host->report(host, PLUGRAD_INVALID,
                 ("unknown option '" + std::string(options->items[0].key) + "'; known: none").c_str());
    return PLUGRAD_INVALID;
  }
  return kTable.open(host, 0, options, loops, info);
}

const plugrad_kernel* plugrad_loops_resolve(plugrad_device* loops, const plugrad_signature* signature) {
  return kTable.resolve(loops, signature);
}
