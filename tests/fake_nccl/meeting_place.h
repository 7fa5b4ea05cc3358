#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fake_nccl {

/// Files in memory by which the ranks of a communicator exchange data: threads and processes alike.
///
/// Whoever waits looks again and again until `ends` says that it shall not.
class MeetingPlace final {
 public:
  using Ends = std::function<bool()>;
  using Bytes = std::vector<std::byte>;

  /// `id`: of the communicator, printable.
  explicit MeetingPlace(const std::string& id);

  /// Makes `name` appear, with all its bytes at once.
  void put(const std::string& name, const Bytes& bytes) const;
  /// Waits for `name`, and reads it. Returns false if `ends` said so first.
  [[nodiscard]] bool get(const std::string& name, Bytes& bytes, const Ends& ends) const;
  void remove(const std::string& name) const;
  /// Waits until `name` is gone. Returns false if `ends` said so first.
  [[nodiscard]] bool wait_until_gone(const std::string& name, const Ends& ends) const;
  /// Removes the folder with all that is left there.
  void clear() const;

 private:
  std::string folder_;
};

}  // namespace fake_nccl
