// Random numbers, drawn from the device's generator: a seed gives the same results on every device (the results of normal
// and exponential up to the rounding of its logarithms). Results have no gradient.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <optional>

namespace plugrad {

// Uniform in [0, 1), with the shape and device of `like`, and its dtype if none is given. Floating dtypes.
PLUGRAD_API Tensor rand_like(const Tensor& like, std::optional<DType> dtype = std::nullopt);
// Normal with mean 0 and standard deviation 1, with the shape and device of `like`, and its dtype if none is given. Floating
// dtypes.
PLUGRAD_API Tensor randn_like(const Tensor& like, std::optional<DType> dtype = std::nullopt);

// Whole numbers of low (0 if it is left out) .. high - 1, all with the same probability up to a factor of 1 + 2^-24. Throws
// Error (invalid) if low is not below high, or if dtype does not hold them.
PLUGRAD_API Tensor randint(int64_t low, int64_t high, const Shape& shape, DType dtype = DType::i64,
                           Device device = default_device());
PLUGRAD_API Tensor randint(int64_t high, const Shape& shape, DType dtype = DType::i64, Device device = default_device());
// The same with the shape and device of `like`, and its dtype if none is given.
PLUGRAD_API Tensor randint_like(const Tensor& like, int64_t low, int64_t high, std::optional<DType> dtype = std::nullopt);
PLUGRAD_API Tensor randint_like(const Tensor& like, int64_t high, std::optional<DType> dtype = std::nullopt);
// 0 .. n - 1 in random order.
PLUGRAD_API Tensor randperm(int64_t n, DType dtype = DType::i64, Device device = default_device());

// 1 with x's element as the probability, or with probability p, else 0; in x's shape and dtype. x is floating if its
// elements are the probabilities. Throws Error (invalid) for probabilities outside [0, 1]; to see x's elements it waits for
// the device.
PLUGRAD_API Tensor bernoulli(const Tensor& x);
PLUGRAD_API Tensor bernoulli(const Tensor& x, double p);

// num_samples indices (i64) for each line of the last axis of the weights x, (n) or (lines, n); with replacement each sample
// has probability weight / sum. Throws Error (invalid) for negative, infinite or NaN weights, for lines without a positive
// weight, and without replacement for lines with fewer positive weights than samples. Waits for the device.
PLUGRAD_API Tensor multinomial(const Tensor& x, int64_t num_samples, bool replacement = false);

// Normal with this mean and standard deviation; tensors broadcast. Throws Error (invalid) for a negative deviation; to see a
// tensor's deviations it waits for the device.
PLUGRAD_API Tensor normal(const Tensor& mean, const Tensor& deviation);
PLUGRAD_API Tensor normal(const Tensor& mean, double deviation = 1);
PLUGRAD_API Tensor normal(double mean, const Tensor& deviation);
PLUGRAD_API Tensor normal(double mean, double deviation, const Shape& shape, DType dtype = DType::f32,
                          Device device = default_device());
// Exponential with rate lambd, whose mean is 1 / lambd. Throws Error (invalid) for a rate that is not positive.
PLUGRAD_API Tensor exponential(const Shape& shape, double lambd = 1, DType dtype = DType::f32,
                               Device device = default_device());

}  // namespace plugrad
