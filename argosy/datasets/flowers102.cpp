#include "argosy/datasets/flowers102.h"

#include <fmt/format.h>

#include <utility>

#include "argosy/base/check.h"
#include "argosy/formats/mat.h"

namespace argosy::datasets {
namespace {

constexpr int64_t kClasses = 102;

std::vector<uint8_t> read_labels(const std::string& path) {
  const formats::MatFile file = formats::read_mat(path);
  std::vector<uint8_t> labels;
  for (const int64_t label : file.at("labels").integers()) {
    if (label < 1 || label > kClasses) {
      throw DataError("datasets.flowers102",
                      fmt::format("expected a label 1 to {}, got {}", kClasses, label),
                      {path, -1, static_cast<int64_t>(labels.size())});
    }
    labels.push_back(static_cast<uint8_t>(label - 1));
  }
  return labels;
}

/// The ids of a split; notes in `taken` that they belong to one.
std::vector<int64_t> read_ids(const formats::MatFile& file,
                              const char* name,
                              std::vector<bool>& taken) {
  std::vector<int64_t> ids = file.at(name).integers();
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto fail = [&](const std::string& what) {
      throw DataError("datasets.flowers102",
                      fmt::format("{}: {}", name, what),
                      {file.path, -1, static_cast<int64_t>(i)});
    };
    if (ids[i] < 1 || ids[i] > static_cast<int64_t>(taken.size())) {
      fail(
          fmt::format("expected an id 1 to {}, as there are labels, got {}", taken.size(), ids[i]));
    }
    const auto at = static_cast<size_t>(ids[i] - 1);
    if (taken[at]) {
      fail(fmt::format("id {} is in a split for the second time", ids[i]));
    }
    taken[at] = true;
  }
  return ids;
}

}  // namespace

uint8_t Flowers102Index::label(int64_t id) const {
  ARGOSY_CHECK(id >= 1 && id <= static_cast<int64_t>(labels.size()),
               "datasets.flowers102",
               "id {} is outside 1 to {}",
               id,
               labels.size());
  return labels[static_cast<size_t>(id - 1)];
}

Flowers102Index read_flowers102(const std::string& labels_path,
                                const std::string& splits_path,
                                const Flowers102Options& options) {
  Flowers102Index index{.labels = read_labels(labels_path)};
  const formats::MatFile splits = formats::read_mat(splits_path);
  std::vector<bool> taken(index.labels.size());
  index.train = read_ids(splits, "trnid", taken);
  index.valid = read_ids(splits, "valid", taken);
  index.test = read_ids(splits, "tstid", taken);
  if (options.splits == FlowersSplits::kPaddle) {
    std::swap(index.train, index.test);
  }
  return index;
}

std::string flowers102_picture(int64_t id) {
  return fmt::format("jpg/image_{:05}.jpg", id);
}

}  // namespace argosy::datasets
