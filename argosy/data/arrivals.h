#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "argosy/data/batch_tensors.h"
#include "argosy/data/device_copies.h"
#include "argosy/data/made.h"
#include "argosy/data/ordered_prefetch.h"

namespace argosy::data::detail {

/// The results of loader threads, whose batches arrive on the loop's device.
///
/// At most one batch is copied ahead of the loop. It counts as not received, and what goes wrong
/// with it is thrown in its turn. Belongs to the loop's thread.
template <typename Batch>
class Arrivals final {
 public:
  using Results = OrderedPrefetch<Made<Batch>>;

  /// Refers to `results`. `copies`: nullptr where batches stay on the host.
  Arrivals(Results& results, std::shared_ptr<DeviceCopies> copies)
      : results_(results), copies_(std::move(copies)) {}

  /// Waits for the next result, as OrderedPrefetch does. The device's current stream finds the
  /// values of its batch; the host does not wait for its copy.
  std::optional<Made<Batch>> next() {
    if (copies_ == nullptr) {
      return results_.next();
    }
    if (!ahead_.has_value()) {
      begin_copy(results_.next());
    }
    if (!ahead_.has_value()) {
      return std::nullopt;
    }
    Ahead now = *std::exchange(ahead_, std::nullopt);
    if (now.error != nullptr) {
      std::rethrow_exception(now.error);
    }
    if (now.made.batch.has_value()) {
      copies_->hand_over(now.flight, tensors_in(*now.made.batch));
    }
    return std::move(now.made);
  }

  /// Begins to copy the batch after the one that next() returned, if threads have made it: a loop
  /// that waits for its batches anyway is not to wait for two.
  void look_ahead() {
    if (copies_ != nullptr && !ahead_.has_value()) {
      begin_copy(results_.next_if_ready());
    }
  }

 private:
  struct Ahead {
    Made<Batch> made;
    DeviceCopies::Flight flight{};
    std::exception_ptr error{};
  };

  void begin_copy(std::optional<Made<Batch>> made) {
    if (!made.has_value()) {
      return;
    }
    ahead_.emplace(Ahead{.made = std::move(*made)});
    if (ahead_->made.batch.has_value()) {
      try {
        ahead_->flight = copies_->start(tensors_in(*ahead_->made.batch));
      } catch (...) {
        ahead_->error = std::current_exception();
      }
    }
  }

  Results& results_;
  const std::shared_ptr<DeviceCopies> copies_;
  std::optional<Ahead> ahead_;
};

}  // namespace argosy::data::detail
