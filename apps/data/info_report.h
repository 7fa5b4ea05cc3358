#pragma once

#include <string>
#include <vector>

#include "argosy/datasets/source.h"
#include "argosy/datasets/survey.h"
#include "argosy/runs/picture_page.h"

#include "apps/data/chart.h"
#include <nlohmann/json_fwd.hpp>

namespace argosy::datatool {

/// A set, and what survey() found in it.
struct Findings {
  const datasets::Source* source = nullptr;
  datasets::Survey survey{};
};

/// Returns text for people: figures, then a bar for each class.
[[nodiscard]] std::string info_text(const Findings& findings, int columns, BarStyle style);

/// Returns JSON for programs: {"samples": N, "classes": K, "per_class": [K], "shape": [height,
/// width, channels], …}. A size in the shape is null if it differs between pictures.
[[nodiscard]] nlohmann::ordered_json info_json(const Findings& findings);

/// Returns a page with bars of the classes, and samples: some of each class, with keypoints as
/// dots.
[[nodiscard]] runs::PicturePage info_sheet(const Findings& findings);

/// Returns "cifar10" or "records of flowers102".
[[nodiscard]] std::string name_of(const datasets::About& about);

/// Returns the bars of both.
[[nodiscard]] std::vector<runs::Bar> class_bars(const Findings& findings);

}  // namespace argosy::datatool
