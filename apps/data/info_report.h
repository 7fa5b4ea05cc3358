#pragma once

#include <string>
#include <vector>

#include "argosy/datasets/source.h"
#include "argosy/datasets/survey.h"
#include "argosy/runs/picture_page.h"

#include "apps/data/chart.h"
#include <nlohmann/json_fwd.hpp>

namespace argosy::datatool {

/// A set and what was found in it.
struct Findings {
  const datasets::Source* source = nullptr;
  datasets::Survey survey{};
};

/// For people: figures, then a bar for each class.
[[nodiscard]] std::string info_text(const Findings& findings, int columns, BarStyle style);

/// For programs: {"samples": N, "classes": K, "per_class": [K], "shape": [height, width, channels],
/// …}; null in the shape for what differs from picture to picture.
[[nodiscard]] nlohmann::ordered_json info_json(const Findings& findings);

/// A page: bars of the classes, and samples (some of each class; keypoints as dots).
[[nodiscard]] runs::PicturePage info_sheet(const Findings& findings);

/// "cifar10", "records of flowers102".
[[nodiscard]] std::string name_of(const datasets::About& about);

/// The bars of both.
[[nodiscard]] std::vector<runs::Bar> class_bars(const Findings& findings);

}  // namespace argosy::datatool
