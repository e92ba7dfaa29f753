// Random numbers, drawn from the device's generator: a seed gives the same results on every device (the results of normal
// and exponential up to the rounding of logarithms). Results have no gradient.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad {

// Returns uniform random numbers in [0, 1), with the shape and device of `like`, and the dtype of `like` if none is given.
// Floating dtypes.
PLUGRAD_API Tensor rand_like(const Tensor& like, std::optional<DType> dtype = std::nullopt);
// Returns normal random numbers with mean 0 and standard deviation 1, with the shape and device of `like`, and the dtype of
// `like` if none is given. Floating dtypes.
PLUGRAD_API Tensor randn_like(const Tensor& like, std::optional<DType> dtype = std::nullopt);

// Returns whole numbers from low (0 by default) to high - 1, all with the same probability up to a factor of 1 + 2^-24.
// Throws Error (invalid) if low is not below high, or if dtype does not hold the numbers.
PLUGRAD_API Tensor randint(int64_t low, int64_t high, const Shape& shape, DType dtype = DType::i64,
                           Device device = default_device());
PLUGRAD_API Tensor randint(int64_t high, const Shape& shape, DType dtype = DType::i64, Device device = default_device());
// Returns random whole numbers as randint does, with the shape and device of `like`, and the dtype of `like` if none is
// given.
PLUGRAD_API Tensor randint_like(const Tensor& like, int64_t low, int64_t high, std::optional<DType> dtype = std::nullopt);
PLUGRAD_API Tensor randint_like(const Tensor& like, int64_t high, std::optional<DType> dtype = std::nullopt);
// Returns the numbers from 0 to n - 1 in random order.
PLUGRAD_API Tensor randperm(int64_t n, DType dtype = DType::i64, Device device = default_device());

// Returns 1 with x's element as the probability, or with probability p, and else 0, in x's shape and dtype. x is floating if
// its elements are the probabilities. Throws Error (invalid) for probabilities outside [0, 1]; waits for the device to check
// x's elements. A compiled step does not wait: there the result for such an element is NaN.
PLUGRAD_API Tensor bernoulli(const Tensor& x);
PLUGRAD_API Tensor bernoulli(const Tensor& x, double p);

// Returns num_samples indices (i64) for each line of the last axis of the weights x, (n) or (lines, n). With replacement
// each sample has probability weight / sum. Throws Error (invalid) for negative, infinite or NaN weights, for lines without
// a positive weight, and without replacement for lines with fewer positive weights than samples. Waits for the device.
PLUGRAD_API Tensor multinomial(const Tensor& x, int64_t num_samples, bool replacement = false);

// Returns normal random numbers with this mean and standard deviation; tensors broadcast. Throws Error (invalid) for a
// negative deviation; waits for the device to check a tensor of deviations. A compiled step does not wait: there the numbers
// for such a deviation are NaN.
PLUGRAD_API Tensor normal(const Tensor& mean, const Tensor& deviation);
PLUGRAD_API Tensor normal(const Tensor& mean, double deviation = 1);
PLUGRAD_API Tensor normal(double mean, const Tensor& deviation);
PLUGRAD_API Tensor normal(double mean, double deviation, const Shape& shape, DType dtype = DType::f32,
                          Device device = default_device());
// Returns exponential random numbers with rate lambd and mean 1 / lambd. Throws Error (invalid) for a rate that is not
// positive.
PLUGRAD_API Tensor exponential(const Shape& shape, double lambd = 1, DType dtype = DType::f32,
                               Device device = default_device());

}  // namespace plugrad
