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

}  // namespace argosy::rpc
