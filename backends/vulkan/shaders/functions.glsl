// Functions of f32 within the contract's bounds, which are far narrower than the bounds of Vulkan's own functions. They need
// neither a fused multiply-add nor double. All variables are precise, because a device may rearrange and fuse other
// expressions, and the bits of a result would then depend on the pipeline. exp, log and tanh use the reductions and
// coefficients of Cephes by S. Moshier.
#define INFINITE uintBitsToFloat(0x7f800000u)
#define NOT_A_NUMBER uintBitsToFloat(0x7fc00000u)

// Returns y * 2^n, computed in two steps so that a denormal result is rounded once.
float scaled(float y, int n) {
  int half_n = n / 2;
  precise float part = y * uintBitsToFloat(uint(half_n + 127) << 23);
  precise float whole = part * uintBitsToFloat(uint(n - half_n + 127) << 23);
  return whole;
}

float exponential(float x) {
  if (is_nan(x)) return x;
  if (x > 88.73) return INFINITE;
  if (x < -104.0) return 0.0;
  precise float n = floor(x * 1.44269504 + 0.5);
  precise float r = x - n * 0.693359375;
  r = r - n * -2.12194440e-4;
  precise float p = 1.9875691500e-4;
  p = p * r + 1.3981999507e-3;
  p = p * r + 8.3334519073e-3;
  p = p * r + 4.1665795894e-2;
  p = p * r + 1.6666665459e-1;
  p = p * r + 5.0000001201e-1;
  precise float y = (p * (r * r) + r) + 1.0;
  return scaled(y, int(n));
}

float logarithm(float x) {
  uint bits = floatBitsToUint(x);
  if (is_nan(x)) return x;
  if ((bits << 1) == 0u) return -INFINITE;
  if ((bits >> 31) != 0u) return NOT_A_NUMBER;
  if (bits == 0x7f800000u) return x;
  int e = int(bits >> 23) - 126;
  if (bits < 0x00800000u) {
    int lead = findMSB(bits);
    e = lead - 148;
    bits <<= uint(23 - lead);
  }
  precise float m = uintBitsToFloat((bits & 0x007fffffu) | 0x3f000000u);
  if (m < 0.70710678) {
    e -= 1;
    m = m + m - 1.0;
  } else {
    m = m - 1.0;
  }
  precise float z = m * m, y = 7.0376836292e-2;
  y = y * m - 1.1514610310e-1;
  y = y * m + 1.1676998740e-1;
  y = y * m - 1.2420140846e-1;
  y = y * m + 1.4249322787e-1;
  y = y * m - 1.6668057665e-1;
  y = y * m + 2.0000714765e-1;
  y = y * m - 2.4999993993e-1;
  y = y * m + 3.3333331174e-1;
  y = y * m * z;
  precise float n = float(e);
  y = y + -2.12194440e-4 * n;
  y = y - 0.5 * z;
  precise float r = (m + y) + 0.693359375 * n;
  return r;
}

float hyperbolic_tangent(float x) {
  if (is_nan(x)) return x;
  precise float a = abs(x);
  if (a < 0.625) {
    if (a < 1e-4) return x;
    precise float z = x * x, p = -5.70498872745e-3;
    p = p * z + 2.06390887954e-2;
    p = p * z - 5.37397155531e-2;
    p = p * z + 1.33314422036e-1;
    p = p * z - 3.33332819422e-1;
    p = p * z * x + x;
    return p;
  }
  precise float r = a > 10.0 ? 1.0 : 1.0 - 2.0 / (exponential(a + a) + 1.0);
  return x < 0.0 ? -r : r;
}

float logistic(float x) {
  if (is_nan(x)) return x;
  precise float e = exponential(-abs(x)), r = (x < 0.0 ? e : 1.0) / (1.0 + e);
  return r;
}

// Returns e^(t^2) erfc(t) for t >= 0. (1 + 2 t) e^(t^2) erfc(t) varies little as a function of (t - 3) / (t + 3): M.
// Shepherd and J. Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x", 1981. The polynomial is fitted for the
// least relative error up to t = 11, 3e-9.
float scaled_tail(float t) {
  precise float v = (t - 3.0) / (t + 3.0);
  precise float p = -0.000259748515;
  p = p * v - 0.000756298832;
  p = p * v + 0.00201406726;
  p = p * v + 0.0025591359;
  p = p * v - 0.0238062907;
  p = p * v + 0.0682960451;
  p = p * v - 0.119269304;
  p = p * v + 0.12964654;
  p = p * v - 0.0475624986;
  p = p * v - 0.135621145;
  p = p * v + 1.25300801;
  precise float r = p / (1.0 + 2.0 * t);
  return r;
}

// Below 0.9375 a polynomial approximates erf(x) / x; it is fitted for the least relative error, 1e-11.
float error_function(float x) {
  if (is_nan(x)) return x;
  precise float a = min(abs(x), 11.0), z = a * a;
  if (a < 0.9375) {
    precise float p = -1.01604755e-05;
    p = p * z + 0.000114167036;
    p = p * z - 0.000850209151;
    p = p * z + 0.00522209285;
    p = p * z - 0.0268657487;
    p = p * z + 0.112837873;
    p = p * z - 0.376126379;
    p = p * z + 1.12837923;
    p = p * x;
    return p;
  }
  precise float r = 1.0 - exponential(-z) * scaled_tail(a);
  return x < 0.0 ? -r : r;
}

