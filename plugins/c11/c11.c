// A backend plugin in plain C that includes only abi.h of the SDK: host memory, f32, and the ops for training an MLP.
// It proves that the contract needs no C++, and shows a plugin without backend.hpp.
#include <plugrad/sdk/abi.h>

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WALKED = 4, MEMORY = PLUGRAD_ALL_LAYOUTS & ~PLUGRAD_IMMEDIATE };

// --- Walking: the elements of several operands, index by index in row-major order, whatever their layouts.

typedef union Number {
  float f32;
  int64_t i64;
  uint8_t boolean;
} Number;

typedef struct Walk {
  const plugrad_view* shape;
  int operands;
  char* at[MAX_WALKED];                         // the current element of each operand
  int64_t steps[MAX_WALKED][PLUGRAD_MAX_RANK];  // bytes to the next along each axis
  Number numbers[MAX_WALKED];                   // the values of immediates
  int64_t index[PLUGRAD_MAX_RANK];
} Walk;

static int64_t element_size(uint8_t dtype) { return dtype == PLUGRAD_F32 ? 4 : dtype == PLUGRAD_I64 ? 8 : 1; }

static char* address(const plugrad_view* view) { return (char*)view->buffer + view->offset; }

static Number number_of(const plugrad_view* immediate) {
  Number number = {.i64 = 0};
  if (immediate->dtype == PLUGRAD_F32) {
    double value;
    memcpy(&value, &immediate->offset, sizeof value);
    number.f32 = (float)value;
  } else if (immediate->dtype == PLUGRAD_I64) {
    number.i64 = (int64_t)immediate->offset;
  } else {
    number.boolean = immediate->offset != 0;
  }
  return number;
}

// The cursor of a single-element operand does not move: its strides may be unspecified.
static void walk_add(Walk* walk, const plugrad_view* view) {
  const int i = walk->operands++;
  const bool immediate = view->layout & PLUGRAD_IMMEDIATE;
  if (immediate) walk->numbers[i] = number_of(view);
  walk->at[i] = immediate ? (char*)&walk->numbers[i] : address(view);
  for (int axis = 0; axis < walk->shape->rank; ++axis)
    walk->steps[i][axis] = view->count > 1 ? view->strides[axis] * element_size(view->dtype) : 0;
}

static void walk_begin(Walk* walk, const plugrad_view* shape, const plugrad_op* op) {
  memset(walk, 0, sizeof *walk);
  walk->shape = shape;
  for (int i = 0; i < op->outputs + op->inputs; ++i) walk_add(walk, op->views[i]);
}

// Goes to the next index; false after the last.
static bool walk_next(Walk* walk) {
  for (int axis = walk->shape->rank - 1; axis >= 0; --axis) {
    const int64_t extent = walk->shape->shape[axis];
    const bool through = ++walk->index[axis] == extent;
    for (int i = 0; i < walk->operands; ++i) walk->at[i] += walk->steps[i][axis] * (through ? 1 - extent : 1);
    if (!through) return true;
    walk->index[axis] = 0;
  }
  return false;
}

static float f32_at(const char* element) { return *(const float*)element; }
static float* f32_of(char* element) { return (float*)element; }

// --- The device and its kernels.

typedef float (*Function)(float a, float b);  // unary functions ignore b

typedef struct Row {
  uint32_t opcode;
  uint32_t flags;
  uint16_t layouts;
  uint8_t dtypes[MAX_WALKED];  // outputs, then inputs; 0 beyond
  plugrad_status (*run)(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op);
  Function function;
} Row;

typedef struct Kernel {
  plugrad_kernel base;  // first: run casts the host's pointer to a Kernel*
  const plugrad_host* host;
  const Row* row;
} Kernel;

static Function function_of(const plugrad_kernel* kernel) { return ((const Kernel*)kernel)->row->function; }

