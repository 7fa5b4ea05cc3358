#include "argosy/recipes/data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/datasets/sets.h"
#include "argosy/recipes/divide.h"

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
  for (const datasets::SplitRange& split : source.about().splits) {
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

/// What the set's own options say of its opening.
datasets::OpenOptions open_options(const DataSpec& spec, const Values& values) {
  datasets::OpenOptions options{.path = spec.path};
  const auto takes = [&](const char* option) { return datasets::takes(*spec.entry->set, option); };
  if (takes("absent") && values.word("missing", {"error", "skip"}) == "skip") {
    options.absent = datasets::Absent::kSkip;
  }
  if (takes("points")) {
    options.points = values.word("missing", {"drop", "fill"}) == "drop"
                         ? datasets::Points::kDrop
                         : datasets::Points::kForwardFill;
  }
  if (takes("splits") && values.word("splits", {"published", "paddle"}) == "paddle") {
    options.splits = datasets::FlowersSplits::kPaddle;
  }
  return options;
}

const std::vector<int64_t>& indices_of(const std::vector<detail::Part>& parts,
                                       const std::string& split) {
  const auto at = std::ranges::find(parts, split, &detail::Part::split);
  std::vector<std::string> names;
  std::ranges::transform(parts, std::back_inserter(names), &detail::Part::split);
  ARGOSY_CHECK(at != parts.end(),
               kData.where,
               "there is no split \"{}\", only {}",
               split,
               fmt::join(names, ", "));
  return at->indices;
}

const DataEntry& like_what(const DataEntry& entry, const datasets::About& about) {
  for (const DataEntry& other : data_sets()) {
    if (entry.row.name == "records" && other.row.name == about.packed_from) {
      return other;
    }
  }
  return entry;
}

// Options that all have.
const OptionRow kHoldOut{
    "holdout", "auto", "share of the training split to evaluate on; auto: 0.2 where no other is"};
const OptionRow kLimit{"limit", "0", "samples of each split, evenly spread; 0: all"};
const OptionRow kMean{"mean", "auto", "of the pixels from 0 to 1, by channel; auto: the set's"};
const OptionRow kStd{"std", "auto", "likewise"};
const OptionRow kCache{"cache", "none", "kept in memory: none, encoded, decoded"};

/// Those of one set alone, as users call them.
std::vector<OptionRow> own_options(const datasets::Row& set) {
  std::vector<OptionRow> options;
  for (const auto& [option, about] : set.options) {
    if (option == "absent") {
      options.push_back({"missing", "error", about + ": error, skip"});
    } else if (option == "points") {
      options.push_back({"missing", "drop", about + ": drop, fill"});
    } else if (option == "splits") {
      options.push_back({"splits", "published", "published, or paddle: train and test exchanged"});
    } else if (option == "groups") {
      options.push_back({"labels", "fine", about});
    }
  }
  return options;
}

std::vector<DataEntry> all_sets() {
  std::vector<DataEntry> all;
  for (const datasets::Row* set : datasets::rows()) {
    std::vector<OptionRow> options = own_options(*set);
    options.insert(options.end(), {kHoldOut, kLimit, kMean, kStd, kCache});
    all.push_back({.row = {set->name, set->title, std::move(options)}, .set = set});
  }
  all.push_back({.row = {"text",
                         "text files, folders of .txt and .txt.gz, or a token file",
                         {{"holdout", "0.1", "share at the end to evaluate on; 0: none"},
                          {"limit", "0", "the first N windows of each split; 0: all"},
                          {"documents", "files", "what ends with an end of text: files, lines"}}},
                 .material = Material::kText});
  all.push_back({.row = {"criteo",
                         "a log of clicks in Criteo's form, plain or .gz",
                         {{"limit", "0", "the first N lines; 0: all"}}},
                 .material = Material::kClicks});
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
  ARGOSY_CHECK(
      !set.empty(),
      kData.where,
      "{}: neither its name nor its content says what it is. Put the set's name before "
      "it, cifar10:{}, or text:{} for a language model, criteo:{} for a model of clicks. See: "
      "argosy train --list data",
      path,
      path,
      path,
      path);
  return find_entry(kData, data_sets(), set);
}

}  // namespace

