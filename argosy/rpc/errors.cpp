#include "argosy/rpc/errors.h"

namespace argosy::rpc {

std::string_view name_of(CallOutcome outcome) {
  switch (outcome) {
    case CallOutcome::kDone:
      return "done";
    case CallOutcome::kRefused:
      return "refused";
    case CallOutcome::kUnknown:
      return "unknown";
  }
  return "";
}

std::string without_place(const std::string& text) {
  const size_t end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

}  // namespace argosy::rpc