static plugrad_status index_error(const plugrad_kernel* kernel, const char* op, int64_t index, int64_t extent) {
  const plugrad_host* host = ((const Kernel*)kernel)->host;
  char message[128];
  snprintf(message, sizeof message, "[%s] index %lld is out of range for an axis of extent %lld", op, (long long)index,
           (long long)extent);
  host->report(host, PLUGRAD_INDEX_ERROR, message);
  return PLUGRAD_INDEX_ERROR;
}

// --- Elementwise kernels.

static float negate(float a, float b) { return (void)b, -a; }
static float root(float a, float b) { return (void)b, sqrtf(a); }
static float exponential(float a, float b) { return (void)b, expf(a); }
static float logarithm(float a, float b) { return (void)b, logf(a); }
static float relu(float a, float b) { return (void)b, a < 0 ? 0 : a; }
static float add(float a, float b) { return a + b; }
static float subtract(float a, float b) { return a - b; }
static float multiply(float a, float b) { return a * b; }
static float divide(float a, float b) { return a / b; }
static float maximum(float a, float b) { return isnan(a) || a > b ? a : b; }
static float relu_backward(float grad, float x) { return x <= 0 ? 0 : grad; }
static float equal(float a, float b) { return a == b; }
static float less(float a, float b) { return a < b; }
static float less_equal(float a, float b) { return a <= b; }
static float truth(float a, float b) { return (void)b, a != 0; }

// Functions of one or two operands.
static plugrad_status run_function(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op) {
  (void)stream;
  const Function function = function_of(kernel);
  Walk walk;
  walk_begin(&walk, op->views[0], op);
  do *f32_of(walk.at[0]) = function(f32_at(walk.at[1]), op->inputs > 1 ? f32_at(walk.at[2]) : 0);
  while (walk_next(&walk));
  return PLUGRAD_OK;
}

// The same with a bool result: comparisons, and the cast to bool.
static plugrad_status run_predicate(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op) {
  (void)stream;
  const Function function = function_of(kernel);
  Walk walk;
  walk_begin(&walk, op->views[0], op);
  do *(uint8_t*)walk.at[0] = function(f32_at(walk.at[1]), op->inputs > 1 ? f32_at(walk.at[2]) : 0) != 0;
  while (walk_next(&walk));
  return PLUGRAD_OK;
}

static plugrad_status run_where(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op) {
  (void)kernel, (void)stream;
  Walk walk;
  walk_begin(&walk, op->views[0], op);
  do *f32_of(walk.at[0]) = f32_at(*walk.at[1] ? walk.at[2] : walk.at[3]);
  while (walk_next(&walk));
  return PLUGRAD_OK;
}

// FILL and COPY move bytes, so the payload of a NaN is preserved.
static plugrad_status run_copy(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op) {
  (void)kernel, (void)stream;
  const size_t size = (size_t)element_size(op->views[0]->dtype);
  Walk walk;
  walk_begin(&walk, op->views[0], op);
  do memmove(walk.at[0], walk.at[1], size);  // not memcpy: the output may be the input
  while (walk_next(&walk));
  return PLUGRAD_OK;
}

static plugrad_status run_cast(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op) {
  (void)kernel, (void)stream;
  const bool from_i64 = op->views[1]->dtype == PLUGRAD_I64;
  Walk walk;
  walk_begin(&walk, op->views[0], op);
  do *f32_of(walk.at[0]) = from_i64 ? (float)*(const int64_t*)walk.at[1] : (float)*(const uint8_t*)walk.at[1];
  while (walk_next(&walk));
  return PLUGRAD_OK;
}

// --- Reductions. A walk over the output's shape does not move along the reduced axes, where its extent is 1: it visits the
// first element of each slice, and a second walk, over the reduced axes alone, visits the elements of the slice.

static plugrad_view reduced_axes(const plugrad_op* op) {
  plugrad_view shape = *op->views[1];
  for (int axis = 0; axis < shape.rank; ++axis)
    if (op->views[0]->shape[axis] != 1) shape.shape[axis] = 1;
  return shape;
}