std::unique_ptr<DataSet> open_data(const DataSpec& spec) {
  ARGOSY_CHECK(
      spec.entry->material != Material::kClicks,
      kData.where,
      "{} is a log of clicks, from which recommendation models learn: --model deepfm. See: "
      "argosy train --list models",
      spec.to_string());
  ARGOSY_CHECK(
      spec.entry->material != Material::kText,
      kData.where,
      "{} is text, from which language models learn: --model gpt. See: argosy train --list "
      "models",
      spec.to_string());
  const Values values(kData, spec.entry->row, spec.options.options);
  const Source source = datasets::open(*spec.entry->set, open_options(spec, values));
  const datasets::About& about = source->about();
  const bool points = spec.entry->set->task == Task::kPoints;
  if (about.classes.empty() && !points) {
    throw DataError(kData.where,
                    about.point_names.empty()
                        ? "its samples have no labels to learn"
                        : fmt::format("its samples have points. Say keypoints:{}", about.path),
                    {about.path});
  }
  vision::PictureOptions options{.cache = cache_of(values), .points_in = vision::PointUnit::kSides};
  if (points) {  // and the chain makes three channels of them where the model wants these
    options.order = image::Order::kGray;
  }
  if (datasets::takes(*spec.entry->set, "groups") &&
      values.word("labels", {"fine", "coarse"}) == "coarse") {
    options.label = 1;
  }
  return std::make_unique<DataSet>(
      DataSetParts{.source = source,
                   .splits = detail::divided(parts_of(*source), values),
                   .like = &like_what(*spec.entry, about),
                   .classes = options.label == 0 ? about.classes : about.groups,
                   .point_names = about.point_names,
                   .options = options});
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
  return std::make_unique<DataSet>(
      DataSetParts{.source = std::move(source),
                   .splits = std::move(parts),
                   .like = &find_entry(kData, data_sets(), "folder"),
                   .classes = std::move(classes),
                   .point_names = std::move(point_names),
                   .options = {.points_in = vision::PointUnit::kSides}});
}

std::vector<std::string> DataSet::splits() const {
  std::vector<std::string> names;
  std::ranges::transform(parts_.splits, std::back_inserter(names), &detail::Part::split);
  return names;
}

int64_t DataSet::size(const std::string& split) const {
  return std::ssize(indices_of(parts_.splits, split));
}

Examples DataSet::examples(const std::string& split,
                           const vision::Compose& chain,
                           int channels) const {
  vision::PictureOptions options = parts_.options;
  options.transform = chain;
  options.order = options.order.value_or(channels == 1 ? image::Order::kGray : image::Order::kRgb);
  return {vision::PictureDataset(parts_.source, "", std::move(options)),
          indices_of(parts_.splits, split)};
}

DataSet::Stored DataSet::stored() const {
  if (const std::vector<int64_t>& shape = parts_.source->about().shape; !shape.empty()) {
    const bool square = shape[0] == shape[1];
    return {.side = square ? static_cast<int>(shape[0]) : 0,
            .channels = square && shape[2] == 1 ? 1 : 3};
  }
  Stored found;
  for (const int64_t index : {int64_t{0}, parts_.source->size() / 2, parts_.source->size() - 1}) {
    datasets::Scratch scratch;
    const datasets::StoredPicture picture = parts_.source->get(index, scratch).picture;
    const bool square = picture.kind == datasets::StoredPicture::Kind::kPixels &&
                        picture.size.height == picture.size.width;
    const int side = square ? picture.size.height : 0;
    if (index == 0) {
      found.side = side;
    }
    found.side = found.side == side ? side : 0;
    found.channels = square && picture.channels == 1 ? 1 : 3;
  }
  return found;
}

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
        !rest.empty() || !spec.options.options.empty(),  // "fashion_mnist:limit=500" has no path
        kData.where,
        "\"{}\": expected a path: {}:PATH",
        text,
        spec.entry->row.name);
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

std::string DataSet::training_split() const {
  const std::vector<std::string> all = splits();
  const std::string name = detail::first_of(all, {"train"});
  return name.empty() ? all.front() : name;
}

std::string DataSet::evaluation_split() const {
  return detail::first_of(splits(), {"valid", "test"});
}

}  // namespace argosy::recipes
