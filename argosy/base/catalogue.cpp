#include "argosy/base/catalogue.h"

#include <filesystem>

#include "argosy/base/env.h"
#include "argosy/base/strings.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kCatalogue = "docs/guides/errors.md";

/// The documentation that was installed with the programs of a bin/; "": none was.
std::string docs_beside(const fs::path& bin) {
  std::error_code error;
  const fs::path docs = bin.parent_path() / "share/doc/argosy";
  return fs::exists(docs / kCatalogue, error) ? docs.string() : "";
}

/// The folder in which the shell finds `argosy`; empty: nowhere.
fs::path bin_on_path() {
  std::error_code error;
  for (const std::string& folder : strings::split(env::get("PATH").value_or(""), ':')) {
    if (!folder.empty() && fs::exists(fs::path(folder) / "argosy", error)) {
      return fs::canonical(folder, error);
    }
  }
  return {};
}

std::string find_docs() {
  if (const auto given = env::get("ARGOSY_DOCS")) {
    return *given;
  }
  const std::string ours = docs_beside(env::own_program().parent_path());
  return ours.empty() ? docs_beside(bin_on_path()) : ours;
}

}  // namespace

const std::string& docs_folder() {
  static const std::string folder = find_docs();
  return folder;
}

std::string docs_page(std::string_view page) {
  return (fs::path(docs_folder()) / page).string();
}

std::string catalogue_section(std::string_view section) {
  return docs_page(kCatalogue) + "#" + std::string(section);
}

std::string catalogue_entry(std::string_view message) {
  const size_t end = message.find(']');
  if (!message.starts_with('[') || end == std::string_view::npos) {
    return "";
  }
  return catalogue_section(message.substr(1, end - 1));
}

}  // namespace argosy
