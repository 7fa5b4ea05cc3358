#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>

#include "argosy/base/deadline.h"
#include "argosy/rendezvous/store.h"

namespace argosy::ps {

/// Which servers have a partition. Whoever changes it counts the epoch up, so that all can tell an
/// old view from a new one.
struct View {
  uint64_t epoch = 0;
  int primary = -1;  ///< answers the workers
  int backup = -1;   ///< has all that the primary has acknowledged; -1: no backup
  auto fields() { return std::tie(epoch, primary, backup); }
  friend bool operator==(const View&, const View&) = default;
};

/// The views of all partitions, and who is done, in the job's store. Thread-safe.
class Views final {
 public:
  explicit Views(std::shared_ptr<rendezvous::Store> store) : store_(std::move(store)) {}

  /// Returns the view. Errors: those of the store.
  [[nodiscard]] View get(int partition) const;
  /// Says that the training is over.
  void end();
  [[nodiscard]] bool is_over() const;
  /// The key that a worker sets when it makes no more steps.
  [[nodiscard]] static std::string done_key(int worker);
  [[nodiscard]] bool is_done(int worker) const;
  /// Writes the first view, unless there is one.
  void begin(int partition, const View& view);
  /// Replaces `from` by `to`. False when it is another one by now.
  [[nodiscard]] bool change(int partition, const View& from, const View& to);

 private:
  [[nodiscard]] static std::string key(int partition);

  const std::shared_ptr<rendezvous::Store> store_;
};

}  // namespace argosy::ps
