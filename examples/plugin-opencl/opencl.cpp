// A plugrad backend for OpenCL 1.2 devices: a kernel for each of some ops, and the SDK's loops on copies for the rest.
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <plugrad/sdk/driver.h>
#include <plugrad/sdk/queue.hpp>

#include <map>

namespace {

using plugrad::BackendError, plugrad::Call;

// Throws for a status of the driver. A lost device and a lack of memory have statuses of their own.
void check(cl_int status, const char* what) {
  if (status == CL_SUCCESS) return;
  if (status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_HOST_MEMORY || status == CL_INVALID_BUFFER_SIZE)
    throw std::bad_alloc();
  throw BackendError(status == CL_DEVICE_NOT_AVAILABLE ? PLUGRAD_DEVICE_LOST : PLUGRAD_DEVICE_ERROR,
                     std::string(what) + " returned the OpenCL status " + std::to_string(status));
}

cl_mem memory(plugrad_buffer* buffer) { return reinterpret_cast<cl_mem>(buffer); }

// --- Kernels. Operands are dense; an offset counts bytes.

struct Elementwise {
  uint32_t opcode;
  const char *name, *expression;  // of x, and of y where the op has two operands
};
constexpr Elementwise kElementwise[] = {{PLUGRAD_OP_NEG, "neg", "-x"},
                                        {PLUGRAD_OP_ABS, "absolute", "fabs(x)"},
                                        {PLUGRAD_OP_SQRT, "root", "sqrt(x)"},
                                        {PLUGRAD_OP_EXP, "exponential", "exp(x)"},
                                        {PLUGRAD_OP_LOG, "logarithm", "log(x)"},
                                        {PLUGRAD_OP_TANH, "tangent", "tanh(x)"},
                                        {PLUGRAD_OP_RELU, "relu", "x < 0 ? 0 : x"},
                                        {PLUGRAD_OP_ADD, "add", "x + y"},
                                        {PLUGRAD_OP_SUB, "sub", "x - y"},
                                        {PLUGRAD_OP_MUL, "mul", "x * y"},
                                        {PLUGRAD_OP_DIV, "quotient", "x / y"},
                                        {PLUGRAD_OP_RELU_BACKWARD, "relu_backward", "y <= 0 ? 0 : x"}};

constexpr const char* kProduct = R"(
#define TILE 16
kernel void product(global char* out, ulong to, global const char* left, ulong a_at, global const char* right, ulong b_at,
                    ulong m, ulong n, ulong k) {
  local float a_tile[TILE][TILE], b_tile[TILE][TILE];
  const ulong batch = get_group_id(2), row = get_global_id(1), column = get_global_id(0);
  const int i = get_local_id(1), j = get_local_id(0);
  global const float* a = (global const float*)(left + a_at) + batch * m * k;
  global const float* b = (global const float*)(right + b_at) + batch * k * n;
  float sum = 0;
  for (ulong at = 0; at < k; at += TILE) {
    a_tile[i][j] = row < m && at + j < k ? a[row * k + at + j] : 0;
    b_tile[i][j] = column < n && at + i < k ? b[(at + i) * n + column] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int l = 0; l < TILE; ++l) sum += a_tile[i][l] * b_tile[l][j];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (row < m && column < n) ((global float*)(out + to))[batch * m * n + row * n + column] = sum;
}
)";

std::string source() {
  std::string text = kProduct;
  for (const Elementwise& each : kElementwise) {
    const bool two = plugrad::op_info(each.opcode)->inputs == 2;
    text += std::string("kernel void ") + each.name + "(global char* out, ulong to, global const char* a, ulong a_at" +
            (two ? ", global const char* b, ulong b_at" : "") +
            ") {\n  const ulong i = get_global_id(0);\n  const float x = ((global const float*)(a + a_at))[i];\n" +
            (two ? "  const float y = ((global const float*)(b + b_at))[i];\n" : "") +
            "  ((global float*)(out + to))[i] = " + each.expression + ";\n}\n";
  }
  return text;
}

