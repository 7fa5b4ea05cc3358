#include "argosy/base/catalogue.h"

#include <filesystem>

#include "argosy/base/env.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCatalogue = "docs/guides/errors.md";

std::string find_docs() {
  if (const auto given = env::get("ARGOSY_DOCS")) {
    return *given;
  }
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed = program.parent_path().parent_path() / "share/doc/argosy";
  return !error && fs::exists(installed / kCatalogue, error) ? installed.string() : "";
}

}  // namespace

const std::string& docs_folder() {
  static const std::string folder = find_docs();
  return folder;
}

std::string catalogue_section(std::string_view section) {
  const std::string& folder = docs_folder();
  return (folder.empty() ? "" : folder + "/") + std::string(kCatalogue) + "#" +
         std::string(section);
}

std::string catalogue_entry(std::string_view message) {
  const size_t end = message.find(']');
  if (!message.starts_with('[') || end == std::string_view::npos) {
    return "";
  }
  return catalogue_section(message.substr(1, end - 1));
}

}  // namespace argosy
