#pragma once

#include <memory>
#include <string>
#include <thread>

#include "argosy/rpc/lane.h"
#include "argosy/rpc/made_call.h"

namespace argosy::rpc {

/// Makes calls through one lane. Thread-safe. Internal to the room.
class LaneCaller final {
 public:
  explicit LaneCaller(std::unique_ptr<Lane> lane);
  /// Ends the calls that run.
  ~LaneCaller();
  LaneCaller(const LaneCaller&) = delete;
  LaneCaller& operator=(const LaneCaller&) = delete;
  LaneCaller(LaneCaller&&) = delete;
  LaneCaller& operator=(LaneCaller&&) = delete;

  /// True when the worker has not opened it yet.
  [[nodiscard]] bool is_new() const;
  /// True when the worker serves it.
  [[nodiscard]] bool is_open() const;
  /// Sends a call. `line`: by which its memory travels.
  [[nodiscard]] std::shared_ptr<Pending> start(std::shared_ptr<Peer> peer,
                                               const std::string& function,
                                               Parcel arguments,
                                               const Deadline& deadline,
                                               std::shared_ptr<SharedLine> line);

 private:
  class State;
  class Call;

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace argosy::rpc
