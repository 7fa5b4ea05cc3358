#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace argosy::launch {

/// How the launchers of several nodes know that the others live. Each tells node 0 every
/// `interval`; one that has not got through for `limit` is lost. The end of a process is known at
/// once by its connection; this is for machines and networks that fall silent. Names as in
/// torchrun's --rdzv_conf; its defaults are 5 s and 3 attempts.
struct KeepAlive {
  std::chrono::milliseconds interval{500};
  int max_attempt = 5;

  /// gRPC itself gives up a connection that is silent for this long.
  static constexpr std::chrono::milliseconds kLongest{10000};
  /// With the time before the first attempt, a node is lost after 3 s by default.
  [[nodiscard]] std::chrono::milliseconds limit() const { return interval * max_attempt; }
};

/// Node 0 records here when it last heard each node.
class Pulses final {
 public:
  using Clock = std::chrono::steady_clock;

  Pulses(size_t nodes, Clock::time_point now) : seen_(nodes, {.count = "", .at = now}) {}

  /// Notes that node `node` stands at `count` at `now`. Returns for how long it has stood there.
  std::chrono::milliseconds look(size_t node, const std::string& count, Clock::time_point now) {
    Seen& seen = seen_.at(node);
    if (seen.count != count) {
      seen = {.count = count, .at = now};
    }
    return std::chrono::duration_cast<std::chrono::milliseconds>(now - seen.at);
  }
  /// Discounts a time in which this process itself stood still, because nobody else was silent
  /// then.
  void forgive(Clock::duration time) {
    for (Seen& seen : seen_) {
      seen.at += time;
    }
  }

 private:
  struct Seen {
    std::string count{};
    Clock::time_point at{};
  };
  std::vector<Seen> seen_;
};

}  // namespace argosy::launch
