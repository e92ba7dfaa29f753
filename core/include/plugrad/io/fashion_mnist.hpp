// Fashion-MNIST: 70,000 images of clothes in ten classes, 28 x 28. Xiao, Rasul and Vollgraf, 2017.
#pragma once
#include <plugrad/io/idx.hpp>

#include <string>

namespace plugrad::io {

// The directory of Debian's package dataset-fashion-mnist.
inline constexpr const char* kFashionMnistDirectory = "/usr/share/datasets/fashion-mnist";

struct FashionMnist {
  LabelledImages train, test;
};

// Reads the four files in a directory by their original names, with or without ".gz". For a missing file, throws Error
// (io_error) with the command to install the data. Otherwise throws as read_labelled_images does.
PLUGRAD_API FashionMnist read_fashion_mnist(const std::string& directory = kFashionMnistDirectory);

}  // namespace plugrad::io