// The standard normal distribution function. Its lower tail is as accurate as exponential().
float normal_distribution(float x) {
  precise float t = min(abs(x) * 0.707106781, 11.0), h = 0.5 * x * x, r;
  if (t < 0.9375) {
    r = 0.5 + 0.5 * error_function(x * 0.707106781);
    return r;
  }
  r = 0.5 * exponential(-h) * scaled_tail(t);
  if (x > 0.0) r = 1.0 - r;
  return r;
}

// --- Pairs of floats: the sum of a pair is a number of about 48 bits (T. J. Dekker, "A floating-point technique for
// extending the available precision", 1971).

vec2 pair_of_sum(float a, float b) {
  precise float s = a + b, back = s - a;
  precise float rest = (a - (s - back)) + (b - back);
  return vec2(s, rest);
}

vec2 pair_of_product(float a, float b) {
  if (abs(a) > 1e30 || abs(b) > 1e30) return vec2(a * b, 0.0);  // the parts would overflow
  precise float wide_a = a * 4097.0, wide_b = b * 4097.0;
  precise float high_a = wide_a - (wide_a - a), high_b = wide_b - (wide_b - b);
  precise float low_a = a - high_a, low_b = b - high_b, p = a * b;
  precise float rest = ((high_a * high_b - p) + high_a * low_b + low_a * high_b) + low_a * low_b;
  return vec2(p, rest);
}

// Returns the binary logarithm of a positive finite number, with a relative error of about 2^-30.
vec2 binary_logarithm(uint bits) {
  int e = int(bits >> 23) - 127;
  if (bits < 0x00800000u) {
    int lead = findMSB(bits);
    bits <<= uint(23 - lead);
    e = lead - 149;
  }
  precise float m = uintBitsToFloat((bits & 0x7fffffu) | 0x3f800000u);
  if (m > 1.41421356) {
    m *= 0.5;
    e += 1;
  }
  // ln m = 2 artanh s with s = (m - 1) / (m + 1), whose series begins with s + s^3 / 3.
  precise float top = m - 1.0;
  vec2 below = pair_of_sum(m, 1.0);
  precise float s = top / below.x;
  vec2 product = pair_of_product(s, below.x);
  precise float rest = ((top - product.x) - product.y - s * below.y) / below.x;
  precise float z = s * s, p = 0.090909091;
  p = p * z + 0.11111111;
  p = p * z + 0.14285714;
  p = p * z + 0.2;
  p = p * z + 0.33333333;
  precise float tail = rest + s * z * p;
  // Times 2 / ln 2 = 2.8853900817779268.
  vec2 scaled_s = pair_of_product(s, 2.8853900432586670);
  precise float low = scaled_s.y + s * 3.8519259e-8 + tail * 2.88539008;
  vec2 sum = pair_of_sum(float(e), scaled_s.x);
  precise float all_low = sum.y + low;
  return pair_of_sum(sum.x, all_low);
}

float power_of_size(uint bits, float y) {
  vec2 l = binary_logarithm(bits);
  precise float about = y * l.x;
  if (about >= 129.0) return INFINITE;
  if (about < -152.0) return 0.0;
  vec2 t = pair_of_product(y, l.x);
  precise float n = floor(t.x + 0.5);
  precise float r = (t.x - n) + (t.y + y * l.y);
  precise float p = 1.5252734e-5;  // 2^r: the series of e^(r ln 2)
  p = p * r + 1.5403530e-4;
  p = p * r + 1.3333558e-3;
  p = p * r + 9.6181291e-3;
  p = p * r + 5.5504109e-2;
  p = p * r + 2.4022651e-1;
  p = p * r + 6.9314718e-1;
  precise float value = p * r + 1.0;
  return n >= 129.0 ? INFINITE : scaled(value, int(n));
}

float power(float x, float y) {
  uint bits_x = floatBitsToUint(x), bits_y = floatBitsToUint(y);
  uint size_x = bits_x & 0x7fffffffu, size_y = bits_y & 0x7fffffffu;
  if (size_y == 0u || bits_x == 0x3f800000u) return 1.0;
  if (is_nan(x) || is_nan(y)) return NOT_A_NUMBER;
  bool is_whole = size_y >= 0x4b800000u, is_odd = false;
  if (!is_whole && size_y >= 0x3f800000u) {
    uint shift = 150u - (size_y >> 23), significand = (size_y & 0x7fffffu) | 0x800000u;
    is_whole = (significand & ((1u << shift) - 1u)) == 0u;
    is_odd = is_whole && (significand >> shift & 1u) != 0u;
  }
  bool is_negative = (bits_x >> 31) != 0u, grows = (bits_y >> 31) == 0u;
  float r;
  if (size_y == 0x7f800000u) {
    if (size_x == 0x3f800000u) return 1.0;
    return (size_x > 0x3f800000u) == grows ? INFINITE : 0.0;
  } else if (size_x == 0x7f800000u) {
    r = grows ? INFINITE : 0.0;
  } else if (size_x == 0u) {
    r = grows ? 0.0 : INFINITE;
  } else {
    if (is_negative && !is_whole) return NOT_A_NUMBER;
    r = power_of_size(size_x, y);
  }
  return is_negative && is_odd ? -r : r;
}
