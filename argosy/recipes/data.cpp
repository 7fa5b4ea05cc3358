#include "argosy/recipes/data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/datasets/sets.h"
#include "argosy/recipes/picture_source.h"

namespace argosy::recipes {
namespace {

using Source = std::shared_ptr<const datasets::Source>;

vision::PictureCache cache_of(const Values& values) {
  const std::string& keep = values.word("cache", {"none", "encoded", "decoded"});
  return {.keep = keep == "none"      ? vision::Keep::kNothing
                  : keep == "encoded" ? vision::Keep::kEncoded
                                      : vision::Keep::kDecoded};
}

std::vector<int64_t> range(int64_t first, int64_t count) {
  std::vector<int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), first);
  return indices;
}

/// The splits that a source says it has, training first; all of it is "train" where it has none.
std::vector<detail::Part> parts_of(const datasets::Source& source) {
  std::vector<detail::Part> parts;
  for (const datasets::Split& split : source.about().splits) {
    if (split.count > 0) {
      parts.push_back({.split = split.name, .indices = range(split.first, split.count)});
    }
  }
  if (parts.empty()) {
    parts.push_back({.split = "train", .indices = range(0, source.size())});
  }
  std::ranges::stable_sort(parts, {}, [](const detail::Part& part) {
    return part.split == "train" ? 0 : part.split == "valid" ? 1 : 2;
  });
  return parts;
}

/// Pictures with classes, of one source.
class PictureSet final : public DataSet {
 public:
  PictureSet(Source source,
             std::vector<detail::Part> parts,
             const DataEntry& like,
             PictureSourceOptions options)
      : source_(std::move(source)),
        parts_(std::move(parts)),
        like_(like),
        options_(std::move(options)) {}

  [[nodiscard]] std::vector<std::string> splits() const override {
    std::vector<std::string> names;
    for (const detail::Part& part : parts_) {
      names.push_back(part.split);
    }
    return names;
  }
  [[nodiscard]] int64_t size(const std::string& split) const override {
    return std::ssize(detail::indices_of(parts_, split));
  }
  [[nodiscard]] Examples examples(const std::string& split,
                                  const vision::Compose& chain,
                                  int channels) const override {
    return {make_picture_source(source_, chain, channels, options_),
            detail::indices_of(parts_, split)};
  }
  [[nodiscard]] const std::vector<std::string>& classes() const override {
    return options_.classes;
  }
  [[nodiscard]] const std::vector<std::string>& point_names() const override {
    return options_.point_names;
  }
  [[nodiscard]] const DataEntry& like() const override { return like_; }
  [[nodiscard]] Stored stored() const override { return stored_pictures(*source_); }

 private:
  Source source_;
  std::vector<detail::Part> parts_;
  const DataEntry& like_;
  PictureSourceOptions options_;
};

/// What the options of one set alone change.
void special_options(const DataSpec& spec,
                     const Values& values,
                     const Source& source,
                     PictureSourceOptions& options) {
  const datasets::About& about = source->about();
  if (spec.entry->row.name == "cifar100" && values.word("labels", {"fine", "coarse"}) == "coarse") {
    constexpr std::size_t kCoarse = 1;
    options.classes = about.groups;
    options.label = [source](int64_t index) {
      datasets::Scratch scratch;
      return source->labels(index, scratch)[kCoarse];
    };
  }
}

/// What the set's own options say of its opening.
datasets::OpenOptions open_options(const DataSpec& spec, const Values& values) {
  datasets::OpenOptions options{.path = spec.path};
  const auto takes = [&](const char* option) {
    return std::ranges::find(spec.entry->set->options, option) != spec.entry->set->options.end();
  };
  if (takes("absent") && values.word("missing", {"error", "skip"}) == "skip") {
    options.absent = datasets::Absent::kSkip;
  }
  if (takes("splits") && values.word("splits", {"published", "paddle"}) == "paddle") {
    options.splits = datasets::FlowersSplits::kPaddle;
  }
  return options;
}

const DataEntry& like_what(const DataEntry& entry, const datasets::About& about) {
  for (const DataEntry& other : data_sets()) {
    if (entry.row.name == "records" && other.row.name == about.packed_from) {
      return other;
    }
  }
  return entry;
}

}  // namespace

std::unique_ptr<DataSet> open_data(const DataSpec& spec) {
  const Values values(kData, spec.entry->row, spec.options.options);
  if (spec.entry->set->task == Task::kPoints) {
    return detail::open_faces(spec, values);
  }
  if (spec.entry->set->task == Task::kTags) {
    throw UsageError(kData.where,
                     fmt::format("{} has several classes on a picture, which no recipe learns yet. "
                                 "datasets::open(\"{}\") gives them to a program of your own",
                                 spec.entry->row.name,
                                 spec.entry->row.name));
  }
  const Source source = datasets::open(*spec.entry->set, open_options(spec, values));
  const datasets::About& about = source->about();
  if (about.classes.empty()) {
    throw DataError(kData.where,
                    about.point_names.empty()
                        ? "its samples have no labels to learn"
                        : fmt::format("its samples have points. Say keypoints:{}", about.path),
                    {about.path});
  }
  PictureSourceOptions options{.classes = about.classes,
                               .cache = cache_of(values),
                               .labels_with_samples = spec.entry->row.name == "records"};
  std::vector<detail::Part> parts = parts_of(*source);
  special_options(spec, values, source, options);
  return std::make_unique<PictureSet>(source,
                                      detail::divided(std::move(parts), values),
                                      like_what(*spec.entry, about),
                                      std::move(options));
}

std::unique_ptr<DataSet> open_pictures(Source source,
                                       std::vector<std::string> classes,
                                       std::vector<std::string> point_names) {
  std::vector<detail::Part> parts = parts_of(*source);
  if (parts.size() > 1) {
    std::erase_if(parts, [](const detail::Part& part) { return part.split != "test"; });
  }
  ARGOSY_CHECK(!parts.empty(), kData.where, "{} has no split \"test\"", source->about().path);
  parts.front().split = "test";
  return std::make_unique<PictureSet>(std::move(source),
                                      std::move(parts),
                                      find_entry(kData, data_sets(), "folder"),
                                      PictureSourceOptions{.classes = std::move(classes),
                                                           .point_names = std::move(point_names),
                                                           .without_labels = true});
}

}  // namespace argosy::recipes