static void walk_slice(Walk* slice, const Walk* outer, const plugrad_view* axes) {
  memset(slice, 0, sizeof *slice);
  slice->shape = axes;
  slice->operands = 1;
  slice->at[0] = outer->at[1];
  memcpy(slice->steps[0], outer->steps[1], sizeof slice->steps[0]);
}

static plugrad_status run_sum(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op) {
  (void)kernel, (void)stream;
  const plugrad_view axes = reduced_axes(op);
  Walk walk, slice;
  walk_begin(&walk, op->views[0], op);
  do {
    double sum = op->flags & PLUGRAD_ACCUMULATE ? f32_at(walk.at[0]) : 0;
    walk_slice(&slice, &walk, &axes);
    do sum += f32_at(slice.at[0]);
    while (walk_next(&slice));
    *f32_of(walk.at[0]) = (float)sum;
  } while (walk_next(&walk));
  return PLUGRAD_OK;
}

static plugrad_status run_max(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op) {
  (void)kernel, (void)stream;
  const plugrad_view axes = reduced_axes(op);
  Walk walk, slice;
  walk_begin(&walk, op->views[0], op);
  do {
    float largest = f32_at(walk.at[1]);
    walk_slice(&slice, &walk, &axes);
    while (walk_next(&slice)) largest = maximum(largest, f32_at(slice.at[0]));
    *f32_of(walk.at[0]) = largest;
  } while (walk_next(&walk));
  return PLUGRAD_OK;
}

// --- Matrix product: the cursor of a stays while the walk moves along a row of the output, b's cursor along a column.

static plugrad_status run_matmul(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op) {
  (void)kernel, (void)stream;
  const int column = op->views[0]->rank - 1, row = column - 1;
  const int64_t length = op->views[1]->shape[column];
  Walk walk;
  walk_begin(&walk, op->views[0], op);
  const int64_t a_step = walk.steps[1][column], b_step = walk.steps[2][row];
  walk.steps[1][column] = walk.steps[2][row] = 0;
  do {
    double sum = op->flags & PLUGRAD_ACCUMULATE ? f32_at(walk.at[0]) : 0;
    for (int64_t k = 0; k < length; ++k)
      sum += (double)f32_at(walk.at[1] + k * a_step) * (double)f32_at(walk.at[2] + k * b_step);
    *f32_of(walk.at[0]) = (float)sum;
  } while (walk_next(&walk));
  return PLUGRAD_OK;
}

// --- Indexing: the cursor of the indexed operand does not move along the axis; the index gives the offset from it.

static plugrad_status run_gather(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op) {
  (void)stream;
  const int axis = ((const plugrad_axis*)op->attributes)->axis;
  const int64_t extent = op->views[1]->shape[axis];
  Walk walk;
  walk_begin(&walk, op->views[0], op);
  const int64_t step = walk.steps[1][axis];
  walk.steps[1][axis] = 0;
  do {
    const int64_t index = *(const int64_t*)walk.at[2];
    if (index < 0 || index >= extent) return index_error(kernel, "gather", index, extent);
    *f32_of(walk.at[0]) = f32_at(walk.at[1] + index * step);
  } while (walk_next(&walk));
  return PLUGRAD_OK;
}

static plugrad_status run_scatter_add(const plugrad_kernel* kernel, plugrad_stream* stream, const plugrad_op* op) {
  (void)stream;
  const int axis = ((const plugrad_axis*)op->attributes)->axis;
  const int64_t extent = op->views[0]->shape[axis];
  Walk walk;
  walk_begin(&walk, op->views[1], op);
  const int64_t step = walk.steps[0][axis];
  walk.steps[0][axis] = 0;
  do {
    const int64_t index = *(const int64_t*)walk.at[1];
    if (index < 0 || index >= extent) return index_error(kernel, "scatter_add", index, extent);
    *f32_of(walk.at[0] + index * step) += f32_at(walk.at[2]);
  } while (walk_next(&walk));
  return PLUGRAD_OK;
}

