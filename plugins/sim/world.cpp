#include <plugins/sim/world.hpp>

namespace plugrad::sim {

World& world() {
  static World& only = *new World;
  return only;
}

}  // namespace plugrad::sim
