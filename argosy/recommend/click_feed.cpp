#include "argosy/recommend/click_feed.h"

#include <utility>

namespace argosy::recommend {

ClickFeed::ClickFeed(ClickStreamOptions options, int64_t rounds, int64_t epochs) {
  thread_ = std::thread([this, options = std::move(options), rounds, epochs] {
    try {
      read(options, rounds, epochs);
    } catch (...) {
      failure_ = std::current_exception();
    }
    items_.close();
  });
}

ClickFeed::~ClickFeed() {
  items_.close();
  thread_.join();
}

void ClickFeed::read(const ClickStreamOptions& options, int64_t rounds, int64_t epochs) {
  ClickStream stream(options);
  stream.skip(rounds);
  while (stream.epochs() < epochs) {
    Item item{.epoch = stream.epochs()};
    formats::ClickBatch batch;
    if (stream.next(batch)) {
      item.inputs = click_inputs(batch);
    }
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
