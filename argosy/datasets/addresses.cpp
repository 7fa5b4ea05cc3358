#include "argosy/datasets/addresses.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/secrets.h"
#include "argosy/base/strings.h"

namespace argosy::datasets {
namespace {

/// A path as a URL: what has a meaning there is written as %XX.
std::string file_url(const std::string& path) {
  std::string url = "file://";
  for (const char c : std::filesystem::absolute(path).string()) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("/-._~").find(c) != std::string_view::npos;
    url += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return url;
}

std::string base_url(const std::string& mirror) {
  const size_t scheme_end = mirror.find("://");
  if (scheme_end == std::string::npos) {
    return file_url(mirror);
  }
  const std::string scheme = strings::to_lower(mirror.substr(0, scheme_end));
  if (scheme != "http" && scheme != "https" && scheme != "file") {
    throw UsageError("datasets.mirror",
                     fmt::format("\"{}\": expected http://, https://, file:// or a folder",
                                 secrets::hidden(mirror)));
  }
  return mirror;
}

}  // namespace

std::vector<std::string> urls_of(const Row& set,
                                 const PublishedFile& file,
                                 const std::vector<std::string>& mirrors) {
  std::vector<std::string> urls;
  for (const std::string& mirror : mirrors) {
    std::string url = base_url(mirror);
    while (url.ends_with('/')) {
      url.pop_back();
    }
    urls.push_back(fmt::format("{}/{}/{}", url, set.name, file.name));
  }
  if (mirrors.empty()) {
    for (const std::string_view address : set.addresses) {
      urls.push_back(fmt::format("{}{}", address, file.name));
    }
  }
  return urls;
}

bool is_local(const std::string& url) {
  constexpr std::string_view kScheme = "file://";
  return strings::to_lower(url.substr(0, kScheme.size())) == kScheme;
}

std::vector<std::string> mirrors_or_default(const std::vector<std::string>& mirrors) {
  if (!mirrors.empty()) {
    return mirrors;
  }
  std::vector<std::string> found;
  for (const std::string& word : strings::split(env::get("ARGOSY_DATA_MIRROR").value_or(""), ' ')) {
    if (!word.empty()) {
      found.push_back(word);
    }
  }
  return found;
}

}  // namespace argosy::datasets
