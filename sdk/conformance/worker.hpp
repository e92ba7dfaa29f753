// The half of plugrad-conform that loads the plugin. Usually a supervisor starts it in a process of its own.
#pragma once
#include <sdk/conformance/result.hpp>

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>

namespace plugrad::conformance {

// A plugin with an open device. tell gets messages: first unusable, breach, no_device or device, then the messages of the
// running cases.
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
  // Submits work that is still in flight when the process ends.
  void leave();
  // Tells the output of a function: write_kernels or write_perf.
  void tell(void (*write)(std::ostream& out, Session& session));

 private:
  void load(const std::string& file);

  const Settings settings_;
  const Tell tell_;
  Plugin plugin_{};
  std::unique_ptr<Device> device_;
  std::unique_ptr<Session> session_;
};

// Reads lines from standard input until it ends. A number runs the case with this number; "missing", "kernels" and "perf"
// ask for these lists.
// Messages go to Child::kRecords.
void serve(const std::string& file, const Settings& settings);

}  // namespace plugrad::conformance
