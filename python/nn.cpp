// Functions of the core's modules that the modules of plugrad.nn, written in Python, share.
#include <python/binding.hpp>
#include <python/choices.hpp>

#include <nanobind/stl/optional.h>

namespace plugrad::python {

template <> struct Choices<nn::RecurrentKind> {
  static constexpr const char* kRole = "recurrent";
  static constexpr std::array kNames = {
      std::pair("rnn_tanh", nn::RecurrentKind::rnn_tanh), std::pair("rnn_relu", nn::RecurrentKind::rnn_relu),
      std::pair("lstm", nn::RecurrentKind::lstm), std::pair("gru", nn::RecurrentKind::gru)};
};
template <> struct Choices<nn::init::Nonlinearity> {
  static constexpr const char* kRole = "nonlinearity";
  static constexpr std::array kNames = {std::pair("linear", nn::init::Nonlinearity::linear),
                                        std::pair("sigmoid", nn::init::Nonlinearity::sigmoid),
                                        std::pair("tanh", nn::init::Nonlinearity::tanh),
                                        std::pair("relu", nn::init::Nonlinearity::relu),
                                        std::pair("leaky_relu", nn::init::Nonlinearity::leaky_relu),
                                        std::pair("selu", nn::init::Nonlinearity::selu)};
};
template <> struct Choices<nn::init::Fan> {
  static constexpr const char* kRole = "mode";
  static constexpr std::array kNames = {std::pair("fan_in", nn::init::Fan::in), std::pair("fan_out", nn::init::Fan::out)};
};

namespace {
using MaybeTensor = std::optional<Tensor>;
Tensor given(const MaybeTensor& x) { return x.value_or(Tensor()); }
Tensor given(const nb::object& x) { return x.is_none() ? Tensor() : nb::cast<Tensor>(x); }

// weights: lists of four tensors; a tensor may be None.
nb::tuple run_recurrent(const std::string& kind, const Tensor& x, const nb::list& weights, const MaybeTensor& h,
                        const MaybeTensor& c, bool batch_first, double dropout, bool bidirectional,
                        const std::optional<std::vector<int64_t>>& batch_sizes) {
  std::vector<nn::RecurrentWeights> all;
  for (const nb::handle each : weights) all.push_back({given(each[0]), given(each[1]), given(each[2]), given(each[3])});
  const nn::RecurrentOptions options{.batch_first = batch_first, .dropout = dropout, .bidirectional = bidirectional};
  const nn::Recurrence result = unlocked([=, first = given(h), second = given(c)] {
    const nn::RecurrentKind which = chosen<nn::RecurrentKind>(kind);
    if (batch_sizes) return nn::recurrent_packed(which, x, *batch_sizes, all, first, second, options);
    return nn::recurrent(which, x, all, first, second, options);
  });
  return nb::make_tuple(wrap(result.output), wrap(result.h), wrap(result.c));
}

nb::tuple run_attention(const Tensor& query, const Tensor& key, const Tensor& value, int64_t num_heads,
                        const MaybeTensor& in, const MaybeTensor& q, const MaybeTensor& k, const MaybeTensor& v,
                        const MaybeTensor& in_bias, const Tensor& out, const MaybeTensor& out_bias,
                        const MaybeTensor& padding, bool need_weights, const MaybeTensor& mask, bool average, bool is_causal,
                        double dropout, bool batch_first) {
  const nn::AttentionWeights weights{given(in), given(q), given(k), given(v), given(in_bias), out, given(out_bias)};
  const nn::AttentionOptions options{given(padding), need_weights, given(mask), average, is_causal};
  const nn::Attention result = unlocked(
      [=] { return nn::multi_head_attention(query, key, value, num_heads, weights, options, dropout, batch_first); });
  return nb::make_tuple(wrap(result.output), wrap(result.weights));
}

// The initialisers return the Python object that they were given.
template <auto function, class... More> auto initialiser() {
  return [](const nb::object& tensor, More... more) {
    function(nb::cast<Tensor>(tensor), more...);
    return tensor;
  };
}

template <auto function> auto kaiming() {
  return [](const nb::object& tensor, double a, const std::string& mode, const std::string& nonlinearity) {
    function(nb::cast<Tensor>(tensor), a, chosen<nn::init::Fan>(mode), chosen<nn::init::Nonlinearity>(nonlinearity));
    return tensor;
  };
}

void bind_kaiming(nb::module_& m) {
  constexpr const char* kText =
      "numbers with variance gain^2 / fan for the gain of the nonlinearity with slope a: He et al., 2015.";
  m.def("_init_kaiming_uniform_", kaiming<nn::init::kaiming_uniform_>(), nb::arg("tensor"), nb::arg("a") = 0.0,
        nb::arg("mode") = "fan_in", nb::arg("nonlinearity") = "leaky_relu", (std::string("Draws uniform ") + kText).c_str(),
        nb::sig("def _init_kaiming_uniform_(tensor: Tensor, a: float = 0.0, mode: str = 'fan_in', nonlinearity: str = "
                "'leaky_relu') -> Tensor"));
  m.def("_init_kaiming_normal_", kaiming<nn::init::kaiming_normal_>(), nb::arg("tensor"), nb::arg("a") = 0.0,
        nb::arg("mode") = "fan_in", nb::arg("nonlinearity") = "leaky_relu", (std::string("Draws normal ") + kText).c_str(),
        nb::sig("def _init_kaiming_normal_(tensor: Tensor, a: float = 0.0, mode: str = 'fan_in', nonlinearity: str = "
                "'leaky_relu') -> Tensor"));
  m.def(
      "_init_calculate_gain",
      [](const std::string& nonlinearity, double param) {
        return nn::init::calculate_gain(chosen<nn::init::Nonlinearity>(nonlinearity), param);
      },
      nb::arg("nonlinearity"), nb::arg("param") = 0.01,
      "Returns the gain that keeps the variance of a layer's results for an activation; param is the slope of leaky_relu.");
}

void bind_initialisers(nb::module_& m) {
  m.def("_init_uniform_", initialiser<nn::init::uniform_, double, double>(), nb::arg("tensor"), nb::arg("a") = 0.0,
        nb::arg("b") = 1.0, "Draws uniform numbers in [a, b).",
        nb::sig("def _init_uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor"));
  m.def("_init_normal_", initialiser<nn::init::normal_, double, double>(), nb::arg("tensor"), nb::arg("mean") = 0.0,
        nb::arg("std") = 1.0, "Draws normal numbers with this mean and standard deviation.",
        nb::sig("def _init_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor"));
  m.def("_init_trunc_normal_", initialiser<nn::init::trunc_normal_, double, double, double, double>(), nb::arg("tensor"),
        nb::arg("mean") = 0.0, nb::arg("std") = 1.0, nb::arg("a") = -2.0, nb::arg("b") = 2.0,
        "Draws normal numbers, and draws numbers outside [a, b] again.",
        nb::sig("def _init_trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = "
                "2.0) -> Tensor"));
  m.def("_init_constant_", initialiser<nn::init::constant_, double>(), nb::arg("tensor"), nb::arg("val"),
        "Fills the tensor with a number.", nb::sig("def _init_constant_(tensor: Tensor, val: float) -> Tensor"));
  m.def("_init_eye_", initialiser<nn::init::eye_>(), nb::arg("tensor"),
        "Fills a matrix with the identity. Raises ValueError unless the tensor has 2 dims.",
        nb::sig("def _init_eye_(tensor: Tensor) -> Tensor"));
  m.def("_init_xavier_uniform_", initialiser<nn::init::xavier_uniform_, double>(), nb::arg("tensor"), nb::arg("gain") = 1.0,
        "Draws uniform numbers with variance gain^2 2 / (fan_in + fan_out): Glorot and Bengio, 2010.",
        nb::sig("def _init_xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor"));
  m.def("_init_xavier_normal_", initialiser<nn::init::xavier_normal_, double>(), nb::arg("tensor"), nb::arg("gain") = 1.0,
        "Draws normal numbers with variance gain^2 2 / (fan_in + fan_out): Glorot and Bengio, 2010.",
        nb::sig("def _init_xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor"));
  m.def("_init_orthogonal_", initialiser<nn::init::orthogonal_, double>(), nb::arg("tensor"), nb::arg("gain") = 1.0,
        "Fills the tensor, seen as a matrix (rows, the rest), with orthonormal rows or columns, whichever are fewer, times "
        "gain: Saxe et al., 2014.",
        nb::sig("def _init_orthogonal_(tensor: Tensor, gain: float = 1.0) -> Tensor"));
  bind_kaiming(m);
}
}  // namespace

void bind_nn(nb::module_& m) {
  m.def(
      "_linear",
      [](int64_t in, int64_t out, bool bias, const DTypeLike& dtype, const DeviceLike& device) {
        const nn::Linear made(in, out, bias, dtype.get(default_floating()), device.get());
        return nb::make_tuple(made.weight, wrap(made.bias));
      },
      nb::arg("in_features"), nb::arg("out_features"), nb::arg("bias"), nb::arg("dtype").none(), nb::arg("device").none(),
      "Returns the weight and the bias of a new linear layer.");
  m.def("_recurrent", run_recurrent, nb::arg("kind"), nb::arg("x"), nb::arg("weights"), nb::arg("h").none(),
        nb::arg("c").none(), nb::arg("batch_first"), nb::arg("dropout"), nb::arg("bidirectional"),
        nb::arg("batch_sizes") = nb::none(), "Runs a recurrent network. Returns its output and the last states h and c.");
  m.def(
      "_ctc_loss",
      [](const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
         int64_t blank, const ReductionLike& reduction, bool zero_infinity) {
        const nn::CTCLoss loss{blank, reduction.get(), zero_infinity};
        return wrap(unlocked([&] { return loss(log_probs, targets, input_lengths, target_lengths); }));
      },
      nb::arg("log_probs"), nb::arg("targets"), nb::arg("input_lengths"), nb::arg("target_lengths"), nb::arg("blank"),
      nb::arg("reduction"), nb::arg("zero_infinity"));
  m.def("_multi_head_attention", run_attention, nb::arg("query"), nb::arg("key"), nb::arg("value"), nb::arg("num_heads"),
        nb::arg("in_proj_weight").none(), nb::arg("q_proj_weight").none(), nb::arg("k_proj_weight").none(),
        nb::arg("v_proj_weight").none(), nb::arg("in_proj_bias").none(), nb::arg("out_proj_weight"),
        nb::arg("out_proj_bias").none(), nb::arg("key_padding_mask").none(), nb::arg("need_weights"),
        nb::arg("attn_mask").none(), nb::arg("average_attn_weights"), nb::arg("is_causal"), nb::arg("dropout"),
        nb::arg("batch_first"), "Runs attention over several heads. Returns the output, and the weights or None.");
  bind_initialisers(m);
}

}  // namespace plugrad::python
