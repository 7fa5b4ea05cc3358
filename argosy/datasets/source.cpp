#include "argosy/datasets/source.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "argosy/base/error.h"
#include "argosy/image/color.h"

namespace argosy::datasets {

image::Image unpacked(const StoredPicture& pixels, std::optional<image::Order> order) {
  const image::Order own = pixels.channels == 1   ? image::Order::kGray
                           : pixels.channels == 3 ? image::Order::kRgb
                                                  : image::Order::kRgba;
  image::Image picture(pixels.size, own);
  std::memcpy(picture.data(), pixels.bytes.data(), pixels.bytes.size());
  return order.value_or(own) == own ? std::move(picture) : image::convert(picture, *order);
}

SplitRange find_split(const Source& source, std::string_view name) {
  if (name.empty()) {
    return {.count = source.size()};
  }
  const std::vector<SplitRange>& splits = source.about().splits;
  const auto found = std::ranges::find(splits, name, &SplitRange::name);
  if (found != splits.end()) {
    return *found;
  }
  std::vector<std::string> names;
  std::ranges::transform(splits, std::back_inserter(names), &SplitRange::name);
  throw UsageError("datasets.split",
                   fmt::format("there is no split \"{}\" in {}, only {}",
                               name,
                               source.about().path,
                               names.empty() ? "samples without splits"
                                             : fmt::format("{}", fmt::join(names, ", "))));
}

}  // namespace argosy::datasets
