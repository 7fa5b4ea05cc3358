#include "argosy/formats/records.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/datasets/encoded_source.h"
#include "argosy/datasets/sets.h"
#include "argosy/formats/packed_sample.h"

namespace argosy::datasets {
namespace {

class RecordSource final : public EncodedSource {
 public:
  RecordSource(About about, formats::RecordReader reader)
      : EncodedSource(std::move(about)), reader_(std::move(reader)) {}

  [[nodiscard]] int64_t size() const override { return reader_.size(); }
  [[nodiscard]] Sample get(int64_t index, Scratch& scratch) const override {
    formats::PackedSample packed =
        formats::unpack_sample(reader_.record(index), reader_.path(), index);
    scratch.labels = std::move(packed.labels);
    scratch.points = std::move(packed.points);
    const bool encoded = packed.kind == formats::PictureKind::kEncoded;
    return {
        .picture = {.kind = encoded ? StoredPicture::Kind::kEncoded : StoredPicture::Kind::kPixels,
                    .bytes = {reinterpret_cast<const uint8_t*>(packed.picture.data()),
                              packed.picture.size()},
                    .size = {static_cast<int>(packed.height), static_cast<int>(packed.width)},
                    .channels = static_cast<int>(packed.channels)},
        .labels = scratch.labels,
        .points = scratch.points,
        .name = packed.name};
  }

 private:
  formats::RecordReader reader_;
};

/// Where each split begins, with those before it. Together they must be the whole file.
std::vector<SplitRange> splits_of(const std::vector<formats::PackedSplit>& packed,
                                  const formats::RecordReader& reader) {
  std::vector<SplitRange> splits;
  int64_t first = 0;
  for (const formats::PackedSplit& split : packed) {
    splits.push_back({.name = split.name, .first = first, .count = split.samples});
    first += split.samples;
  }
  if (!splits.empty() && first != reader.size()) {
    throw DataError(
        "datasets.records",
        fmt::format("its splits have {} samples together, and there are {} records. Pack it again",
                    first,
                    reader.size()),
        {reader.path()});
  }
  return splits;
}

/// Height, width and channels, or nothing. Buffers are made by it, so it must be one that as many
/// pictures in a file of this size can have.
std::vector<int64_t> shape_of(std::vector<int64_t> packed, const formats::RecordReader& reader) {
  if (packed.empty()) {
    return packed;
  }
  std::error_code error;
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(reader.path(), error));
  int64_t most = error ? 0 : bytes / std::max<int64_t>(1, reader.size());  // of a picture
  for (const int64_t size : packed) {
    most = size < 1 || size > std::numeric_limits<int>::max() ? 0 : most / size;
  }
  if (packed.size() != 3 || most < 1) {
    throw DataError(
        "datasets.records",
        fmt::format("expected the height, width and channels of {} pictures in {} bytes, got "
                    "[{}]",
                    reader.size(),
                    bytes,
                    fmt::join(packed, ", ")),
        {reader.path()});
  }
  return packed;
}

std::shared_ptr<const Source> open_records(const OpenOptions& options) {
  const std::string& path = options.path;
  formats::RecordReader reader(path);
  formats::PackedSet set = formats::unpack_metadata(reader.metadata(), path);
  About about{.set = "records", .packed_from = set.kind, .path = path};
  about.classes = std::move(set.classes);
  about.groups = std::move(set.groups);
  about.point_names = std::move(set.point_names);
  if (!about.point_names.empty()) {
    about.task = Task::kPoints;
  } else if (const Row* packed = find_row(about.packed_from); packed != nullptr) {
    about.task = packed->task;
  }
  about.shape = shape_of(std::move(set.shape), reader);
  about.full = set.full;
  about.splits = splits_of(set.splits, reader);
  return std::make_shared<const RecordSource>(std::move(about), std::move(reader));
}

}  // namespace

const Row& records() {
  static const Row row{.name = "records",
                       .title = "A record file, as argosy data pack writes it",
                       .instead = "It is made here: argosy data pack NAME PATH OUT",
                       .augment = "auto",
                       .mean = kImageNetMean,
                       .std = kImageNetStd,
                       .open = open_records};
  return row;
}

}  // namespace argosy::datasets