// --- The table of kernels.

enum { F = PLUGRAD_F32, I = PLUGRAD_I64, B = PLUGRAD_BOOL, PLAIN = PLUGRAD_DETERMINISTIC | PLUGRAD_TF32 };

static const Row kRows[] = {
    {PLUGRAD_OP_FILL, PLAIN, PLUGRAD_ALL_LAYOUTS, {F, F}, run_copy, NULL},
    {PLUGRAD_OP_FILL, PLAIN, PLUGRAD_ALL_LAYOUTS, {I, I}, run_copy, NULL},
    {PLUGRAD_OP_FILL, PLAIN, PLUGRAD_ALL_LAYOUTS, {B, B}, run_copy, NULL},
    {PLUGRAD_OP_COPY, PLAIN, PLUGRAD_ALL_LAYOUTS, {F, F}, run_copy, NULL},
    {PLUGRAD_OP_COPY, PLAIN, PLUGRAD_ALL_LAYOUTS, {I, I}, run_copy, NULL},
    {PLUGRAD_OP_COPY, PLAIN, PLUGRAD_ALL_LAYOUTS, {B, B}, run_copy, NULL},
    {PLUGRAD_OP_CAST, PLAIN, PLUGRAD_ALL_LAYOUTS, {F, B}, run_cast, NULL},
    {PLUGRAD_OP_CAST, PLAIN, PLUGRAD_ALL_LAYOUTS, {F, I}, run_cast, NULL},
    {PLUGRAD_OP_CAST, PLAIN, PLUGRAD_ALL_LAYOUTS, {B, F}, run_predicate, truth},
    {PLUGRAD_OP_NEG, PLAIN, PLUGRAD_ALL_LAYOUTS, {F, F}, run_function, negate},
    {PLUGRAD_OP_SQRT, PLAIN, PLUGRAD_ALL_LAYOUTS, {F, F}, run_function, root},
    {PLUGRAD_OP_EXP, PLAIN, PLUGRAD_ALL_LAYOUTS, {F, F}, run_function, exponential},
    {PLUGRAD_OP_LOG, PLAIN, PLUGRAD_ALL_LAYOUTS, {F, F}, run_function, logarithm},
    {PLUGRAD_OP_RELU, PLAIN, PLUGRAD_ALL_LAYOUTS, {F, F}, run_function, relu},
    {PLUGRAD_OP_ADD, PLAIN, PLUGRAD_ALL_LAYOUTS, {F, F, F}, run_function, add},
    {PLUGRAD_OP_SUB, PLAIN, PLUGRAD_ALL_LAYOUTS, {F, F, F}, run_function, subtract},
    {PLUGRAD_OP_MUL, PLAIN, PLUGRAD_ALL_LAYOUTS, {F, F, F}, run_function, multiply},
    {PLUGRAD_OP_DIV, PLAIN, PLUGRAD_ALL_LAYOUTS, {F, F, F}, run_function, divide},
    {PLUGRAD_OP_MAXIMUM, PLAIN, PLUGRAD_ALL_LAYOUTS, {F, F, F}, run_function, maximum},
    {PLUGRAD_OP_RELU_BACKWARD, PLAIN, PLUGRAD_ALL_LAYOUTS, {F, F, F}, run_function, relu_backward},
    {PLUGRAD_OP_EQ, PLAIN, PLUGRAD_ALL_LAYOUTS, {B, F, F}, run_predicate, equal},
    {PLUGRAD_OP_LT, PLAIN, PLUGRAD_ALL_LAYOUTS, {B, F, F}, run_predicate, less},
    {PLUGRAD_OP_LE, PLAIN, PLUGRAD_ALL_LAYOUTS, {B, F, F}, run_predicate, less_equal},
    {PLUGRAD_OP_WHERE, PLAIN, PLUGRAD_ALL_LAYOUTS, {F, B, F, F}, run_where, NULL},
    {PLUGRAD_OP_SUM, PLAIN | PLUGRAD_ACCUMULATE, MEMORY, {F, F}, run_sum, NULL},
    {PLUGRAD_OP_MAX, PLAIN, MEMORY, {F, F}, run_max, NULL},
    {PLUGRAD_OP_MATMUL, PLAIN | PLUGRAD_ACCUMULATE, MEMORY, {F, F, F}, run_matmul, NULL},
    {PLUGRAD_OP_GATHER, PLAIN, MEMORY, {F, F, I}, run_gather, NULL},
    {PLUGRAD_OP_SCATTER_ADD, PLAIN, MEMORY, {F, I, F}, run_scatter_add, NULL},
};
enum { ROWS = sizeof kRows / sizeof kRows[0] };

