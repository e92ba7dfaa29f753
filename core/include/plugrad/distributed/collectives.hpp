// Collectives: what the ranks of a group do with tensors together. No collective is recorded for gradients.
#pragma once
#include <plugrad/distributed/process_group.hpp>
#include <plugrad/tensor/tensor.hpp>

#include <memory>
#include <vector>

namespace plugrad::distributed {

enum class ReduceOp { sum, min, max, product, average };

// How a reduction adds. engine: as the engine does, which is fastest. ordered: as a binary tree over the ranks, by the core:
// the bits depend neither on the engine nor on how many elements one call reduces, and f16 and bf16 are added in f32 and
// rounded once. automatic: ordered under set_deterministic(true), else engine.
enum class Order { automatic, engine, ordered };

struct WorkState;

// A started collective. The memory of its tensors belongs to it until wait() returns: do not read or write it before.
class PLUGRAD_API Work {
 public:
  Work() = default;  // has ended
  explicit Work(std::shared_ptr<WorkState> state) : state_(std::move(state)) {}
  // Waits for the end, and stores results on devices whose memory the engine cannot reach. Throws Error (peer_lost) if a
  // rank is lost, and Error (timed_out) if a rank does not come in time; the message names the rank where it is known. The
  // group cannot be used after that.
  void wait();
  // Whether wait() would return at once. Always false before wait() for sends and receives of an engine that cannot tell.
  // Throws Error (invalid) in a compiled step.
  bool is_completed() const;

 private:
  std::shared_ptr<WorkState> state_;
};

struct CollectiveOptions {
  Group group = {};       // undefined: all ranks
  bool async_op = false;  // returns at once; else the returned work has ended
  Order order = Order::automatic;
};

// Each function throws Error (invalid) for tensors that are undefined, differ in dtype, do not fit in size, or require a
// gradient and would be written. Tensors may be on any device, and need not be dense. Ranks in `source` and `destination`
// are those of the group of all ranks. In a compiled step each replay starts the collectives and waits for them as the
// function did. A function must wait for each collective that it starts.
//
// The works of all groups start in the order of the calls, and one collective runs after another, so all ranks need one
// order of all their works: a message that is sent behind a collective leaves when the collective has ended.

// Reduces x over all ranks, in place. average: of floating dtypes.
PLUGRAD_API Work all_reduce(const Tensor& x, ReduceOp op = ReduceOp::sum, const CollectiveOptions& options = {});
// Reduces `input`, of size times as many elements as `output`; block r of the result becomes the output of rank r.
PLUGRAD_API Work reduce_scatter_tensor(const Tensor& output, const Tensor& input, ReduceOp op = ReduceOp::sum,
                                       const CollectiveOptions& options = {});
// Joins the inputs of all ranks in the order of ranks; `output` has size times as many elements as `input`.
PLUGRAD_API Work all_gather_into_tensor(const Tensor& output, const Tensor& input, const CollectiveOptions& options = {});
// Overwrites x by the x of rank `source`.
PLUGRAD_API Work broadcast(const Tensor& x, int source, const CollectiveOptions& options = {});
// Sends block r of `input` to rank r; block r of `output` is of rank r. The blocks are parts of the first axis: equal parts,
// or of the given numbers of rows, one for each rank.
PLUGRAD_API Work all_to_all_single(const Tensor& output, const Tensor& input, const std::vector<int64_t>& output_rows = {},
                                   const std::vector<int64_t>& input_rows = {}, const CollectiveOptions& options = {});
// Sends x to one rank, and receives x of one rank. Sends and receives of a pair match in their order.
PLUGRAD_API Work send(const Tensor& x, int destination, const CollectiveOptions& options = {});
PLUGRAD_API Work recv(const Tensor& x, int source, const CollectiveOptions& options = {});
// Waits until all ranks have called it.
PLUGRAD_API Work barrier(const CollectiveOptions& options = {});

}  // namespace plugrad::distributed