// --- The device: one context and one program for all queues.

struct Driver {
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_program program = nullptr;

  explicit Driver(cl_device_id id) : device(id) {
    cl_int status = CL_SUCCESS;
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
    check(status, "clCreateContext");
    const std::string text = source();
    const char* lines = text.c_str();
    program = clCreateProgramWithSource(context, 1, &lines, nullptr, &status);
    check(status, "clCreateProgramWithSource");
    const bool rounds = floats() & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    const char* const options = rounds ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt" : "-cl-std=CL1.2";
    check(clBuildProgram(program, 1, &device, options, nullptr, nullptr), "clBuildProgram");
  }

  // What the device's f32 can do.
  cl_device_fp_config floats() const {
    cl_device_fp_config config = 0;
    check(clGetDeviceInfo(device, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, nullptr), "clGetDeviceInfo");
    return config;
  }
};

class Queue final : public plugrad::DeviceQueue {
 public:
  explicit Queue(const Driver& driver) : driver_(driver) {
    cl_int status = CL_SUCCESS;
    queue_ = clCreateCommandQueue(driver.context, driver.device, 0, &status);
    check(status, "clCreateCommandQueue");
  }

  void write(plugrad_buffer* to, uint64_t offset, const void* from, uint64_t bytes) override {
    check(clEnqueueWriteBuffer(queue_, memory(to), CL_FALSE, offset, bytes, from, 0, nullptr, nullptr), "a write");
  }
  void read(void* to, plugrad_buffer* from, uint64_t offset, uint64_t bytes) override {
    check(clEnqueueReadBuffer(queue_, memory(from), CL_FALSE, offset, bytes, to, 0, nullptr, nullptr), "a read");
  }
  void copy(plugrad_buffer* to, uint64_t to_offset, plugrad_buffer* from, uint64_t from_offset, uint64_t bytes) override {
    check(clEnqueueCopyBuffer(queue_, memory(from), memory(to), from_offset, to_offset, bytes, 0, nullptr, nullptr),
          "a copy");
  }
  void finish() override { check(clFinish(queue_), "clFinish"); }

  // Starts a kernel on the operands of a call, followed by numbers. Kernel objects belong to a queue: their arguments are
  // set by one thread at a time.
  void launch(const char* name, const Call& call, std::initializer_list<uint64_t> numbers, cl_uint dimensions,
              const size_t* global, const size_t* local) {
    const cl_kernel kernel = kernel_named(name);
    cl_uint argument = 0;
    const auto set = [&](size_t size, const void* value) {
      check(clSetKernelArg(kernel, argument++, size, value), "clSetKernelArg");
    };
    for (int i = 0; i < call.op().outputs + call.op().inputs; ++i) {
      const plugrad_view& view = *call.op().views[i];
      const cl_mem buffer = memory(view.buffer);
      set(sizeof buffer, &buffer);
      set(sizeof view.offset, &view.offset);
    }
    for (const uint64_t number : numbers) set(sizeof number, &number);
    check(clEnqueueNDRangeKernel(queue_, kernel, dimensions, nullptr, global, local, 0, nullptr, nullptr), name);
  }

 private:
  cl_kernel kernel_named(const char* name) {
    cl_kernel& kernel = kernels_[name];
    cl_int status = CL_SUCCESS;
    if (!kernel) kernel = clCreateKernel(driver_.program, name, &status);
    check(status, "clCreateKernel");
    return kernel;
  }

  const Driver& driver_;
  cl_command_queue queue_ = nullptr;
  std::map<std::string, cl_kernel> kernels_;
};

void run_elementwise(const Call& call, Queue& queue) {
  const auto count = static_cast<size_t>(call.out().count);
  for (const Elementwise& each : kElementwise)
    if (each.opcode == call.op().opcode && count) queue.launch(each.name, call, {}, 1, &count, nullptr);
}

