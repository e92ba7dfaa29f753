// Checkpoints: what recorded ops saved is dropped, and restored by running a function again.
//
// A Frame stands for one call of checkpoint. While its function runs for the first time, the frame lists the recorded nodes
// and the checkpoints inside. Afterwards it takes their saved values away, and gives each of them a Place: the frame and a
// number. The function runs again when a pass needs the first of these values. The nodes that this run records stand in the
// same order, so the frame keeps their saved values by number, until each node fetches its own.
#pragma once
#include <core/autograd/node.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace plugrad {

class Frame;

// What was saved at one place, and the versions of the storages then.
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

// Lists a node that was just recorded in the thread's innermost checkpoint.
void list_in_checkpoint(Node& node, std::span<const Tensor* const> operands);
// Gives a stripped node its saved values back.
void restore(Node& node);

}  // namespace plugrad
