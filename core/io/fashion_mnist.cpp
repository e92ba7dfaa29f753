#include <plugrad/io/fashion_mnist.hpp>

#include <plugrad/runtime/error.hpp>

#include <filesystem>

namespace plugrad::io {
namespace {

std::string locate(const std::string& directory, const std::string& name) {
  for (const char* ending : {".gz", ""}) {
    std::string path = directory + "/" + name + ending;
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) return path;
  }
  throw Error(Code::io_error, "[" + directory + "] has no Fashion-MNIST: there is no " + name +
                                  ".gz; install it with `apt-get install dataset-fashion-mnist`, or name its directory");
}

}  // namespace

FashionMnist read_fashion_mnist(const std::string& directory) {
  const auto read = [&](const std::string& part) {
    return read_labelled_images(locate(directory, part + "-images-idx3-ubyte"),
                                locate(directory, part + "-labels-idx1-ubyte"));
  };
  return {read("train"), read("t10k")};
}

}  // namespace plugrad::io
