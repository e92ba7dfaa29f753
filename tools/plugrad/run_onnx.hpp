#pragma once
#include <plugrad/runtime/device.hpp>
#include <tools/plugrad/json.hpp>
#include <tools/plugrad/options.hpp>

#include <string>

namespace plugrad::tool {

// Runs, describes or saves an ONNX model with the options of `plugrad run`.
int run_onnx(const std::string& path, const Options& options, Device device);

}  // namespace plugrad::tool
