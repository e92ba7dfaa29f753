// The scalar face of micrograd: a Value is a rank-0 f64 tensor whose graph can be looked at.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <memory>
#include <string>
#include <vector>

namespace plugrad {

// A shared handle. Its graph keeps operands, constants too, and the gradient of every intermediate; it stays after backward,
// which may be called again and then adds. Thread safety as Tensor's.
class PLUGRAD_API Value {
 public:
  Value(double data = 0, Device device = default_device());
  explicit Value(Tensor tensor) : tensor_(std::move(tensor)) {}

  double data() const { return tensor_.item<double>(); }
  void set_data(double data);
  double grad() const;  // 0 before any backward
  void set_grad(double grad);
  // Adds to the gradient of everything this was computed from, and 1 to its own.
  void backward() const;

  std::string op() const { return tensor_.op_name(); }  // "+", "*", "**", "ReLU", "layer", ...; "" for a leaf
  std::vector<Value> previous() const;                  // the operands it was computed from
  std::string label() const;
  Value& set_label(const std::string& label);
  const Tensor& tensor() const { return tensor_; }
  // The object of a language binding that stands for this value: one for all its handles, kept and cleared by the binding.
  // Null at first, and always for a value that was computed while recording was off.
  void* face() const;
  void set_face(void* face) const;
  bool is_same(const Value& other) const { return tensor_.is_same(other.tensor_); }

 private:
  Tensor tensor_;
};

PLUGRAD_API Value operator+(const Value& a, const Value& b);
PLUGRAD_API Value operator-(const Value& a, const Value& b);
PLUGRAD_API Value operator*(const Value& a, const Value& b);
PLUGRAD_API Value operator/(const Value& a, const Value& b);
PLUGRAD_API Value operator-(const Value& x);
// A number beside a Value becomes a constant on its device.
inline Value operator+(const Value& a, double b) { return a + Value(b, a.tensor().device()); }
inline Value operator+(double a, const Value& b) { return Value(a, b.tensor().device()) + b; }
inline Value operator-(const Value& a, double b) { return a - Value(b, a.tensor().device()); }
inline Value operator-(double a, const Value& b) { return Value(a, b.tensor().device()) - b; }
inline Value operator*(const Value& a, double b) { return a * Value(b, a.tensor().device()); }
inline Value operator*(double a, const Value& b) { return Value(a, b.tensor().device()) * b; }
inline Value operator/(const Value& a, double b) { return a / Value(b, a.tensor().device()); }
inline Value operator/(double a, const Value& b) { return Value(a, b.tensor().device()) / b; }
template <class T> Value& operator+=(Value& a, const T& b) { return a = a + b; }
template <class T> Value& operator-=(Value& a, const T& b) { return a = a - b; }
template <class T> Value& operator*=(Value& a, const T& b) { return a = a * b; }
template <class T> Value& operator/=(Value& a, const T& b) { return a = a / b; }
PLUGRAD_API Value pow(const Value& x, double exponent);
PLUGRAD_API Value relu(const Value& x);
PLUGRAD_API Value tanh(const Value& x);
PLUGRAD_API Value exp(const Value& x);
PLUGRAD_API Value log(const Value& x);
// On another device; x itself where it is there. Gradients flow back.
PLUGRAD_API Value to(const Value& x, Device device);
// "Value(data=3, grad=0)"
PLUGRAD_API std::ostream& operator<<(std::ostream& out, const Value& value);

// A neuron: relu(w x + b), or linear. Weights start uniform in [-1, 1) by the device's generator (manual_seed), bias 0.
struct PLUGRAD_API Neuron {
  explicit Neuron(int64_t nin, bool nonlin = true, Device device = default_device());
  // Throws Error (invalid) unless x has as many values as there are weights.
  Value operator()(const std::vector<Value>& x) const;
  std::vector<Value> parameters() const;
  std::string text() const;  // "ReLUNeuron(2)"
  std::vector<Value> w;
  Value b;
  bool nonlin;
};

class LayerMatrix;

// Neurons side by side. It computes with one matrix product where all neurons have one width, kind and device: its results
// then come from its parameters and inputs at once, with the same gradients as neuron by neuron.
struct PLUGRAD_API Layer {
  Layer(int64_t nin, int64_t nout, bool nonlin = true, Device device = default_device());
  std::vector<Value> operator()(const std::vector<Value>& x) const;
  std::vector<Value> parameters() const;
  std::string text() const;
  std::vector<Neuron> neurons;

 private:
  friend struct MLP;
  Tensor matrix_product(const Tensor& x) const;
  std::shared_ptr<LayerMatrix> matrix_;  // shared by copies, whose Values are the same
};

// Layers of nouts neurons; all but the last are not linear.
struct PLUGRAD_API MLP {
  MLP(int64_t nin, const std::vector<int64_t>& nouts, Device device = default_device());
  std::vector<Value> operator()(const std::vector<Value>& x) const;
  std::vector<Value> parameters() const;
  void zero_grad();
  std::string text() const;  // "MLP of [Layer of [ReLUNeuron(2), ...], ...]"
  std::vector<Layer> layers;
};

}  // namespace plugrad
