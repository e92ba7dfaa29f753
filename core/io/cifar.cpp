#include <plugrad/io/cifar.hpp>

#include <core/io/byte_source.hpp>

#include <algorithm>
#include <array>

namespace plugrad::io {
namespace {

constexpr size_t kPixels = 3 * 32 * 32;

void check_label(const ByteSource& source, int64_t image, uint8_t label, int classes) {
  if (label < classes) return;
  source.fail("is not a file of this CIFAR: image " + std::to_string(image) + " has the label " + std::to_string(label) +
              ", but there are " + std::to_string(classes) + " classes");
}

void append(CifarImages& all, const CifarImages& more) {
  all.count += more.count;
  all.pixels.insert(all.pixels.end(), more.pixels.begin(), more.pixels.end());
  all.labels.insert(all.labels.end(), more.labels.begin(), more.labels.end());
  all.coarse_labels.insert(all.coarse_labels.end(), more.coarse_labels.begin(), more.coarse_labels.end());
}

CifarImages read_files(const std::string& directory, const std::vector<std::string>& names, CifarKind kind) {
  CifarImages all;
  for (const std::string& name : names) append(all, read_cifar_file(directory + "/" + name, kind));
  return all;
}

}  // namespace

// A record is a label, or a superclass and a class, and the pixels.
CifarImages read_cifar_file(const std::string& path, CifarKind kind) {
  ByteSource source(path, Packing::gzip_or_plain,
                    "expected the binary version of CIFAR from https://www.cs.toronto.edu/~kriz/cifar.html");
  const bool hundred = kind == CifarKind::hundred;
  const size_t labels = hundred ? 2 : 1;
  CifarImages images;
  std::array<uint8_t, 2 + kPixels> record;
  while (const size_t got = source.read(record.data(), labels + kPixels)) {
    if (got != labels + kPixels) {
      source.fail("is cut short or no file of this CIFAR: after " + std::to_string(images.count) + " images of " +
                  std::to_string(labels + kPixels) + " bytes it has " + std::to_string(got) + " more bytes");
    }
    if (hundred) {
      check_label(source, images.count, record[0], 20);
      images.coarse_labels.push_back(record[0]);
    }
    check_label(source, images.count, record[labels - 1], hundred ? 100 : 10);
    images.labels.push_back(record[labels - 1]);
    images.pixels.insert(images.pixels.end(), record.begin() + static_cast<ptrdiff_t>(labels),
                         record.begin() + static_cast<ptrdiff_t>(labels + kPixels));
    ++images.count;
  }
  if (images.count == 0) source.fail("holds no image");
  return images;
}

Cifar read_cifar(const std::string& directory, CifarKind kind) {
  if (kind == CifarKind::hundred)
    return {read_files(directory, {"train.bin"}, kind), read_files(directory, {"test.bin"}, kind)};
  std::vector<std::string> names;
  for (int i = 1; i <= 5; ++i) names.push_back("data_batch_" + std::to_string(i) + ".bin");
  return {read_files(directory, names, kind), read_files(directory, {"test_batch.bin"}, kind)};
}

}  // namespace plugrad::io
