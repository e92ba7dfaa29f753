// Recurrent networks: RNN, LSTM (Hochreiter and Schmidhuber, 1997) and GRU (Cho et al., 2014), as PyTorch defines them.
// Parameters are named weight_ih_l0, weight_hh_l0, bias_ih_l0 and bias_hh_l0 for layer 0, with "_reverse" behind for the
// direction from the end, and start uniform in +-1/sqrt(hidden_size).
#pragma once
#include <plugrad/nn/module.hpp>

namespace plugrad::nn {

enum class RecurrentKind { rnn_tanh, rnn_relu, lstm, gru };

struct RecurrentOptions {
  int64_t num_layers = 1;
  bool bias = true, batch_first = false;
  double dropout = 0;  // of the results of each layer but the last, while training
  bool bidirectional = false;
  DType dtype = DType::f32;
  Device device = default_device();
};

// The parameters of one direction of one layer; biases may be undefined.
struct RecurrentWeights {
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
};

// The results of a recurrent network: output (l, n, d hidden), or (n, l, d hidden) if batch_first, or (l, d hidden) without
// n, for d directions; the last states h and, of an LSTM, c (layers d, n, hidden), or without n.
struct Recurrence {
  Tensor output, h, c;
};

// Runs a network on x (l, n, in), or (n, l, in) if batch_first, or (l, in). The states start at h and c, or at 0 where they
// are undefined. weights: of layer 0, then of layer 1 and so on, the forward direction before the reverse direction. Of the
// options, num_layers and bias follow from weights; dropout applies always. Throws Error (invalid) if shapes do not fit.
PLUGRAD_API Recurrence recurrent(RecurrentKind kind, const Tensor& x, const std::vector<RecurrentWeights>& weights,
                                 const Tensor& h = {}, const Tensor& c = {}, const RecurrentOptions& options = {});

// As recurrent, on sequences of different lengths. data (sum of batch_sizes, in) has the first step of all sequences, then
// the second step of the sequences that have it, and so on; the longest sequences come first. batch_sizes: the number of
// sequences at each step. output: in the form of data. h and c (layers d, n, hidden): the states after the last step of each
// sequence, which is the first one in the reverse direction. batch_first has no effect.
PLUGRAD_API Recurrence recurrent_packed(RecurrentKind kind, const Tensor& data, const std::vector<int64_t>& batch_sizes,
                                        const std::vector<RecurrentWeights>& weights, const Tensor& h = {},
                                        const Tensor& c = {}, const RecurrentOptions& options = {});

class PLUGRAD_API RecurrentBase : public Module {
 public:
  void members(Members& all) override;
  // recurrent with this module's weights; dropout applies while training.
  Recurrence run(const Tensor& x, const Tensor& h = {}, const Tensor& c = {}) const;
  // run(x).output.
  Tensor forward(const Tensor& x) const override { return run(x).output; }

 protected:
  // Throws Error (invalid) for sizes below 1, and for a dropout outside [0, 1].
  RecurrentBase(RecurrentKind kind, int64_t input_size, int64_t hidden_size, const RecurrentOptions& options);
  std::string detail() const override;

 private:
  RecurrentKind kind_;
  int64_t input_size_, hidden_size_;
  RecurrentOptions options_;
  std::vector<RecurrentWeights> weights_;
};

// h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu in place of tanh.
class PLUGRAD_API RNN final : public RecurrentBase {
 public:
  enum class Activation { tanh, relu };
  RNN(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {},
      Activation nonlinearity = Activation::tanh)
      : RecurrentBase(nonlinearity == Activation::tanh ? RecurrentKind::rnn_tanh : RecurrentKind::rnn_relu, input_size,
                      hidden_size, options) {}
};
// i, f, g, o = W_ih x + b_ih + W_hh h + b_hh; c' = sigmoid(f) c + sigmoid(i) tanh(g); h' = sigmoid(o) tanh(c').
class PLUGRAD_API LSTM final : public RecurrentBase {
 public:
  LSTM(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {})
      : RecurrentBase(RecurrentKind::lstm, input_size, hidden_size, options) {}
};
// r, z = sigmoid(W_ih x + b_ih + W_hh h + b_hh); n = tanh(W_in x + b_in + r (W_hn h + b_hn)); h' = (1 - z) n + z h.
class PLUGRAD_API GRU final : public RecurrentBase {
 public:
  GRU(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options = {})
      : RecurrentBase(RecurrentKind::gru, input_size, hidden_size, options) {}
};

}  // namespace plugrad::nn
