#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace argosy::doctor {

/// What was found about one subject.
struct Finding {
  enum class Verdict {
    kFine,
    kNote,  ///< works, but may surprise some day
    kBad,   ///< training will not work, or not in this way
  };
  std::string subject{};  ///< "memory"
  Verdict verdict = Verdict::kFine;
  std::string text{};    ///< "23.4 GiB, 21.0 GiB of it free"
  std::string advice{};  ///< what to do; empty: nothing
  bool tried = true;     ///< false: it could not be tried
};

/// The subject of the finding that says whether training works.
inline constexpr std::string_view kTraining = "training";

[[nodiscard]] std::string_view to_string(Finding::Verdict verdict);

/// Returns text for people: a line for each finding with its advice below, and a last line that
/// counts the bad ones.
[[nodiscard]] std::string render(const std::vector<Finding>& findings);
/// Returns {"ok": true, "findings": [{"subject", "verdict": "fine|note|bad", "text", "advice"}]}.
[[nodiscard]] std::string to_json(const std::vector<Finding>& findings);
/// True if none is bad.
[[nodiscard]] bool all_well(const std::vector<Finding>& findings);

}  // namespace argosy::doctor
