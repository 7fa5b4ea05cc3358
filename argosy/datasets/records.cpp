#include "argosy/formats/records.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/datasets/sets.h"
#include "argosy/datasets/source.h"

namespace argosy::datasets {
namespace {

class RecordSource final : public Source {
 public:
  RecordSource(About about, formats::RecordReader reader)
      : Source(std::move(about)), reader_(std::move(reader)) {}

  [[nodiscard]] int64_t size() const override { return reader_.size(); }
  [[nodiscard]] formats::PackedSample get(int64_t index, std::vector<uint8_t>&) const override {
    return formats::unpack_sample(reader_.record(index), reader_.path(), index);
  }

 private:
  formats::RecordReader reader_;
};

/// Where each split begins, with those before it. Together they must be the whole file.
std::vector<Split> splits_of(const std::vector<formats::PackedSplit>& packed,
                             const formats::RecordReader& reader) {
  std::vector<Split> splits;
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

std::unique_ptr<Source> open_records(const std::string& path) {
  formats::RecordReader reader(path);
  formats::PackedSet set = formats::unpack_metadata(reader.metadata(), path);
  About about{.set = "records", .packed_from = set.kind, .path = path};
  about.classes = std::move(set.classes);
  about.groups = std::move(set.groups);
  about.point_names = std::move(set.point_names);
  about.splits = splits_of(set.splits, reader);
  return std::make_unique<RecordSource>(std::move(about), std::move(reader));
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
