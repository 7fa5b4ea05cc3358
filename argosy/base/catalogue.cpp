#include "argosy/base/catalogue.h"

namespace argosy {

std::string catalogue_entry(std::string_view message) {
  const size_t end = message.find_first_of(".]");
  if (!message.starts_with('[') || end == std::string_view::npos) {
    return "";
  }
  return "docs/guides/errors.md#" + std::string(message.substr(1, end - 1));
}

}  // namespace argosy
