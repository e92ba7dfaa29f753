// Checkpoints: the saved values of recorded ops are dropped, and restored by running a function again.
//
// A Frame stands for one call of checkpoint. During the first run of its function, the frame lists the recorded nodes and
// the checkpoints inside. Afterwards it takes their saved values away, and gives each node or checkpoint a Place: the frame
// and a number. The function runs again when a pass needs the first of these values. The second run records its nodes in the
// same order, so the frame keeps their saved values by number, until each node fetches its own values.
#pragma once
#include <core/autograd/node.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace plugrad {

class Frame;

// The saved values of a place, and the versions of their storages then.
struct Kept {
  std::vector<Tensor> values;
  std::vector<uint32_t> versions;
};

struct Place {
  Place(std::shared_ptr<Frame> in, size_t number);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  std::shared_ptr<Frame> frame;
  size_t index;
};

// Lists a newly recorded node in the thread's innermost checkpoint.
void list_in_checkpoint(Node& node, std::span<const Tensor* const> operands);
// Gives a stripped node its saved values back.
void restore(Node& node);

}  // namespace plugrad
