// Runs ONNX's own test data through the importer: onnx_cases DEVICE FOLDER [NAME ...].
//
// FOLDER holds a folder for each case, with model.onnx and test_data_set_N/{input,output}_K.pb, as
// bench/python/onnx_node_tests.py writes them. Each case runs op by op and then twice as a recording, which must give the
// same bits. Prints a line for each case that does not pass, and the numbers of cases. Exits with 1 if a case is wrong.
#include <plugrad/io/onnx.hpp>
#include <plugrad/plugrad.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <vector>

namespace {
namespace fs = std::filesystem;
using plugrad::Tensor;
using plugrad::io::OnnxValue;

struct Difference {
  std::string what;
};

std::vector<char> bytes_of(const Tensor& x) {
  std::vector<char> bytes(static_cast<size_t>(x.count() * plugrad::item_size(x.dtype())));
  x.copy_to_host(bytes.data());
  return bytes;
}

// ONNX's own bounds: rtol 1e-3, and atol 1e-6 for other orders of sums; halves also differ by a few roundings.
void compare(const Tensor& got, const Tensor& expected) {
  if (got.shape() != expected.shape()) throw Difference{"shape " + got.shape().text() + ", not " + expected.shape().text()};
  if (got.dtype() != expected.dtype())
    throw Difference{std::string("dtype ") + dtype_name(got.dtype()) + ", not " + dtype_name(expected.dtype())};
  if (!is_floating(got.dtype())) {
    if (bytes_of(got) != bytes_of(expected)) throw Difference{"other integers"};
    return;
  }
  const bool half = got.dtype() == plugrad::DType::f16 || got.dtype() == plugrad::DType::bf16;
  const auto a = cast(got, plugrad::DType::f64).to_vector<double>(),
             b = cast(expected, plugrad::DType::f64).to_vector<double>();
  const double rtol = half ? got.dtype() == plugrad::DType::f16 ? 2e-3 : 1.6e-2 : 1e-3, atol = half ? 1e-3 : 1e-6;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    if (!same && !(std::abs(a[i] - b[i]) <= atol + rtol * std::abs(b[i])))
      throw Difference{"element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", not " + std::to_string(b[i])};
  }
}

void compare(const OnnxValue& got, const OnnxValue& expected) {
  if (got.index() != expected.index()) throw Difference{"a value of another kind"};
  if (const auto* tensor = std::get_if<Tensor>(&got)) return compare(*tensor, std::get<Tensor>(expected));
  if (const auto* all = std::get_if<std::vector<Tensor>>(&got)) {
    const auto& other = std::get<std::vector<Tensor>>(expected);
    if (all->size() != other.size()) throw Difference{"a sequence of another length"};
    for (size_t i = 0; i < all->size(); ++i) compare((*all)[i], other[i]);
  }
}

void compare_bits(const std::vector<OnnxValue>& a, const std::vector<OnnxValue>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (const auto* tensor = std::get_if<Tensor>(&a[i]))
      if (bytes_of(*tensor) != bytes_of(std::get<Tensor>(b.at(i)))) throw Difference{"a replay has other bits"};
}

// Resize with align_corners divides by the rounded extent, as ONNX Runtime and PyTorch do, and not by ONNX's product.
bool differs_by_choice(const std::string& name) {
  return name == "test_resize_downsample_scales_cubic_align_corners" ||
         name == "test_resize_downsample_scales_linear_align_corners";
}

bool is_random(const std::string& name) { return name.find("bernoulli") != name.npos || name.find("random") != name.npos; }

void run_case(const fs::path& folder, plugrad::Device device) {
  const plugrad::io::OnnxModel model = plugrad::io::load_onnx((folder / "model.onnx").string(), {.device = device});
  for (int set = 0; fs::exists(folder / ("test_data_set_" + std::to_string(set))); ++set) {
    const fs::path data = folder / ("test_data_set_" + std::to_string(set));
    std::vector<OnnxValue> inputs;
    for (size_t i = 0; i < model.inputs().size(); ++i)
      inputs.push_back(read_onnx_value((data / ("input_" + std::to_string(i) + ".pb")).string(), model.inputs()[i], device));
    const std::vector<OnnxValue> first = model.run(inputs);
    if (is_random(folder.filename().string())) return;
    for (size_t i = 0; i < model.outputs().size(); ++i)
      compare(first.at(i),
              read_onnx_value((data / ("output_" + std::to_string(i) + ".pb")).string(), model.outputs()[i], device));
    compare_bits(first, model.run(inputs));
    compare_bits(first, model.run(inputs));
  }
}
}  // namespace

int main(int count, char** words) {
  if (count < 3) {
    std::cerr << "onnx_cases DEVICE FOLDER [NAME ...]\n";
    return 2;
  }
  const plugrad::Device device(words[1]);
  const std::vector<std::string> only(words + 3, words + count);
  std::vector<fs::path> cases;
  for (const auto& each : fs::directory_iterator(words[2]))
    if (fs::exists(each.path() / "model.onnx") &&
        (only.empty() || std::ranges::find(only, each.path().filename().string()) != only.end()))
      cases.push_back(each.path());
  std::ranges::sort(cases);
  size_t passed = 0, chosen = 0, refused = 0, wrong = 0, failed = 0;
  for (const fs::path& each : cases) {
    const std::string name = each.filename().string();
    try {
      run_case(each, device);
      ++passed;
    } catch (const Difference& difference) {
      if (differs_by_choice(name)) {
        ++chosen;
        continue;
      }
      ++wrong;
      std::cout << "WRONG " << name << ": " << difference.what << std::endl;
    } catch (const plugrad::Error& error) {
      const bool unsupported = error.code() == plugrad::Code::unsupported;
      ++(unsupported ? refused : failed);
      std::cout << (unsupported ? "REFUSED " : "FAILED ") << name << ": " << error.what() << std::endl;
    } catch (const std::exception& error) {
      ++failed;
      std::cout << "FAILED " << name << ": " << error.what() << std::endl;
    }
  }
  std::cout << cases.size() << " cases: " << passed << " pass, " << chosen << " follow ONNX Runtime, " << refused
            << " refused, " << failed << " failed, " << wrong << " wrong" << std::endl;
  return wrong || failed ? 1 : 0;
}
