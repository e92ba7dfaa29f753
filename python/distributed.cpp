// Groups of processes, for python/plugrad/distributed.py.
#include <plugrad/distributed/collectives.hpp>
#include <plugrad/distributed/data_parallel.hpp>
#include <plugrad/distributed/sync_batch_norm.hpp>
#include <plugrad/runtime/runtime.hpp>
#include <python/binding.hpp>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <chrono>
#include <optional>

namespace plugrad::python {
namespace {
namespace pd = plugrad::distributed;

// Each waits without the lock; tensors and groups are held by the copies.
pd::CollectiveOptions options_of(const nb::object& group, bool ordered) {
  pd::CollectiveOptions options;
  options.async_op = true;  // distributed.py waits, where the caller does
  if (!group.is_none()) options.group = nb::cast<pd::Group>(group);
  if (ordered) options.order = pd::Order::ordered;
  return options;
}

pd::ReduceOp op_of(int op) {
  if (op < 0 || op > static_cast<int>(pd::ReduceOp::average))
    throw Error(Code::invalid, "[distributed] a ReduceOp expected: SUM, MIN, MAX, PRODUCT or AVG");
  return static_cast<pd::ReduceOp>(op);
}

pd::Group init(const std::string& communicator, int rank, int size, const std::string& store, double seconds,
               const std::vector<std::pair<std::string, std::string>>& options) {
  pd::ProcessGroupOptions wanted;
  wanted.communicator = communicator;
  wanted.rank = rank;
  wanted.size = size;
  wanted.store = store;
  wanted.timeout = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  wanted.options = options;
  return unlocked([&] { return pd::init_process_group(wanted); });
}

bool is_same(const pd::Group& a, const nb::object& b) {
  return nb::isinstance<pd::Group>(b) && a == nb::cast<const pd::Group&>(b);
}

std::string text_of(const pd::Group& a) {
  return "ProcessGroup(rank " + std::to_string(a.rank()) + " of " + std::to_string(a.size()) + ", " + a.engine() + ")";
}

std::optional<pd::Group> new_group(const std::vector<int>& ranks) {
  pd::Group group = unlocked([&] { return pd::new_group(ranks); });
  return group.defined() ? std::optional(std::move(group)) : std::nullopt;
}

std::vector<std::string> names_of_communicators() {
  std::vector<std::string> names;
  for (const PluginRecord& each : communicators())
    if (each.stage == Stage::ready) names.push_back(each.name);
  return names;
}

void bind_groups(nb::module_& m) {
  nb::class_<pd::Group>(m, "_ProcessGroup",
                        "Some of the processes that train together. init_process_group() and new_group() make it.")
      .def("rank", &pd::Group::rank, "The rank of this process in the group.")
      .def("size", &pd::Group::size, "The number of processes.")
      .def_prop_ro("ranks", &pd::Group::ranks, "By ranks of this group: the ranks in the group of all processes.")
      .def_prop_ro("communicator", &pd::Group::communicator, "The name of the plugin: 'gloo'.")
      .def_prop_ro("engine", &pd::Group::engine, "The engine and its version: 'Gloo 0.5.0'.")
      .def("__eq__", &is_same)
      .def("__hash__", [](const pd::Group& a) { return std::hash<const void*>()(&a.state()); })
      .def("__repr__", &text_of);
  m.def("_init_process_group", &init, nb::arg("communicator"), nb::arg("rank"), nb::arg("size"), nb::arg("store"),
        nb::arg("seconds"), nb::arg("options"));
  m.def("_destroy_process_group", [] { unlocked([] { pd::destroy_process_group(); }); });
  m.def("_is_initialized", &pd::is_initialized);
  m.def("_is_launched", &pd::is_launched);
  m.def("_world", &pd::world);
  m.def("_communicators", &names_of_communicators);
  m.def("_new_group", &new_group, nb::arg("ranks"));
  m.def("_abort_process_group", [](const std::string& why) { unlocked([&] { pd::abort_process_group(why); }); });
}

bool wait(pd::Work& work) {
  unlocked([&] { work.wait(); });
  return true;
}

// --- Collectives start without the lock, because tensors of some devices are copied first.

pd::Work all_reduce(Tensor x, int op, const nb::object& group, bool ordered) {
  return unlocked([&, options = options_of(group, ordered)] { return pd::all_reduce(x, op_of(op), options); });
}
pd::Work reduce_scatter(Tensor out, Tensor in, int op, const nb::object& group, bool ordered) {
  return unlocked(
      [&, options = options_of(group, ordered)] { return pd::reduce_scatter_tensor(out, in, op_of(op), options); });
}
pd::Work all_gather(Tensor out, Tensor in, const nb::object& group) {
  return unlocked([&, options = options_of(group, false)] { return pd::all_gather_into_tensor(out, in, options); });
}
pd::Work broadcast(Tensor x, int source, const nb::object& group) {
  return unlocked([&, options = options_of(group, false)] { return pd::broadcast(x, source, options); });
}
pd::Work all_to_all(Tensor out, Tensor in, const std::vector<int64_t>& output_rows, const std::vector<int64_t>& input_rows,
                    const nb::object& group) {
  return unlocked(
      [&, options = options_of(group, false)] { return pd::all_to_all_single(out, in, output_rows, input_rows, options); });
}
pd::Work send(Tensor x, int destination, const nb::object& group) {
  return unlocked([&, options = options_of(group, false)] { return pd::send(x, destination, options); });
}
pd::Work recv(Tensor x, int source, const nb::object& group) {
  return unlocked([&, options = options_of(group, false)] { return pd::recv(x, source, options); });
}
pd::Work barrier(const nb::object& group) {
  return unlocked([&, options = options_of(group, false)] { return pd::barrier(options); });
}

Tensor sync_batch_norm(Tensor x, Tensor running_mean, Tensor running_var, Tensor weight, Tensor bias, double momentum,
                       double eps, const nb::object& group) {
  return unlocked([&, in = options_of(group, false).group] {
    return pd::sync_batch_norm(x, running_mean, running_var, weight, bias, momentum, eps, in);
  });
}

void make_data_parallel(pd::DataParallel* self, const std::vector<Tensor>& parameters, const std::vector<Tensor>& buffers,
                        const nb::object& group, int64_t bucket_bytes, int slices) {
  pd::DataParallelOptions options;
  if (!group.is_none()) options.group = nb::cast<pd::Group>(group);
  options.bucket_bytes = static_cast<uint64_t>(bucket_bytes);
  options.slices = slices;
  unlocked([&] { return new (self) pd::DataParallel(parameters, buffers, options); });
}

// For nn.parallel.DistributedDataParallel.
void bind_data_parallel(nb::module_& m) {
  nb::class_<pd::DataParallel>(m, "_DataParallel", "Makes gradients the mean over processes.")
      .def("__init__", &make_data_parallel, nb::arg("parameters"), nb::arg("buffers"), nb::arg("group").none(),
           nb::arg("bucket_bytes"), nb::arg("slices"))
      .def("set_weight", &pd::DataParallel::set_weight)
      .def("passes", &pd::DataParallel::passes)
      .def("rank", &pd::DataParallel::rank)
      .def("size", &pd::DataParallel::size)
      .def("sum_over_ranks",
           [](const pd::DataParallel& it, const std::vector<double>& numbers) {
             return unlocked([&] { return it.sum_over_ranks(numbers); });
           })
      .def("pass_without_data", [](pd::DataParallel& it) { unlocked([&] { it.pass_without_data(); }); })
      .def("step_without_data", [](pd::DataParallel& it) { return unlocked([&] { return it.step_without_data(); }); })
      .def("set_synchronizing", &pd::DataParallel::set_synchronizing)
      .def("synchronizing", &pd::DataParallel::synchronizing)
      .def("broadcast_buffers", [](pd::DataParallel& it) { unlocked([&] { it.broadcast_buffers(); }); })
      .def("early", [](const pd::DataParallel& it) { return it.figures().early; })
      .def("buckets", [](const pd::DataParallel& it) { return it.figures().buckets; });
}
}  // namespace

void bind_distributed(nb::module_& m) {
  bind_groups(m);
  bind_data_parallel(m);
  nb::class_<pd::Work>(m, "_Work", "A started collective. The memory of its tensors belongs to it until wait() returns.")
      .def("wait", &wait,
           "Waits for the end, and returns True. Raises ConnectionError if a rank is lost, and TimeoutError if a rank does "
           "not come in time; the message names the rank where it is known.")
      .def("is_completed", &pd::Work::is_completed, "Whether wait() would return at once.");
  const auto group = nb::arg("group").none();
  m.def("_all_reduce", &all_reduce, nb::arg("x"), nb::arg("op"), group, nb::arg("ordered"));
  m.def("_reduce_scatter", &reduce_scatter, nb::arg("out"), nb::arg("x"), nb::arg("op"), group, nb::arg("ordered"));
  m.def("_all_gather", &all_gather, nb::arg("out"), nb::arg("x"), group);
  m.def("_broadcast", &broadcast, nb::arg("x"), nb::arg("source"), group);
  m.def("_all_to_all", &all_to_all, nb::arg("out"), nb::arg("x"), nb::arg("output_rows"), nb::arg("input_rows"), group);
  m.def("_send", &send, nb::arg("x"), nb::arg("destination"), group);
  m.def("_recv", &recv, nb::arg("x"), nb::arg("source"), group);
  m.def("_barrier", &barrier, group);
  m.def("_sync_batch_norm", &sync_batch_norm, nb::arg("x"), nb::arg("running_mean").none(), nb::arg("running_var").none(),
        nb::arg("weight").none(), nb::arg("bias").none(), nb::arg("momentum"), nb::arg("eps"), group);
}

}  // namespace plugrad::python
