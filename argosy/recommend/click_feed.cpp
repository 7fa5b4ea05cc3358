#include "argosy/recommend/click_feed.h"

#include <utility>

namespace argosy::recommend {

ClickFeed::ClickFeed(ClickStreamOptions options, int64_t rounds, int64_t epochs) {
  thread_ = std::jthread(
      [this, options = std::move(options), rounds, epochs](const std::stop_token& stop) {
        try {
          read(options, rounds, epochs, stop);
        } catch (...) {
          failure_ = std::current_exception();
        }
        items_.close();
      });
}

ClickFeed::~ClickFeed() {
  items_.close();
  thread_.request_stop();  // it may be passing over a long log
  thread_.join();
}

void ClickFeed::read(const ClickStreamOptions& options,
                     int64_t rounds,
                     int64_t epochs,
                     const std::stop_token& stop) {
  ClickStream stream(options);
  stream.skip(rounds, stop);
  while (stream.epochs() < epochs && !stop.stop_requested()) {
    Item item{.epoch = stream.epochs()};
    formats::ClickBatch batch;
    if (stream.next(batch)) {
      item.inputs = click_inputs(batch);
    }
    item.place = stream.place();
    if (!items_.push(std::move(item))) {
      return;  // nobody wants more
    }
  }
}

std::optional<ClickFeed::Item> ClickFeed::next() {
  std::optional<Item> item = items_.pop();
  if (!item.has_value() && failure_ != nullptr) {
    std::rethrow_exception(failure_);
  }
  return item;
}

}  // namespace argosy::recommend
