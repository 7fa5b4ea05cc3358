#include "argosy/recipes/divide.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/data/subset.h"

namespace argosy::recipes::detail {
namespace {

std::vector<std::string> names_of_parts(const std::vector<Part>& parts) {
  std::vector<std::string> names;
  for (const Part& part : parts) {
    names.push_back(part.split);
  }
  return names;
}

/// Evenly spread: sets that lie class by class keep all of their classes.
std::vector<int64_t> limited(const std::vector<int64_t>& all, int64_t limit) {
  const auto size = static_cast<int64_t>(all.size());
  if (limit == 0 || limit >= size) {
    return all;
  }
  std::vector<int64_t> some;
  for (int64_t i = 0; i < limit; ++i) {
    some.push_back(all[static_cast<std::size_t>(i * size / limit)]);
  }
  return some;
}

/// Moves a share of `train` into `valid`: always the same samples, whatever the run's seed is, so
/// that runs compare.
void hold_out(double share, std::vector<int64_t>& train, std::vector<int64_t>& valid) {
  const auto size = static_cast<int64_t>(train.size());
  const auto held = std::clamp<int64_t>(
      static_cast<int64_t>(share * static_cast<double>(size)), size > 1 ? 1 : 0, size);
  const std::array<int64_t, 2> sizes{size - held, held};
  std::vector<std::vector<int64_t>> places = data::split_indices(size, sizes, {.seed = 43});
  std::vector<int64_t> rest;
  for (std::vector<int64_t>& each : places) {
    std::ranges::sort(each);
  }
  for (const int64_t place : places[1]) {
    valid.push_back(train[static_cast<std::size_t>(place)]);
  }
  for (const int64_t place : places[0]) {
    rest.push_back(train[static_cast<std::size_t>(place)]);
  }
  train = std::move(rest);
}

}  // namespace

std::string first_of(const std::vector<std::string>& splits,
                     std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::ranges::find(splits, name) != splits.end()) {
      return name;
    }
  }
  return {};
}

std::vector<Part> divided(std::vector<Part> parts, const Values& values) {
  const std::vector<std::string> names = names_of_parts(parts);
  const bool has_other = !first_of(names, {"valid", "test"}).empty();
  const double share =
      values.is_auto("holdout") ? (has_other ? 0.0 : 0.2) : values.number("holdout");
  const int64_t limit = values.whole("limit");
  ARGOSY_CHECK(share >= 0 && share < 1, kData.where, "holdout: expected 0 to 1, got {}", share);
  ARGOSY_CHECK(limit >= 0, kData.where, "limit: expected 0 or more, got {}", limit);
  const auto train = std::ranges::find(parts, "train", &Part::split);
  if (share > 0 && train != parts.end()) {
    ARGOSY_CHECK(first_of(names, {"valid"}).empty(),
                 kData.where,
                 "holdout={}: the set has a split \"valid\" to evaluate on",
                 share);
    Part valid{.split = "valid"};
    hold_out(share, train->indices, valid.indices);
    parts.insert(train + 1, std::move(valid));
  }
  for (Part& part : parts) {
    part.indices = limited(part.indices, limit);
  }
  return parts;
}

}  // namespace argosy::recipes::detail
