#include "argosy/datasets/pack.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/formats/records.h"

namespace argosy::datasets {
namespace {

/// The samples of a split that are written.
std::vector<int64_t> kept_of(const Split& split, const std::vector<int64_t>& leave_out) {
  std::vector<int64_t> all(static_cast<size_t>(split.count));
  std::iota(all.begin(), all.end(), split.first);
  std::vector<int64_t> kept;
  std::ranges::set_difference(all, leave_out, std::back_inserter(kept));
  return kept;
}

/// Height, width and channels where all pictures are pixels and agree.
std::vector<int64_t> common_shape(const Source& source, const std::vector<int64_t>& kept) {
  std::vector<int64_t> shape;
  std::vector<uint8_t> scratch;
  for (const int64_t i : kept) {
    const formats::PackedSample sample = source.get(i, scratch);
    const std::vector<int64_t> own{sample.height, sample.width, sample.channels};
    if (sample.kind != formats::Picture::kPixels || (!shape.empty() && own != shape)) {
      return {};
    }
    shape = own;
  }
  return shape;
}

/// What the file says of its splits: those of the source, or the one that is packed.
std::vector<formats::PackedSplit> packed_splits(const Source& source,
                                                const Split& only,
                                                const std::vector<int64_t>& leave_out) {
  std::vector<formats::PackedSplit> splits;
  for (const Split& split : only.name.empty() ? source.about().splits : std::vector<Split>{only}) {
    splits.push_back({split.name, std::ssize(kept_of(split, leave_out))});
  }
  return splits;
}

}  // namespace

Split find_split(const Source& source, const std::string& name) {
  if (name.empty()) {
    return {.count = source.size()};
  }
  const std::vector<Split>& splits = source.about().splits;
  const auto found = std::ranges::find(splits, name, &Split::name);
  if (found != splits.end()) {
    return *found;
  }
  std::vector<std::string> names;
  std::ranges::transform(splits, std::back_inserter(names), &Split::name);
  throw UsageError(
      "datasets.split",
      fmt::format("{} has no split \"{}\". {}",
                  source.about().set,
                  name,
                  names.empty() ? "It has none"
                                : fmt::format("Expected one of {}", fmt::join(names, ", "))));
}

Packed pack(const Source& source, const std::string& path, const PackOptions& options) {
  const Split split = find_split(source, options.split);
  const std::vector<int64_t> kept = kept_of(split, options.leave_out);
  const About& about = source.about();
  const formats::PackedSet set{.kind = about.set,
                               .classes = about.classes,
                               .groups = about.groups,
                               .point_names = about.point_names,
                               .shape = common_shape(source, kept),
                               .splits = packed_splits(source, split, options.leave_out)};
  formats::RecordWriter writer(path, formats::pack_metadata(set));
  std::vector<uint8_t> scratch;
  for (const int64_t i : kept) {
    writer.append(formats::pack_sample(source.get(i, scratch)));
    if (options.on_sample) {
      options.on_sample(writer.size());
    }
  }
  writer.finish();
  std::error_code error;
  return {.samples = std::ssize(kept),
          .bytes = static_cast<int64_t>(std::filesystem::file_size(path, error))};
}

}  // namespace argosy::datasets
