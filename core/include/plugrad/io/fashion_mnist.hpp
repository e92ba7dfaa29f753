// Fashion-MNIST: 70,000 pictures of clothes in ten classes, 28 x 28. Xiao, Rasul and Vollgraf, 2017.
#pragma once
#include <plugrad/io/idx.hpp>

#include <string>

namespace plugrad::io {

// The directory of Debian's package dataset-fashion-mnist.
inline constexpr const char* kFashionMnistDirectory = "/usr/share/datasets/fashion-mnist";

struct FashionMnist {
  LabelledImages train, test;
};

// Reads the four files of a directory, under their original names, with or without ".gz". Throws Error (io_error), with
// the command that installs the data, where a file is missing; else as read_labelled_images.
PLUGRAD_API FashionMnist read_fashion_mnist(const std::string& directory = kFashionMnistDirectory);

}  // namespace plugrad::io
