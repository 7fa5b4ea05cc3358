#include "argosy/vision/datasets/split_of.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/datasets/source.h"

namespace argosy::vision {

PicturesOf split_of(std::shared_ptr<const datasets::Source> source,
                    Split split,
                    std::string_view where) {
  std::vector<std::string> names;
  for (const datasets::Split& each : source->about().splits) {
    if (each.name == to_string(split)) {
      return {.source = std::move(source), .first = each.first, .count = each.count};
    }
    names.push_back(each.name);
  }
  throw UsageError(where,
                   fmt::format("there is no split \"{}\" in {}, only {}. Divide {} with "
                               "data::random_split",
                               to_string(split),
                               source->about().path,
                               names.empty() ? "samples without splits"
                                             : fmt::format("{}", fmt::join(names, ", ")),
                               names.empty() ? "them" : "one"));
}

}  // namespace argosy::vision
