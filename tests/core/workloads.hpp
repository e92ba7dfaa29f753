// Computations on tensors of every layout, which compare a device that lacks some feature with a complete device.
#pragma once
#include <tests/core/orders.hpp>

namespace plugrad::test {

struct Workload {
  const char* name;
  Tensor (*run)(const Tensor& x);  // (4, 6), f64
  bool counts = false;             // it needs arange, and so immediates as operands
};
inline Tensor loss_gradient(const Tensor& x, Tensor (*loss)(const Tensor&)) {
  const Tensor leaf = clone(x.detach()).requires_grad_();
  return grad({sum(loss(leaf) * 2)}, {leaf})[0];
}
inline Tensor exact_gelu(const Tensor& x) { return gelu(x); }
inline Tensor tanh_gelu(const Tensor& x) { return gelu(x, Approximation::tanh); }
inline Tensor causal_attention(const Tensor& x) {
  return scaled_dot_product_attention(x, slice(x, 0, 3, -5, -1), x * 2, {}, 0, true);
}
inline Tensor masked_attention(const Tensor& x) {
  return scaled_dot_product_attention(x, slice(x, 0, 3, -5, -1), x * 2, slice(x, 1, 1, 5));
}
inline const Workload kWorkloads[] = {
    {"sum of transposed", [](const Tensor& x) { return transpose(x) + transpose(x) * 2; }},
    {"negative steps", [](const Tensor& x) { return slice(x, 1, -1, -7, -1) * slice(x, 1, -1, -7, -1) - x; }},
    {"broadcast", [](const Tensor& x) { return x / (abs(select(x, 0, 1)) + 1); }},
    {"numbers", [](const Tensor& x) { return 1 - pow(x * 2, 2) / 3; }},
    {"choice", [](const Tensor& x) { return where(gt(x, 0), x, 0) + where(lt(x, 0.5), 1, x) + maximum(x, 0.25); }},
    {"reductions", [](const Tensor& x) { return sum(transpose(x), {0}) + max(x, {1}) - min(slice(x, 0, 3, -5, -1), {1}); }},
    {"sort", [](const Tensor& x) { return sort(transpose(x), 0, true).values + cast(argsort(transpose(x)), DType::f64); }},
    {"argmax", [](const Tensor& x) { return cast(argmax(transpose(x), {0}), DType::f64); }},
    {"matmul", [](const Tensor& x) { return matmul(transpose(x), slice(x, 0, 3, -5, -1)); }},
    {"gather", [](const Tensor& x) { return gather(transpose(x), 1, to(i64({3, 0, 1, 2, 3, 0}, {6, 1}), x.device())); }},
    {"scatter",
     [](const Tensor& x) {
       return scatter_add(transpose(x), 0, to(i64({5, 0, 0, 5}, {1, 4}), x.device()), slice(transpose(x), 0, 0, 1));
     }},
    {"gather's gradient",
     [](const Tensor& x) {
       return transpose(loss_gradient(x, [](const Tensor& y) {
         const Tensor z = gather(transpose(y), 0, to(i64({5, 0, 0, 5, 1, 1, 2, 5}, {2, 4}), y.device()));
         return z * z;
       }));
     }},
    {"running sums",
     [](const Tensor& x) {
       const Tensor gradient = loss_gradient(x, [](const Tensor& y) { return cumsum(y, 0) * cumsum(y, 1); });
       return cumsum(transpose(x), 0) + transpose(gradient) + cast(cumsum(gt(transpose(x), 0), 1), DType::f64);
     }},
    {"first of an order",
     [](const Tensor& x) {
       return topk(transpose(x), 1, 0).values + cast(topk(transpose(x), 1, 1, false).indices, DType::f64) +
              kthvalue(transpose(x), 1, 0, true).values;
     }},
    {"cat", [](const Tensor& x) { return cat({transpose(x), slice(transpose(x), 0, 5, -7, -2)}); }},
    {"relu", [](const Tensor& x) { return relu(transpose(x)) + transpose(loss_gradient(x, relu)); }},
    {"sigmoid", [](const Tensor& x) { return sigmoid(transpose(x)) + transpose(loss_gradient(x, sigmoid)); }},
    {"tanh", [](const Tensor& x) { return tanh(transpose(x)) + transpose(loss_gradient(x, tanh)); }},
    {"gelu", [](const Tensor& x) { return exact_gelu(transpose(x)) + transpose(loss_gradient(x, exact_gelu)); }},
    {"gelu tanh", [](const Tensor& x) { return tanh_gelu(transpose(x)) + transpose(loss_gradient(x, tanh_gelu)); }},
    {"silu", [](const Tensor& x) { return silu(transpose(x)) + transpose(loss_gradient(x, silu)); }},
    {"softmax",
     [](const Tensor& x) {
       return softmax(transpose(x), 0) + transpose(loss_gradient(x, [](const Tensor& y) { return softmax(y, 1) * y; }));
     }},
    {"layer_norm",
     [](const Tensor& x) {
       const auto loss = [](const Tensor& y) { return layer_norm(y, {6}, select(y, 0, 1), select(y, 0, 2)) * y; };
       return layer_norm(transpose(x), {4}) + transpose(loss_gradient(x, loss));
     }},
    {"rms_norm",
     [](const Tensor& x) {
       const auto loss = [](const Tensor& y) { return rms_norm(transpose(y), {4}, select(y, 1, 1)); };
       return rms_norm(x, {4, 6}) + loss_gradient(x, loss);
     }},
    {"batch_norm",
     [](const Tensor& x) {
       const auto loss = [](const Tensor& y) {
         return batch_norm(reshape(y, {2, 3, 4}), {}, {}, slice(select(y, 0, 1), 0, 0, 3), {}, true) * 2;
       };
       return batch_norm(transpose(x), {}, {}, {}, {}, true) + transpose(loss_gradient(x, loss));
     }},
    {"group_norm",
     [](const Tensor& x) {
       const auto loss = [](const Tensor& y) { return group_norm(reshape(y, {2, 6, 2}), 2) * reshape(y, {2, 6, 2}); };
       return instance_norm(unsqueeze(x, 0)) + loss_gradient(x, loss);
     }},
    {"attention", [](const Tensor& x) { return masked_attention(x) + loss_gradient(x, masked_attention); }},
    {"causal attention", [](const Tensor& x) { return causal_attention(x) + loss_gradient(x, causal_attention); }, true},
    {"log_softmax",
     [](const Tensor& x) {
       return log_softmax(transpose(x), 0) + transpose(loss_gradient(x, [](const Tensor& y) { return log_softmax(y) * y; }));
     }},
    {"cross_entropy",
     [](const Tensor& x) {
       const auto loss = [](const Tensor& y) {
         return cross_entropy(transpose(y), to(i64({0, 3, 1, 2, 0, 0}), y.device()), Reduction::none);
       };
       return unsqueeze(loss(x), 1) + transpose(loss_gradient(x, loss));
     }},
    {"convolution",
     [](const Tensor& x) {
       const auto loss = [](const Tensor& y) {
         const Tensor images = reshape(transpose(y), {2, 2, 3, 2}), weight = reshape(slice(y, 0, 0, 2), {3, 2, 2, 1});
         return conv2d(images, weight, select(slice(y, 1, 0, 3), 0, 3), {2, 1}, {1, 0}, {1, 1});
       };
       const Tensor transposed = conv_transpose2d(reshape(x, {2, 2, 3, 2}), reshape(x, {2, 4, 1, 3}), {}, {2}, {0}, {1}, 2);
       return sum(reshape(loss(x), {-1})) + sum(reshape(transposed, {-1})) +
              loss_gradient(x,
                            [](const Tensor& y) {
                              return conv1d(reshape(y, {2, 2, 6}), reshape(slice(y, 1, 0, 3), {4, 1, 3}), {}, {1}, {1}, {2},
                                            2);
                            }) +
              loss_gradient(x, loss);
     }},
    {"averages",
     [](const Tensor& x) {
       const auto loss = [](const Tensor& y) {
         return exp(avg_pool2d(reshape(y, {1, 4, 6}), {3, 2}, {2, 1}, {1}, true, false));
       };
       return loss_gradient(x, loss) + sum(loss(x)) + sum(avg_pool1d(reshape(x, {2, 12}), {3}));
     }},
    {"steps",
     [](const Tensor& x) {
       Tensor p = clone(x), v = zeros_like(x), m = zeros_like(x), u = zeros_like(x);
       sgd_step(p, v, x, {.rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
       adam_step(
           p, m, u, x,
           {.rate = 0.1, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.1, .decoupled = true, .number = 3});
       return p + v + m + u;
     }},
    {"in place",
     [](const Tensor& x) {
       Tensor y = clone(x);
       slice(y, 1, 5, -7, -2).mul_(3);
       transpose(y).add_(transpose(x), 0.5);
       select(y, 0, 1).fill_(7);
       return y;
     }},
    {"angles", [](const Tensor& x) { return sin(x * 40) + cos(x) + atan(x * x) + atan2(x, x - 1) + tan(x) + erf(x); }},
    {"rests", [](const Tensor& x) { return fmod(x, 0.75) + remainder(x, -0.5) + floor_divide(x, 0.3); }},
    {"integers",
     [](const Tensor& x) {
       const Tensor a = cast(x * 1e12, DType::i64), b = cast(x * 77 + 0.5, DType::i64);
       const Tensor quotients = floor_divide(a, b) ^ remainder(a, b), shifts = a << (b & 15) | a >> (b & 63);
       return cast(quotients, DType::f64) + cast(shifts & ~b, DType::f64);
     }},
    {"factories", [](const Tensor& x) { return x + full({4, 1}, 0.5, DType::f64, x.device()) + ones_like(x); }},
    {"random",
     [](const Tensor& x) {
       set_generator_state(x.device(), {11, 0});
       return rand({5}, DType::f64, x.device(), -1, 1) + randn({5}, DType::f64, x.device());
     }},
    {"bool", [](const Tensor& x) { return cast(sum(eq(x, transpose(reshape(x, {6, 4})))), DType::f64); }},
};

}  // namespace plugrad::test