void multiply(const Call& call, Queue& queue) {
  constexpr size_t kTile = 16;
  const plugrad_view &out = call.out(), &left = call.in(0);
  const auto m = static_cast<uint64_t>(out.shape[out.rank - 2]), n = static_cast<uint64_t>(out.shape[out.rank - 1]);
  const auto k = static_cast<uint64_t>(left.shape[left.rank - 1]);
  if (!out.count) return;
  const size_t local[] = {kTile, kTile, 1};
  const size_t global[] = {(n + kTile - 1) / kTile * kTile, (m + kTile - 1) / kTile * kTile,
                           static_cast<uint64_t>(out.count) / (m * n)};
  queue.launch("product", call, {m, n, k}, 3, global, local);
}

constexpr auto kRows = [] {
  std::array<plugrad::KernelRow, std::size(kElementwise) + 1> rows{};
  for (size_t i = 0; i < std::size(kElementwise); ++i)
    rows[i] = plugrad::queued_kernel<run_elementwise>(kElementwise[i].opcode, PLUGRAD_F32, 0);
  rows.back() = plugrad::queued_kernel<multiply>(PLUGRAD_OP_MATMUL, PLUGRAD_F32, 0);
  return rows;
}();

// The devices of all platforms.
std::vector<cl_device_id> devices() {
  cl_uint platforms = 0;
  clGetPlatformIDs(0, nullptr, &platforms);
  std::vector<cl_platform_id> all(platforms);
  if (platforms) clGetPlatformIDs(platforms, all.data(), nullptr);
  std::vector<cl_device_id> found;
  for (const cl_platform_id platform : all) {
    cl_uint count = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || !count) continue;
    found.resize(found.size() + count);
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, found.data() + found.size() - count, nullptr);
  }
  return found;
}

class OpenCl final : public plugrad::QueuedBackend {
 public:
  explicit OpenCl(const plugrad::Opening& opening) : driver_(devices().at(opening.index)) { opening.options.allow({}); }

  static plugrad::DeviceCount count() {
    const auto found = static_cast<uint32_t>(devices().size());
    return {found, found ? "" : "no OpenCL driver has a device: install one, such as pocl-opencl-icd"};
  }

  // PoCL contains a compiler, which installs signal handlers.
  static const void* extension(std::string_view name) noexcept {
    static constexpr plugrad_driver driver{sizeof driver, PLUGRAD_DRIVER_SIGNALS};
    return name == PLUGRAD_DRIVER ? &driver : nullptr;
  }

  plugrad_device_info info() const override {
    char name[64] = {};
    clGetDeviceInfo(driver_.device, CL_DEVICE_NAME, sizeof name - 1, name, nullptr);
    plugrad_device_info known = queued_info(name, 128);
    if (!(driver_.floats() & CL_FP_DENORM)) known.capabilities |= PLUGRAD_FLUSHES_DENORMALS;
    return known;
  }
  plugrad::Rows kernels() const override { return rows_; }

  plugrad_buffer* alloc(uint64_t bytes) override {
    cl_int status = CL_SUCCESS;
    const cl_mem made = clCreateBuffer(driver_.context, CL_MEM_READ_WRITE, bytes, nullptr, &status);
    check(status, "clCreateBuffer");
    return reinterpret_cast<plugrad_buffer*>(made);
  }
  void free(plugrad_buffer* buffer) noexcept override { clReleaseMemObject(memory(buffer)); }
  std::unique_ptr<plugrad::DeviceQueue> make_queue(uint32_t) override { return std::make_unique<Queue>(driver_); }

 private:
  const Driver driver_;
  const std::vector<plugrad::KernelRow> rows_ = plugrad::staged_loops_after(kRows);
};

}  // namespace

PLUGRAD_EXPORT_BACKEND(OpenCl, "opencl", "0.1")
