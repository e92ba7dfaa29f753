// Values by which processes of one machine exchange bytes: files of a folder.
#pragma once
#include <atomic>
#include <string>

namespace plugrad::test {

class Board {
 public:
  explicit Board(std::string folder) : folder_(std::move(folder)) {}
  void post(const std::string& name, const std::string& bytes) const;
  // Waits for a value. Returns false if `ends` became true first.
  bool take(const std::string& name, std::string& bytes, const std::atomic<bool>& ends) const;
  // Waits until a value is removed.
  bool wait_until_gone(const std::string& name, const std::atomic<bool>& ends) const;
  bool has(const std::string& name) const;
  void remove(const std::string& name) const;
  void clear() const;  // removes the folder

 private:
  std::string folder_;
};

}  // namespace plugrad::test
