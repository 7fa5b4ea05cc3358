#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "argosy/runs/files.h"
#include "argosy/runs/html.h"
#include "argosy/runs/page_parts.h"

namespace argosy::runs {
namespace {

constexpr size_t kMostPictures = 24;
constexpr size_t kMostBytes = size_t{4} << 20;  // of one
constexpr size_t kMostOfAll = size_t{12} << 20;
constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";

/// Width by the PNG's header; 0: no PNG.
unsigned png_width(std::string_view bytes) {
  if (!bytes.starts_with(kPng) || bytes.size() < 24) {
    return 0;
  }
  unsigned width = 0;
  for (const char c : bytes.substr(16, 4)) {
    width = width << 8 | static_cast<unsigned char>(c);
  }
  return width;
}

std::vector<std::filesystem::path> latest_pictures(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() == ".png") {
      paths.push_back(at->path());
    }
  }
  std::ranges::sort(paths, [](const auto& a, const auto& b) {
    return ::strverscmp(a.c_str(), b.c_str()) < 0;  // 2 before 10
  });
  if (paths.size() > kMostPictures) {
    paths.erase(paths.begin(), paths.end() - kMostPictures);
  }
  return paths;
}

}  // namespace

std::string samples_part(const std::string& folder) {
  std::string figures;
  size_t total = 0;
  bool large = false;
  for (const std::filesystem::path& path : latest_pictures(folder + "/samples")) {
    const auto bytes = read_small_file(path.string(), kMostBytes);
    const unsigned width = bytes ? png_width(*bytes) : 0;
    if (width == 0 || total + bytes->size() > kMostOfAll) {
      continue;
    }
    total += bytes->size();
    large = large || width > 256;  // a sheet, not a picture
    figures += fmt::format(
        "<figure class=\"card\"><img alt=\"{0}\" src=\"data:image/png;base64,{1}\">"
        "<figcaption>{0}</figcaption></figure>\n",
        escaped(path.stem().string()),
        base64(std::as_bytes(std::span(*bytes))));
  }
  return figures.empty() ? ""
                         : fmt::format("<h2>Samples</h2>\n<div class=\"samples{}\">\n{}</div>\n",
                                       large ? " large" : "",
                                       figures);
}

}  // namespace argosy::runs
