#include "argosy/ps/entry.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "argosy/base/check.h"
#include "argosy/ps/first_row.h"

namespace argosy::ps {

Entry Entry::count(int64_t pushes) {
  constexpr int64_t kMost = int64_t{1} << 30;
  ARGOSY_CHECK(pushes >= 0 && pushes <= kMost,
               "ps.entry",
               "the number of pushes must be 0 to 2^30, got {}",
               pushes);
  Entry entry;
  entry.kind_ = pushes <= 1 ? Kind::kAlways : Kind::kCount;
  entry.pushes_ = static_cast<uint32_t>(pushes);
  return entry;
}

Entry Entry::probability(double probability) {
  ARGOSY_CHECK(probability > 0 && probability < 1,
               "ps.entry",
               "the probability must be greater than 0 and less than 1, got {}",
               probability);
  Entry entry;
  entry.kind_ = Kind::kProbability;
  entry.probability_ = probability;
  return entry;
}

Entry Entry::show_click(const ShowClickOptions& options) {
  Entry entry;
  entry.kind_ = Kind::kShowClick;
  entry.score_ = options;
  return entry;
}

bool Entry::admits(const Push& push, uint32_t& sights) const {
  switch (kind_) {
    case Kind::kAlways:
      return true;
    case Kind::kCount:
      return ++sights >= pushes_;
    case Kind::kProbability: {
      constexpr uint64_t kNotOfTheWeights = uint64_t{1} << 63U;
      const uint64_t number = kNotOfTheWeights + sights;
      sights = sights < kMostSights ? sights + 1 : 0;
      return RowDraws(push.seed, push.id).unit(number) < probability_;
    }
    case Kind::kShowClick: {
      const float now = (push.shows - push.clicks) * score_.nonclick + push.clicks * score_.click;
      const float score = std::fmax(std::bit_cast<float>(sights) + now, 0.0F);  // 0 for NaN too
      sights = std::bit_cast<uint32_t>(score);
      return score >= score_.score;
    }
  }
  return true;
}

std::string Entry::describe() const {
  switch (kind_) {
    case Kind::kAlways:
      return "";
    case Kind::kCount:
      return fmt::format("at push {}", pushes_);
    case Kind::kProbability:
      return fmt::format("with probability {}", probability_);
    case Kind::kShowClick:
      return fmt::format(
          "at a score of {} ({} a show, {} a click)", score_.score, score_.nonclick, score_.click);
  }
  return "";
}

}  // namespace argosy::ps
