#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "argosy/base/result.h"
#include "argosy/os/fd.h"
#include "argosy/os/unix_socket.h"
#include "argosy/rpc/lane.h"
#include "argosy/rpc/shared_line.h"

namespace argosy::rpc {

/// Where processes of this host bring their ends of lines. Internal to the room.
class Landing final {
 public:
  explicit Landing(size_t most_bytes);
  ~Landing();
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;
  Landing(Landing&&) = delete;
  Landing& operator=(Landing&&) = delete;

  [[nodiscard]] const std::string& socket() const { return name_; }
  [[nodiscard]] const std::string& secret() const { return secret_; }
  /// Returns the line that its other end calls `id`.
  /// Errors: RendezvousError when nobody brings it soon.
  [[nodiscard]] std::shared_ptr<SharedLine> line(const std::string& id);
  /// Returns the lane of that name, once. Errors: as line().
  [[nodiscard]] std::unique_ptr<Lane> lane(const std::string& id);

 private:
  /// Lets callers in until `found()`. With the mutex.
  void admit_until(const std::function<bool()>& found);
  void admit(os::UniqueFd socket);
  void drop_abandoned();

  const size_t most_bytes_;
  const std::string name_;
  const std::string secret_;
  const os::MessageListener listener_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<SharedLine>> lines_{};
  std::unordered_map<std::string, std::unique_ptr<Lane>> lanes_{};  ///< that nobody asked for yet
};

/// Returns our end of a new line to the Landing of that socket.
[[nodiscard]] Result<std::shared_ptr<SharedLine>> connect_line(const std::string& socket,
                                                               const std::string& secret,
                                                               const std::string& id,
                                                               size_t most_bytes);
/// Returns our end of a new lane there.
[[nodiscard]] Result<std::unique_ptr<Lane>> connect_lane(const std::string& socket,
                                                         const std::string& secret,
                                                         const std::string& id);

}  // namespace argosy::rpc
