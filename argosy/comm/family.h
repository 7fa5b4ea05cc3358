#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/comm/flight_recorder.h"
#include "argosy/comm/hooks.h"
#include "argosy/comm/init.h"

namespace argosy::comm {

/// What a group shares with all groups made from it: hooks, the flight record, and how to make
/// further transports. Thread-safe.
class Family final {
 public:
  using Hooks = std::vector<std::shared_ptr<Hook>>;

  /// `rank`: in the job. `group`: the name of the first group, for the flight record.
  Family(int rank,
         const std::string& group,
         TransportFactory make_transport,
         TransportFactory make_device_transport,
         std::vector<int> hosts_of_world);

  /// Makes a transport together with the group's other members. Hooks see it as an operation, `op`:
  /// this rank waits for the others meanwhile.
  [[nodiscard]] std::unique_ptr<transport::Transport> meet(std::string_view op,
                                                           const TransportFactory& make,
                                                           const TransportRequest& request);

  void add(std::shared_ptr<Hook> hook);
  void remove(const std::shared_ptr<Hook>& hook);
  /// Returns the current hooks. The list never changes, so you can read it without a lock.
  [[nodiscard]] std::shared_ptr<const Hooks> hooks() const;
  /// Calls `when` of all hooks. Their exceptions are logged and dropped.
  void tell(void (Hook::*when)(const OperationEvent&), const OperationEvent& event) const;
  /// What stopped an operation of a group: the first such failure of all groups.
  struct Failure {
    std::string story{};
    std::vector<int> world_ranks{};  ///< to blame
  };
  void note(Failure failure);
  [[nodiscard]] std::optional<Failure> failure() const;
  [[nodiscard]] uint64_t next_id() { return next_id_.fetch_add(1, std::memory_order_relaxed); }

  const TransportFactory make_transport;  ///< empty: sub-groups cannot be made
  /// Of devices' memory. Empty, or where it returns nullptr: what devices have goes through the
  /// host's.
  const TransportFactory make_device_transport;
  const std::vector<int> hosts;  ///< by rank of the world; empty: not known
  const std::shared_ptr<FlightRecorder> recorder;

 private:
  std::atomic<uint64_t> next_id_{0};
  mutable std::mutex mutex_;
  std::shared_ptr<const Hooks> hooks_;
  std::optional<Failure> failure_{};
};

}  // namespace argosy::comm
