// Value, a micrograd-style scalar: a rank-0 f64 tensor with a graph for inspection.
#pragma once
#include <plugrad/tensor/tensor.hpp>

#include <memory>
#include <string>
#include <vector>

namespace plugrad {

// A shared handle, as thread-safe as Tensor. Its graph keeps all operands, including constants, and the gradient of every
// intermediate. backward does not free the graph: each call adds to the gradients.
class PLUGRAD_API Value {
 public:
  Value(double data = 0, Device device = default_device());
  explicit Value(Tensor tensor) : tensor_(std::move(tensor)) {}

  double data() const { return tensor_.item<double>(); }
  void set_data(double data);
  double grad() const;  // 0 before any backward
  void set_grad(double grad);
  // Adds d(this)/d(v) to the gradient of every Value v in the graph of this Value, and 1 to its own gradient.
  void backward() const;

  std::string op() const { return tensor_.op_name(); }  // "+", "*", "**", "ReLU", "layer", ...; "" for a leaf
  std::vector<Value> previous() const;                  // the operands of its op
  std::string label() const;
  Value& set_label(const std::string& label);
  const Tensor& tensor() const { return tensor_; }
  // The object of a language binding for this value, shared by all its handles. The binding sets and clears it. Null at
  // first, and always null for a value computed while recording was off.
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
// A number becomes a constant on the other operand's device.
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
// Copies x to a device; returns x itself if it is already there. Gradients flow back.
PLUGRAD_API Value to(const Value& x, Device device);
// "Value(data=3, grad=0)"
PLUGRAD_API std::ostream& operator<<(std::ostream& out, const Value& value);

// A neuron: relu(w x + b), or w x + b if not nonlin. The device's generator draws w uniformly from [-1, 1); b starts at 0.
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

// Neurons side by side. If all have the same width, kind and device, the layer computes a matrix product: previous() of a
// result is then all parameters and inputs. The gradients are the same as neuron by neuron.
struct PLUGRAD_API Layer {
  Layer(int64_t nin, int64_t nout, bool nonlin = true, Device device = default_device());
  std::vector<Value> operator()(const std::vector<Value>& x) const;
  std::vector<Value> parameters() const;
  std::string text() const;
  std::vector<Neuron> neurons;

 private:
  friend struct MLP;
  Tensor matrix_product(const Tensor& x) const;
  std::shared_ptr<LayerMatrix> matrix_;  // copies share it, as they share the Values
};

// Layers of nouts[i] neurons. All but the last apply relu.
struct PLUGRAD_API MLP {
  MLP(int64_t nin, const std::vector<int64_t>& nouts, Device device = default_device());
  std::vector<Value> operator()(const std::vector<Value>& x) const;
  std::vector<Value> parameters() const;
  void zero_grad();
  std::string text() const;  // "MLP of [Layer of [ReLUNeuron(2), ...], ...]"
  std::vector<Layer> layers;
};

}  // namespace plugrad
