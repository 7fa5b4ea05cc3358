// The table of data sets, and how they are named on a command line.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/datasets/sample_source.h"
#include "argosy/recipes/data.h"

namespace argosy::recipes {
namespace {

using Numbers = std::vector<double>;

// Of all training pixels, as torchvision's users have measured and published them.
const Numbers kImageNetMean{0.485, 0.456, 0.406};
const Numbers kImageNetStd{0.229, 0.224, 0.225};

// Options that all have.
const OptionRow kHoldOut{
    "holdout", "auto", "share of the training split to evaluate on; auto: 0.2 where no other is"};
const OptionRow kLimit{"limit", "0", "samples of each split, evenly spread; 0: all"};
const OptionRow kMean{"mean", "auto", "of the pixels from 0 to 1, by channel; auto: the set's"};
const OptionRow kStd{"std", "auto", "likewise"};
const OptionRow kCache{"cache", "none", "kept in memory: none, encoded, decoded"};

DataEntry pictures(std::string name,
                   std::string what,
                   std::string augment,
                   Numbers mean,
                   Numbers std,
                   std::vector<OptionRow> own = {}) {
  std::vector<OptionRow> options{kHoldOut, kLimit, kMean, kStd, kCache};
  options.insert(options.begin(), own.begin(), own.end());
  return {.row = {std::move(name), std::move(what), std::move(options)},
          .augment = std::move(augment),
          .mean = std::move(mean),
          .std = std::move(std)};
}

DataEntry faces() {
  return {.row = {"keypoints",
                  "faces with 15 points: training.csv of Kaggle's contest, or records of it",
                  {{"missing", "drop", "faces with unknown points: drop, fill"},
                   kHoldOut,
                   kLimit,
                   kMean,
                   kStd}},
          .task = Task::kPoints,
          .augment = "none",
          .mean = {0},
          .std = {1}};
}

std::vector<DataEntry> all_sets() {
  return {
      pictures("mnist", "handwritten digits, 28 x 28 grey: IDX files", "none", {0.1307}, {0.3081}),
      pictures("fashion_mnist", "clothes, 28 x 28 grey: IDX files", "none", {0.2860}, {0.3530}),
      pictures("mnist_json", "MNIST as Paddle's lessons have it", "none", {0.1307}, {0.3081}),
      pictures("cifar10",
               "ten classes, 32 x 32: the archive, Python's or binary",
               "crop,flip",
               {0.4914, 0.4822, 0.4465},
               {0.2470, 0.2435, 0.2616}),
      pictures("cifar100",
               "a hundred classes, 32 x 32",
               "crop,flip",
               {0.5071, 0.4867, 0.4408},
               {0.2675, 0.2565, 0.2761},
               {{"labels", "fine", "fine (100) or coarse (20)"}}),
      pictures("flowers102",
               "photographs of 102 flowers: the folder with its three files",
               "resized_crop,flip",
               kImageNetMean,
               kImageNetStd,
               {{"splits", "published", "published, or paddle: train and test exchanged"},
                {"missing", "error", "photographs that the archive lacks: error, skip"}}),
      faces(),
      pictures("folder",
               "a folder for each class; or train, valid and test with these",
               "resized_crop,flip",
               kImageNetMean,
               kImageNetStd),
      pictures(
          "records", "one file, made by argosy data pack", "auto", kImageNetMean, kImageNetStd),
  };
}

bool is_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

/// `text` up to a comma behind which options begin: what of it is there.
std::string existing(std::string text) {
  while (!is_there(text) && text.find(',') != std::string::npos) {
    text.resize(text.rfind(','));
  }
  return text;
}

/// Takes option=value away from the end of `rest` as long as the set has such an option, and as
/// long as without it `rest` is there: then it is meant as one.
Spec take_options(const DataEntry& entry, std::string& rest) {
  Spec spec{.name = entry.row.name};
  const std::string there = existing(rest);
  for (;;) {
    const std::size_t comma = rest.rfind(',');
    const std::size_t begin = comma == std::string::npos ? 0 : comma + 1;
    const std::size_t equals = rest.find('=', begin);
    if (equals == std::string::npos) {
      return spec;
    }
    const std::string name = rest.substr(begin, equals - begin);
    const bool known =
        std::ranges::find(entry.row.options, name, &OptionRow::name) != entry.row.options.end();
    if (!known && (rest == there || !is_there(there))) {
      return spec;
    }
    spec.options.insert(spec.options.begin(), {name, rest.substr(equals + 1)});
    rest.resize(comma == std::string::npos ? 0 : comma);
  }
}

const DataEntry& recognised(const std::string& path) {
  const std::string set = datasets::recognised_set(existing(path));
  ARGOSY_CHECK(!set.empty(),
               kData.where,
               "{}: neither its name nor its content says what it is. Put the set's name before "
               "it: cifar10:{}. See: argosy train --list data",
               path,
               path);
  return find_entry(kData, data_sets(), set);
}

}  // namespace

const std::vector<DataEntry>& data_sets() {
  static const std::vector<DataEntry> all = all_sets();
  return all;
}

std::string DataSpec::to_string() const {
  std::string text = fmt::format("{}:{}", entry->row.name, path);
  for (const auto& [name, value] : options.options) {
    text += fmt::format(",{}={}", name, value);
  }
  return text;
}

DataSpec parse_data(const std::string& text) {
  const std::size_t colon = text.find(':');
  DataSpec spec;
  std::string rest = text;
  if (colon == std::string::npos || text.substr(0, colon).find('/') != std::string::npos) {
    const bool path = text.find('/') != std::string::npos || is_there(existing(text));
    spec.entry = path ? &recognised(text) : &find_entry(kData, data_sets(), text);
    ARGOSY_CHECK(path,
                 kData.where,
                 "--data {}: where is it? {}:PATH. What is not there yet: argosy data fetch {} "
                 "--to PATH",
                 text,
                 text,
                 text);
  } else {
    spec.entry = &find_entry(kData, data_sets(), text.substr(0, colon));
    rest = text.substr(colon + 1);
  }
  spec.options = take_options(*spec.entry, rest);
  ARGOSY_CHECK(
      !rest.empty(), kData.where, "\"{}\": expected a path: {}:PATH", text, spec.entry->row.name);
  spec.path = rest;
  return spec;
}

}  // namespace argosy::recipes
