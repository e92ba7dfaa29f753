// Ops whose elements depend on their place alone, and the steps of optimisers.
#include <backends/vulkan/grid.hpp>

#include <cmath>

namespace plugrad::vulkan {
namespace {

// The output is dense, and cut into lines: a shader needs the row-major index of its elements.
template <class Complete> void submit_line(const Call& call, Complete complete) {
  auto& stream = call.stream<VulkanStream>();
  stream.demand_sound();
  const VkPipeline pipeline = call.own<Recipe>().of(0);
  const plugrad_view& out = call.out();
  VulkanStream::Recording recording(stream, call.op().number);
  for (int64_t first = 0; first < out.count; first += kSpan) {
    plugrad_view part = out;
    part.rank = 1;
    part.shape[0] = part.count = std::min(kSpan, out.count - first);
    part.strides[0] = 1;
    part.offset += static_cast<uint64_t>(first) * element_size(out.dtype);
    const plugrad_view* const views[] = {&part, &call.in(0), &call.in(1)};
    Grid grid = grid_of(Box(views, 1));
    for (int k = 1; k < 3; ++k) {
      const Box::Operand input(*views[k]);
      grid.base[k] = reinterpret_cast<uint64_t>(input.base);
      grid.value[k] = input.value;
    }
    grid.value[3] = static_cast<uint64_t>(first);
    complete(grid);
    recording.dispatch(pipeline, grid, groups_for(grid.count));
  }
  recording.finish();
}

// Start and step as they are, in 8 bytes, and as pairs of floats.
void iota(const Call& call) {
  submit_line(call, [&](Grid& grid) {
    for (int i = 0; i < 2; ++i) {
      const uint64_t bits = grid.value[1 + i] = call.in(i).offset;
      if (!is_floating(call.out().dtype)) continue;
      const double value = __builtin_bit_cast(double, bits);
      grid.number[2 * i] = static_cast<float>(value);
      const double rest = value - static_cast<double>(grid.number[2 * i]);
      grid.number[2 * i + 1] = std::isfinite(rest) ? static_cast<float>(rest) : 0;
    }
  });
}

void draw(const Call& call) {
  submit_line(call, [](Grid&) {});
}

void step_descent(const Call& call) {
  submit_box(call, Box(call.op().views, 3), 0, [](Grid&) {});
}

void step_sgd(const Call& call) {
  const auto& a = call.attributes<plugrad_sgd>();
  submit_box(call, Box(call.op().views, 4), 0, [&](Grid& grid) {
    grid.number[0] = static_cast<float>(a.momentum);
    grid.number[1] = static_cast<float>(a.weight_decay);
    grid.flags = a.nesterov;
  });
}

void step_adam(const Call& call) {
  const auto& a = call.attributes<plugrad_adam>();
  const double numbers[] = {a.beta1, a.beta2, a.epsilon, a.weight_decay, 1 - a.beta1, 1 - a.beta2};
  submit_box(call, Box(call.op().views, 7), 0, [&](Grid& grid) {
    std::transform(std::begin(numbers), std::end(numbers), grid.number, [](double x) { return static_cast<float>(x); });
    grid.flags = a.decoupled;
  });
}

constexpr uint16_t kDense = PLUGRAD_IMMEDIATE | PLUGRAD_UNALIGNED | PLUGRAD_WIDE_INDEX;

}  // namespace

void add_generator_rows(RowList& list, const Abilities& abilities) {
  for (const uint8_t dtype : number_dtypes(abilities)) {
    const bool in_double = dtype == PLUGRAD_F32 && abilities.f64;
    list.add(kernel<iota>(PLUGRAD_OP_IOTA, dtype, kDense), "iota" + suffix_of(dtype) + (in_double ? "_by_f64" : ""));
  }
  for (const uint32_t op : {PLUGRAD_OP_UNIFORM, PLUGRAD_OP_NORMAL})
    list.add(kernel<draw>(op, PLUGRAD_F32, kDense), "random");
}

void add_update_rows(RowList& list) {
  list.add(kernel<step_descent>(PLUGRAD_OP_DESCENT_STEP, PLUGRAD_F32), "update");
  list.add(kernel<step_sgd>(PLUGRAD_OP_SGD_STEP, PLUGRAD_F32), "update");
  list.add(kernel<step_adam>(PLUGRAD_OP_ADAM_STEP, PLUGRAD_F32), "update");
}

}  // namespace plugrad::vulkan
