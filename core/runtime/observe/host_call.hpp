// Work of the host in the middle of a step, such as an exchange with other processes.
#pragma once
#include <plugrad/sdk/abi.h>
#include <core/runtime/memory/storage.hpp>

#include <string>

namespace plugrad::observe {

// A replay of the step runs it again, between the same ops, with the memory that its operands have in that replay.
class HostCall {
 public:
  HostCall() = default;
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;
  virtual ~HostCall() = default;
  // op: views of the outputs, then of the inputs; storages: of these. Ops that it calls belong to it, and not to the step.
  virtual void run(const plugrad_op& op, Storage* const* storages) = 0;
  // "all_reduce of 1024 f32, start"
  virtual std::string text() const = 0;
  // Whether it does more than to write its outputs: other processes may take part, for example.
  virtual bool has_effects() const { return true; }
  // Whether its outputs are written after run(), until a later call of the step.
  virtual bool is_in_flight() const { return false; }
  // After the recorded run: why no replay can repeat it. Empty if a replay can.
  virtual std::string flaw() const { return {}; }
};

}  // namespace plugrad::observe
