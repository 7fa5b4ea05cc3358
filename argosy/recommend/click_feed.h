#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <stop_token>
#include <thread>

#include "argosy/base/bounded_queue.h"
#include "argosy/recommend/click_ids.h"
#include "argosy/recommend/click_stream.h"

namespace argosy::recommend {

/// The batches of a ClickStream as tensors, which a thread reads ahead. One thread uses it.
class ClickFeed final {
 public:
  /// Begins behind `rounds`, see ClickStream::skip(), and ends after `epochs`.
  ClickFeed(ClickStreamOptions options, int64_t rounds, int64_t epochs);
  ~ClickFeed();
  ClickFeed(const ClickFeed&) = delete;
  ClickFeed& operator=(const ClickFeed&) = delete;
  ClickFeed(ClickFeed&&) = delete;
  ClickFeed& operator=(ClickFeed&&) = delete;

  /// A batch, or the end of an epoch, which has no tensors.
  struct Item {
    ClickInputs inputs{};
    int64_t epoch = 0;   ///< from 0
    ClickPlace place{};  ///< behind it
    [[nodiscard]] bool ends_epoch() const { return !inputs.ids.defined(); }
  };
  /// Waits for the next one. nullopt after the last epoch. Errors: those of the stream.
  [[nodiscard]] std::optional<Item> next();

 private:
  void read(const ClickStreamOptions& options,
            int64_t rounds,
            int64_t epochs,
            const std::stop_token& stop);

  BoundedQueue<Item> items_{4};
  std::exception_ptr failure_{};  ///< written before the queue is closed
  std::jthread thread_;
};

}  // namespace argosy::recommend
