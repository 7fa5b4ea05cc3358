// PASCAL VOC 2012, the task of classification.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/datasets/archive_source.h"
#include "argosy/datasets/files.h"
#include "argosy/datasets/sets.h"
#include "argosy/formats/archive.h"

namespace argosy::datasets {
namespace {

constexpr auto kClasses = std::to_array<std::string_view>(
    {"aeroplane", "bicycle",     "bird",  "boat",        "bottle", "bus",      "car",
     "cat",       "chair",       "cow",   "diningtable", "dog",    "horse",    "motorbike",
     "person",    "pottedplant", "sheep", "sofa",        "train",  "tvmonitor"});
constexpr std::string_view kRoot = "VOCdevkit/VOC2012/";
constexpr const char* kFile = "VOCtrainval_11-May-2012.tar";

struct Tag {
  std::vector<int64_t> labels{};
  size_t lines = 0;  // one in the file of each class
};

/// What is on each picture of a split, by its name.
using Tags = std::map<std::string, Tag, std::less<>>;

/// Adds what ImageSets/Main/<class>_<split>.txt says: "2008_000008 -1" in each line; 1: it is on
/// it, 0: it is hard to see, which counts as
/// not there; -1: it is not.
void read_tags(const formats::ArchiveImage& archive,
               const std::string& member,
               int64_t label,
               Tags& tags) {
  const std::span<const uint8_t> bytes = archive.at(member);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (int64_t line = 1; !text.empty(); ++line) {
    const std::string_view row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(row.size() + 1, text.size()));
    const std::string_view picture = row.substr(0, row.find(' '));
    std::string_view rest = row.substr(picture.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    int there = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), there);
    if (picture.empty() || error != std::errc() || there < -1 || there > 1 ||
        std::string_view(end, rest.data() + rest.size()).find_first_not_of(" \r") !=
            std::string_view::npos) {
      throw DataError("datasets.voc2012",
                      fmt::format("line {}: expected the name of a picture and -1, 0 or 1", line),
                      {fmt::format("{}:{}", archive.path(), member)});
    }
    Tag& tag = tags[std::string(picture)];
    ++tag.lines;
    if (there == 1) {
      tag.labels.push_back(label);
    }
  }
}

std::shared_ptr<const Source> open_voc2012(const OpenOptions& options) {
  formats::ArchiveImage archive(
      file_or_in_folder(options.path, {kFile}), [](std::string_view name) {
        return name.ends_with(".jpg") || name.find("ImageSets/Main/") != std::string_view::npos;
      });
  std::vector<std::pair<const char*, Tags>> splits{{"train", {}}, {"valid", {}}};
  for (auto& [split, tags] : splits) {
    const std::string_view file = std::string_view(split) == "train" ? "train" : "val";
    for (size_t label = 0; label < kClasses.size(); ++label) {
      read_tags(archive,
                fmt::format("{}ImageSets/Main/{}_{}.txt", kRoot, kClasses.at(label), file),
                static_cast<int64_t>(label),
                tags);
    }
  }
  ArchiveSource::Builder set({.set = "voc2012",
                              .task = Task::kTags,
                              .path = options.path,
                              .classes = {kClasses.begin(), kClasses.end()}},
                             std::move(archive));
  for (auto& [split, tags] : splits) {
    set.begin(split);
    for (auto& [picture, tag] : tags) {
      if (tag.lines != kClasses.size()) {
        throw DataError(
            "datasets.voc2012",
            fmt::format("expected {} once in the list of each of {} classes, got {} lines",
                        picture,
                        kClasses.size(),
                        tag.lines),
            {options.path});
      }
      set.add(fmt::format("{}JPEGImages/{}.jpg", kRoot, picture), std::move(tag.labels));
    }
  }
  return std::move(set).finish();
}

}  // namespace

// The MD5 is that of torchvision's VOCSegmentation, the length is what the server answers.
const Row& voc2012() {
  static const Row row{.name = "voc2012",
                       .title = "PASCAL VOC 2012: 11,540 photographs, any of 20 classes",
                       .task = Task::kTags,
                       .addresses = {"http://host.robots.ox.ac.uk/pascal/VOC/voc2012/"},
                       .files = {{kFile, {1999639040, "6cd6e144f989b92b3379bac3b3de84fd"}}},
                       .in_folder = {kFile},
                       .in_name = "VOCtrainval_11-May-2012",
                       .options = {{"absent", "photographs that the archive lacks"}},
                       .augment = "resized_crop,flip",
                       .mean = kImageNetMean,
                       .std = kImageNetStd,
                       .open = open_voc2012};
  return row;
}

}  // namespace argosy::datasets
