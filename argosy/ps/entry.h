#pragma once

#include <cstdint>
#include <string>

namespace argosy::ps {

/// When an id that is pushed gets a row. Until then pulls give zeros and its gradients are dropped.
/// Source: Paddle's CountFilterEntry, ProbabilityEntry, ShowClickEntry.
class Entry final {
 public:
  /// At the first push.
  Entry() = default;
  /// At the push of that number. Errors: UsageError for less than 0 or more than 2³⁰.
  [[nodiscard]] static Entry count(int64_t pushes);
  /// At each push with that probability, drawn from the table's seed, the id and the number of the
  /// push. Errors: UsageError for a number that is not in (0, 1).
  [[nodiscard]] static Entry probability(double probability);
  /// When (shows − clicks)·nonclick + clicks·click of its pushes reaches `score`. A sum below 0
  /// counts as 0.
  struct ShowClickOptions {
    float score = 10;       ///< Paddle's `sparse_embedx_threshold`
    float nonclick = 0.1F;  ///< `sparse_nonclk_coeff`
    float click = 1;        ///< `sparse_click_coeff`
  };
  [[nodiscard]] static Entry show_click(const ShowClickOptions& options);

  /// One push of an id without a row. `sights`: what this entry keeps for the id, 0 before the
  /// first push. Returns true when it gets a row.
  struct Push {
    uint64_t seed = 0;
    uint64_t id = 0;
    float shows = 1;
    float clicks = 0;
  };
  [[nodiscard]] bool admits(const Push& push, uint32_t& sights) const;
  static constexpr uint32_t kMostSights = 0x7ffffffd;
  /// True if ids without a row are possible.
  [[nodiscard]] bool waits() const { return kind_ != Kind::kAlways; }
  /// "at push 3"; "" where no id waits.
  [[nodiscard]] std::string describe() const;

 private:
  enum class Kind { kAlways, kCount, kProbability, kShowClick };
  Kind kind_ = Kind::kAlways;
  uint32_t pushes_ = 0;
  double probability_ = 1;
  ShowClickOptions score_{};
};

}  // namespace argosy::ps
