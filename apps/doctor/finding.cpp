#include "apps/doctor/finding.h"

#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

namespace argosy::doctor {

std::string_view to_string(Finding::Verdict verdict) {
  switch (verdict) {
    case Finding::Verdict::kFine:
      return "fine";
    case Finding::Verdict::kNote:
      return "note";
    default:
      return "bad";
  }
}

std::string render(const std::vector<Finding>& findings) {
  size_t width = 0;
  for (const Finding& finding : findings) {
    width = std::max(width, finding.subject.size());
  }
  std::string text;
  for (const Finding& finding : findings) {
    const bool fine = finding.verdict == Finding::Verdict::kFine;
    text += fmt::format("{:4}  {:{}}  {}\n",
                        fine ? "" : to_string(finding.verdict),
                        finding.subject,
                        width,
                        finding.text);
    if (!finding.advice.empty()) {
      text += fmt::format("{:{}}→ {}\n", "", width + 8, finding.advice);
    }
  }
  const auto count = [&](Finding::Verdict verdict) {
    return std::ranges::count(findings, verdict, &Finding::verdict);
  };
  const auto bad = count(Finding::Verdict::kBad);
  const auto notes = count(Finding::Verdict::kNote);
  const bool trained = std::ranges::any_of(findings, [](const Finding& finding) {
    return finding.subject == kTraining && finding.verdict != Finding::Verdict::kBad &&
           finding.tried;
  });
  text += fmt::format("{}{}\n",
                      bad != 0  ? fmt::format("{} bad", bad)
                      : trained ? "Training works here"
                                : "Nothing bad found",
                      notes == 0 ? "" : fmt::format("; {} to note", notes));
  return text;
}

std::string to_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"subject", finding.subject},
                    {"verdict", to_string(finding.verdict)},
                    {"text", finding.text},
                    {"advice", finding.advice}});
  }
  const nlohmann::ordered_json all{{"ok", all_well(findings)}, {"findings", std::move(list)}};
  // What programs and files say need not be UTF-8.
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

bool all_well(const std::vector<Finding>& findings) {
  return std::ranges::count(findings, Finding::Verdict::kBad, &Finding::verdict) == 0;
}

}  // namespace argosy::doctor
