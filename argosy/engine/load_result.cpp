#include "argosy/engine/load_result.h"

#include <fmt/format.h>

#include "argosy/base/text.h"

namespace argosy::engine {

std::string LoadResult::to_string() const {
  std::vector<std::vector<std::string>> rows;
  for (const LoadMismatch& entry : mismatched) {
    rows.push_back({entry.name, entry.why, entry.expected, entry.got});
  }
  for (const std::string& name : missing) {
    rows.push_back({name, "missing", "keeps its values", ""});
  }
  for (const std::string& name : unexpected) {
    rows.push_back({name, "unexpected", "", "not used"});
  }
  std::string text = fmt::format("loaded {} of {} entries of the module",
                                 loaded.size(),
                                 loaded.size() + missing.size() + mismatched.size());
  if (rows.empty()) {
    return text + "\n";
  }
  return text + "; left alone:\n" + text::table({"entry", "why", "module", "file"}, rows);
}

}  // namespace argosy::engine
