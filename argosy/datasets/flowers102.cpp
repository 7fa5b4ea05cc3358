#include "argosy/datasets/flowers102.h"

#include <fmt/format.h>

#include <utility>

#include "argosy/base/check.h"
#include "argosy/datasets/archive_source.h"
#include "argosy/datasets/files.h"
#include "argosy/datasets/sets.h"
#include "argosy/formats/archive.h"
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

Flowers102Index read_flowers102(const std::string& labels_path, const std::string& splits_path) {
  Flowers102Index index{.labels = read_labels(labels_path)};
  const formats::MatFile splits = formats::read_mat(splits_path);
  std::vector<bool> taken(index.labels.size());
  index.train = read_ids(splits, "trnid", taken);
  index.valid = read_ids(splits, "valid", taken);
  index.test = read_ids(splits, "tstid", taken);
  return index;
}

std::string flowers102_picture(int64_t id) {
  return fmt::format("jpg/image_{:05}.jpg", id);
}

namespace {

std::shared_ptr<const Source> open_flowers102(const OpenOptions& options) {
  const std::string& path = options.path;
  const std::string pictures = file_or_in_folder(path, {"102flowers.tgz", "102flowers.tar"});
  const Flowers102Index index =
      read_flowers102(need_file(path, {"imagelabels.mat"}), need_file(path, {"setid.mat"}));
  About about{.set = "flowers102", .path = path};
  for (int i = 0; i < kClasses; ++i) {
    about.classes.push_back(std::to_string(i));
  }
  ArchiveSource::Builder set(std::move(about),
                             formats::ArchiveImage(pictures, [](std::string_view name) {
                               return name.ends_with(".jpg");
                             }));
  const auto add = [&](const char* split, const std::vector<int64_t>& ids) {
    set.begin(split);
    for (const int64_t id : ids) {
      set.add(flowers102_picture(id), {index.label(id)});
    }
  };
  const bool exchanged = options.splits == FlowersSplits::kPaddle;
  add(exchanged ? "test" : "train", index.train);
  add("valid", index.valid);
  add(exchanged ? "train" : "test", index.test);
  return std::move(set).finish();
}

}  // namespace

const Row& flowers102() {
  static const Row row{
      .name = "flowers102",
      .title = "Oxford Flowers-102: 8,189 photographs, 102 classes",
      .addresses = {"https://www.robots.ox.ac.uk/~vgg/data/flowers/102/",
                    "http://paddlemodels.bj.bcebos.com/flowers/"},
      .files = {{"102flowers.tgz", {344862509, "52808999861908f626f3c1f4e79d11fa"}},
                {"imagelabels.mat", {502, "e0620be6f572b9609742df49c70aed4d"}},
                {"setid.mat", {14989, "a5357ecc9cb78c4bef273ce3793fc85c"}}},
      .in_folder = {"102flowers.tgz", "102flowers.tar"},
      .in_name = "102flowers",
      .options = {{"absent", "photographs that the archive lacks"}, {"splits", ""}},
      .augment = "resized_crop,flip",
      .mean = kImageNetMean,
      .std = kImageNetStd,
      .open = open_flowers102};
  return row;
}

}  // namespace argosy::datasets
