#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "argosy/base/text.h"
#include "argosy/runs/files.h"
#include "argosy/runs/html.h"
#include "argosy/runs/page_parts.h"

namespace argosy::runs {
namespace {

constexpr size_t kMostSheets = 24;
constexpr int64_t kMostBytes = int64_t{4} << 20;  // of one
constexpr int64_t kMostOfAll = int64_t{12} << 20;
constexpr std::string_view kPng = "\x89PNG\r\n\x1a\n";

/// The latest by name come first: 10 before 2.
std::vector<std::filesystem::path> latest_files(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().extension() == ".png" || at->path().extension() == ".json") {
      paths.push_back(at->path());
    }
  }
  std::ranges::sort(
      paths, [](const auto& a, const auto& b) { return ::strverscmp(a.c_str(), b.c_str()) > 0; });
  paths.resize(std::min(paths.size(), kMostSheets));
  return paths;
}

bool is_base64(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return ('A' <= c && c <= 'Z') || ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '+' ||
           c == '/' || c == '=';
  });
}

/// The figures that write_samples() has written; empty where the file is none of its.
std::string figures_of(const std::string& text) {
  const auto all = nlohmann::json::parse(text, nullptr, false);
  if (!all.is_array()) {
    return "";
  }
  std::string figures;
  for (const nlohmann::json& each : all) {
    if (!each.is_object() || !each.contains("png") || !each["png"].is_string() ||
        !each.contains("caption") || !each["caption"].is_string()) {
      return "";
    }
    const auto png = each["png"].get<std::string>();
    const auto mark = each.find("mark");
    if (!is_base64(png)) {
      return "";
    }
    figures += picture_figure({.png_base64 = png,
                               .caption = each["caption"].get<std::string>(),
                               .mark = mark == each.end() ? PagePicture::Mark::kNone
                                       : *mark == 1       ? PagePicture::Mark::kRight
                                       : *mark == 2       ? PagePicture::Mark::kWrong
                                                          : PagePicture::Mark::kNone});
  }
  return figures;
}

}  // namespace

std::string picture_figure(const FigureText& figure) {
  constexpr std::string_view kClasses[] = {"", " class=\"right\"", " class=\"wrong\""};
  return fmt::format(
      "<figure class=\"card\"><div class=\"shot\">{}{}</div><figcaption{}>{}</figcaption>"
      "</figure>\n",
      figure.png_base64.empty() ? "<div class=\"none\"></div>"
                                : fmt::format("<img alt=\"{}\" src=\"data:image/png;base64,{}\">",
                                              escaped(figure.caption),
                                              figure.png_base64),
      figure.over,
      kClasses[static_cast<size_t>(figure.mark)],
      escaped(figure.caption));
}

SamplesPart samples_part(const std::string& folder) {
  std::string sheets;    // of one evaluation each, the latest first
  std::string pictures;  // that somebody has put there
  std::vector<std::string> left_out;
  int64_t total = 0;
  int side = 128;
  for (const std::filesystem::path& path : latest_files(folder + "/samples")) {
    const int64_t size = file_size(path.string());
    if (size > kMostBytes || total + size > kMostOfAll) {
      left_out.push_back(fmt::format(
          "{} ({})", path.filename().string(), text::bytes(std::max(size, int64_t{0}))));
      continue;
    }
    const auto bytes = read_small_file(path.string(), kMostBytes);
    if (!bytes) {
      continue;
    }
    const std::string name = path.stem().string();
    if (path.extension() == ".json") {
      const std::string figures = figures_of(*bytes);
      total += std::ssize(figures);
      sheets += figures.empty() ? ""
                                : fmt::format(
                                      "<details data-name=\"{0}\"{1}><summary>{0}</summary>\n"
                                      "<div class=\"samples\">\n{2}</div></details>\n",
                                      escaped(name),
                                      sheets.empty() ? " open" : "",
                                      figures);
    } else if (bytes->starts_with(kPng)) {
      constexpr size_t kHighBytesOfWidth = 19;
      if (bytes->size() > kHighBytesOfWidth && bytes->substr(16, 3) != std::string(3, '\0')) {
        side = 420;  // 256 pixels or more: a sheet of pictures
      }
      total += size;
      pictures.insert(0,
                      picture_figure({.png_base64 = base64(std::as_bytes(std::span(*bytes))),
                                      .caption = name}));
    }
  }
  if (!pictures.empty()) {
    sheets +=
        fmt::format("<div class=\"samples\" style=\"--side:{}px\">\n{}</div>\n", side, pictures);
  }
  SamplesPart part;
  if (!left_out.empty()) {
    part.left_out = fmt::format(
        "left out of the page: {}. It shows files of at most {}, {} together; they are whole in "
        "samples/",
        fmt::join(left_out, ", "),
        text::bytes(kMostBytes),
        text::bytes(kMostOfAll));
    sheets += fmt::format("<p class=\"note\">Samples {}.</p>\n", escaped(part.left_out));
  }
  part.html = sheets.empty() ? "" : "<h2>Samples</h2>\n" + sheets;
  return part;
}

}  // namespace argosy::runs