typedef struct Device {  // plugrad_device* points to it
  Kernel kernels[ROWS];
} Device;

static bool serves(const Row* row, const plugrad_signature* wanted) {
  if (row->opcode != wanted->opcode || (wanted->layout & ~row->layouts) || (wanted->flags & ~row->flags)) return false;
  int operands = 0;
  while (operands < MAX_WALKED && row->dtypes[operands]) ++operands;
  if (wanted->outputs != 1 || wanted->outputs + wanted->inputs != operands) return false;
  return memcmp(row->dtypes, wanted->dtypes, (size_t)operands) == 0;
}

static const plugrad_kernel* resolve(plugrad_device* device, const plugrad_signature* wanted) {
  for (int i = 0; i < ROWS; ++i)
    if (serves(&kRows[i], wanted)) return &((Device*)device)->kernels[i].base;
  return NULL;
}

// --- Opening.

static plugrad_status count_devices(const plugrad_host* host, uint32_t* devices) {
  (void)host;
  *devices = 1;
  return PLUGRAD_OK;
}

static plugrad_status refuse(const plugrad_host* host, plugrad_status status, const char* message) {
  host->report(host, status, message);
  return status;
}

static void describe(plugrad_device_info* info) {
  plugrad_device_info known = {.capabilities = PLUGRAD_HOST_MEM, .alignment = 64, .dlpack_type = 1, .numa_node = -1};
  strcpy(known.name, "host memory, in C11");
  known.struct_size = info->struct_size < sizeof known ? info->struct_size : (uint32_t)sizeof known;
  memcpy(info, &known, known.struct_size);
}

static plugrad_status open_device(const plugrad_host* host, uint32_t index, const plugrad_options* options,
                                  plugrad_device** out, plugrad_device_info* info) {
  char message[160];
  if (index > 0) {
    snprintf(message, sizeof message, "device %u does not exist: the only device is 0", (unsigned)index);
    return refuse(host, PLUGRAD_INVALID, message);
  }
  if (options && options->count) {
    snprintf(message, sizeof message, "unknown option '%.100s'; known: none", options->items->key);
    return refuse(host, PLUGRAD_INVALID, message);
  }
  Device* device = calloc(1, sizeof *device);
  if (!device) return refuse(host, PLUGRAD_OUT_OF_MEMORY, "no memory for the device's table of kernels");
  for (int i = 0; i < ROWS; ++i)
    device->kernels[i] = (Kernel){{sizeof(plugrad_kernel), 0, kRows[i].run, NULL}, host, &kRows[i]};
  describe(info);
  *out = (plugrad_device*)device;
  return PLUGRAD_OK;
}

PLUGRAD_EXPORT const plugrad_backend* plugrad_backend_v0(const plugrad_host* host) {
  (void)host;
  static const plugrad_backend backend = {.struct_size = sizeof(plugrad_backend),
                                          .revision = PLUGRAD_REVISION,
                                          .layouts = plugrad_layouts,
                                          .name = "c11",
                                          .version = "0.1.0",
                                          .count = count_devices,
                                          .open = open_device,
                                          .resolve = resolve};
  return &backend;
}
