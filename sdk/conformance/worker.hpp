// The half of plugrad-conform that loads the plugin. Usually it runs in a process of its own, which a supervisor starts.
#pragma once
#include <sdk/conformance/result.hpp>

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>

namespace plugrad::conformance {

// A plugin whose device is open. tell gets messages: first one of unusable, breach, no_device and device, then what happens
// while cases run.
class Worker {
 public:
  using Tell = std::function<void(const Message&)>;
  Worker(const std::string& file, const Settings& settings, Tell tell);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Whether there is a device to check.
  bool is_ready() const { return session_ != nullptr; }
  // Runs a case and tells its result.
  void run(const Case& one);
  void tell_missing();
  // Tells what a function writes: write_kernels or write_perf.
  void tell(void (*write)(std::ostream& out, Session& session));

 private:
  void load(const std::string& file);

  const Settings settings_;
  const Tell tell_;
  Plugin plugin_{};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Session> session_;
};

// Runs the cases whose numbers arrive as lines on standard input, until it ends. "missing", "kernels" and "perf"
// ask for these lists.
// Messages go to Child::kRecords.
void serve(const std::string& file, const Settings& settings);

}  // namespace plugrad::conformance
