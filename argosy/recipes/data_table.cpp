// The table of data sets, and how they are named on a command line.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/datasets/sets.h"
#include "argosy/recipes/data.h"

namespace argosy::recipes {
namespace {

// Options that all have.
const OptionRow kHoldOut{
    "holdout", "auto", "share of the training split to evaluate on; auto: 0.2 where no other is"};
const OptionRow kLimit{"limit", "0", "samples of each split, evenly spread; 0: all"};
const OptionRow kMean{"mean", "auto", "of the pixels from 0 to 1, by channel; auto: the set's"};
const OptionRow kStd{"std", "auto", "likewise"};
const OptionRow kCache{"cache", "none", "kept in memory: none, encoded, decoded"};

/// Those of one set alone.
std::vector<OptionRow> own_options(const std::string& set) {
  if (set == "cifar100") {
    return {{"labels", "fine", "fine (100) or coarse (20)"}};
  }
  if (set == "flowers102") {
    return {{"splits", "published", "published, or paddle: train and test exchanged"},
            {"missing", "error", "photographs that the archive lacks: error, skip"}};
  }
  if (set == "voc2012") {
    return {{"missing", "error", "photographs that the archive lacks: error, skip"}};
  }
  if (set == "folder") {
    return {{"missing", "error", "classes without a picture: error, skip"}};
  }
  if (set == "keypoints") {
    return {{"missing", "drop", "faces with unknown points: drop, fill"}};
  }
  return {};
}

std::vector<DataEntry> all_sets() {
  std::vector<DataEntry> all;
  for (const datasets::Row* set : datasets::rows()) {
    std::vector<OptionRow> options = own_options(set->name);
    options.insert(options.end(), {kHoldOut, kLimit, kMean, kStd, kCache});
    all.push_back({.row = {set->name, set->title, std::move(options)}, .set = set});
  }
  return all;
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
    if (!known && !there.empty() && (rest == there || !is_there(there))) {
      return spec;
    }
    spec.options.insert(spec.options.begin(), {name, rest.substr(equals + 1)});
    rest.resize(comma == std::string::npos ? 0 : comma);
  }
}

const DataEntry& recognised(const std::string& path) {
  const std::string set = datasets::recognise(existing(path));
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
  std::string text = path.empty() ? entry->row.name : fmt::format("{}:{}", entry->row.name, path);
  for (const auto& [name, value] : options.options) {
    text += fmt::format(",{}={}", name, value);
  }
  return text;
}

DataSpec parse_data(const std::string& text) {
  const std::string name = text.substr(0, text.find_first_of(":,/"));
  const char after = name.size() < text.size() ? text[name.size()] : '\0';
  DataSpec spec;
  std::string rest;
  if (after == ':') {
    spec.entry = &find_entry(kData, data_sets(), name);
    rest = text.substr(name.size() + 1);
    spec.options = take_options(*spec.entry, rest);
    ARGOSY_CHECK(
        !rest.empty(), kData.where, "\"{}\": expected a path: {}:PATH", text, spec.entry->row.name);
  } else if (text.find('/') != std::string::npos || is_there(existing(text))) {
    spec.entry = &recognised(text);
    rest = text;
    spec.options = take_options(*spec.entry, rest);
  } else {
    spec.entry = &find_entry(kData, data_sets(), name);
    rest = text.substr(name.size());
    spec.options = take_options(*spec.entry, rest);
    ARGOSY_CHECK(
        rest.empty(), kData.where, "\"{}\": expected {}:PATH or {},OPTION=VALUE", text, name, name);
  }
  spec.path = rest;
  return spec;
}

}  // namespace argosy::recipes
