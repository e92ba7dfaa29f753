#include <tools/trial/target.hpp>

#include <plugrad/runtime/runtime.hpp>

#include <filesystem>

namespace plugrad::tool {

std::string device_of(const std::string& target, int64_t index) {
  if (target.find('/') == target.npos && !target.ends_with(".so")) return target;
  const PluginRecord record = load_plugin(std::filesystem::absolute(target).lexically_normal().string());
  return record.name + ":" + std::to_string(index);
}

}  // namespace plugrad::tool
