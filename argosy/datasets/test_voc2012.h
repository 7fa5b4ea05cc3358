#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "argosy/formats/test_archives.h"

namespace argosy::datasets::testing {

inline const std::vector<std::string> kVocClasses{
    "aeroplane", "bicycle",     "bird",  "boat",        "bottle", "bus",      "car",
    "cat",       "chair",       "cow",   "diningtable", "dog",    "horse",    "motorbike",
    "person",    "pottedplant", "sheep", "sofa",        "train",  "tvmonitor"};

/// A picture of a made VOC 2012, and the classes on it.
struct VocPicture {
  std::string name{};
  std::string jpeg{};
  std::vector<std::string> classes{};
  std::vector<std::string> difficult{};  ///< there, but hard to see
};

/// The members of VOC 2012's archive: of each class its list of `train` and of `valid`, then the
/// pictures.
inline formats::TestMembers voc2012_members(const std::vector<VocPicture>& train,
                                            const std::vector<VocPicture>& valid) {
  const std::string root = "VOCdevkit/VOC2012/";
  const auto has = [](const std::vector<std::string>& all, const std::string& name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  formats::TestMembers members;
  const std::vector splits{std::pair("train", &train), std::pair("val", &valid)};
  for (const std::string& name : kVocClasses) {
    for (const auto& [split, pictures] : splits) {
      std::string lines;
      for (const VocPicture& each : *pictures) {
        const int there = has(each.classes, name) ? 1 : has(each.difficult, name) ? 0 : -1;
        lines += fmt::format("{} {:>2}\n", each.name, there);
      }
      members.emplace_back(fmt::format("{}ImageSets/Main/{}_{}.txt", root, name, split), lines);
    }
  }
  for (const auto& [split, pictures] : splits) {
    for (const VocPicture& each : *pictures) {
      members.emplace_back(fmt::format("{}JPEGImages/{}.jpg", root, each.name), each.jpeg);
    }
  }
  return members;
}

inline void write_tar(const std::string& path, const formats::TestMembers& members) {
  std::ofstream(path, std::ios::binary) << formats::tar(members);
}

}  // namespace argosy::datasets::testing
