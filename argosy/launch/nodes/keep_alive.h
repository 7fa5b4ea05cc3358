#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace argosy::launch {

/// How the launchers of several nodes know that the others live: each tells node 0 every
/// `interval`; who has not got through for `limit` is lost. A process that ends is known at once by
/// its connection; this is for machines and networks that fall silent.
/// Names as in torchrun's --rdzv_conf; its defaults are 5 s and 3 attempts.
struct KeepAlive {
  std::chrono::milliseconds interval{500};
  int max_attempt = 5;

  /// Then gRPC gives a silent connection up by itself.
  static constexpr std::chrono::milliseconds kLongest{10000};
  /// With what passes before the first attempt, a node is lost after 3 s by default.
  [[nodiscard]] std::chrono::milliseconds limit() const { return interval * max_attempt; }
};

/// Node 0's book of who told it last, and when.
class Pulses final {
 public:
  using Clock = std::chrono::steady_clock;

  Pulses(size_t nodes, Clock::time_point now) : seen_(nodes, {.count = "", .at = now}) {}

  /// `count` of node `node`, as it stands at `now`. How long it has been so.
  std::chrono::milliseconds look(size_t node, const std::string& count, Clock::time_point now) {
    Seen& seen = seen_.at(node);
    if (seen.count != count) {
      seen = {.count = count, .at = now};
    }
    return std::chrono::duration_cast<std::chrono::milliseconds>(now - seen.at);
  }
  /// Time in which this process itself stood still is nobody's silence.
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
