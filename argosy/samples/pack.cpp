#include "argosy/samples/pack.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/formats/records.h"

namespace argosy::samples {
namespace {

/// Height, width and channels where all pictures are pixels and agree.
std::vector<int64_t> common_shape(const SampleSource& source, const Split& split) {
  std::vector<int64_t> shape;
  std::vector<uint8_t> scratch;
  for (int64_t i = split.first; i < split.first + split.count; ++i) {
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
std::vector<formats::PackedSplit> packed_splits(const SampleSource& source, const Split& only) {
  if (!only.name.empty()) {
    return {{only.name, only.count}};
  }
  std::vector<formats::PackedSplit> splits;
  for (const Split& split : source.description().splits) {
    splits.push_back({split.name, split.count});
  }
  return splits;
}

}  // namespace

Split find_split(const SampleSource& source, const std::string& name) {
  if (name.empty()) {
    return {.count = source.size()};
  }
  const std::vector<Split>& splits = source.description().splits;
  const auto found = std::ranges::find(splits, name, &Split::name);
  if (found != splits.end()) {
    return *found;
  }
  std::vector<std::string> names;
  std::ranges::transform(splits, std::back_inserter(names), &Split::name);
  throw UsageError(
      "samples.split",
      fmt::format("{} has no split \"{}\". {}",
                  source.description().set,
                  name,
                  names.empty() ? "It has none"
                                : fmt::format("Expected one of {}", fmt::join(names, ", "))));
}

Packed pack(const SampleSource& source, const std::string& path, const PackOptions& options) {
  const Split split = find_split(source, options.split);
  const Description& description = source.description();
  const formats::PackedSet set{.kind = description.set,
                               .classes = description.classes,
                               .groups = description.groups,
                               .point_names = description.point_names,
                               .shape = common_shape(source, split),
                               .splits = packed_splits(source, split)};
  formats::RecordWriter writer(path, formats::pack_metadata(set));
  std::vector<uint8_t> scratch;
  for (int64_t i = 0; i < split.count; ++i) {
    writer.append(formats::pack_sample(source.get(split.first + i, scratch)));
    if (options.on_sample) {
      options.on_sample(i + 1);
    }
  }
  writer.finish();
  std::error_code error;
  return {.samples = split.count,
          .bytes = static_cast<int64_t>(std::filesystem::file_size(path, error))};
}

}  // namespace argosy::samples
