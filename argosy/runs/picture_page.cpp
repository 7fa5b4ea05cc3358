#include "argosy/runs/picture_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>

#include "argosy/base/text.h"
#include "argosy/runs/files.h"
#include "argosy/runs/html.h"
#include "argosy/runs/page_parts.h"

#include <nlohmann/json.hpp>

namespace argosy::runs {
namespace {

std::string base64_of(const PagePicture& picture) {
  return base64(std::as_bytes(std::span(picture.png)));
}

std::string dots(const std::vector<float>& points, double radius, std::string_view kind) {
  std::string text;
  for (size_t i = 0; i + 1 < points.size(); i += 2) {
    if (std::isfinite(points[i]) && std::isfinite(points[i + 1])) {
      // A coordinate of 0 is the middle of the first pixel.
      text += fmt::format("<circle class=\"{}\" cx=\"{:g}\" cy=\"{:g}\" r=\"{:g}\"/>",
                          kind,
                          points[i] + 0.5,
                          points[i + 1] + 0.5,
                          radius);
    }
  }
  return text;
}

std::string figure_of(const PagePicture& picture) {
  const double radius = 0.012 * std::max(picture.width, picture.height);
  const std::string all_dots =
      dots(picture.true_points, radius, "true") + dots(picture.points, radius, "said");
  return picture_figure({.png_base64 = base64_of(picture),
                         .caption = picture.caption,
                         .mark = picture.mark,
                         .over = all_dots.empty()
                                     ? ""
                                     : fmt::format("<svg viewBox=\"0 0 {} {}\">{}</svg>",
                                                   picture.width,
                                                   picture.height,
                                                   all_dots)});
}

/// Bars below each other, with their names and numbers.
std::string bar_rows(const std::vector<Bar>& bars, int64_t most) {
  constexpr int kRow = 20;
  std::string text = fmt::format("<svg class=\"bars\" height=\"{}\">", kRow * bars.size());
  for (size_t i = 0; i < bars.size(); ++i) {
    const double share = 60.0 * static_cast<double>(bars[i].value) / static_cast<double>(most);
    text += fmt::format(
        "<svg y=\"{}\" height=\"{}\"><text x=\"24%\" y=\"14\" text-anchor=\"end\">{}</text>"
        "<rect x=\"25%\" y=\"3\" width=\"{:.2f}%\" height=\"14\" fill=\"var(--c{})\"/>"
        "<text x=\"{:.2f}%\" y=\"14\">{}</text></svg>\n",
        i * kRow,
        kRow,
        escaped(bars[i].name),
        share,
        i % 8,
        share + 25.5,
        text::count(bars[i].value));
  }
  return text + "</svg>\n";
}

/// Bars beside each other; the pointer shows their names and numbers.
std::string bar_columns(const std::vector<Bar>& bars, int64_t most) {
  std::string text = fmt::format(
      "<svg class=\"bars\" viewBox=\"0 0 {} 100\" preserveAspectRatio=\"none\" height=\"160\">\n",
      bars.size());
  for (size_t i = 0; i < bars.size(); ++i) {
    const double height = 100.0 * static_cast<double>(bars[i].value) / static_cast<double>(most);
    text += fmt::format(
        "<rect x=\"{}\" y=\"{:.2f}\" width=\"0.8\" height=\"{:.2f}\" fill=\"var(--c{})\">"
        "<title>{}: {}</title></rect>\n",
        i,
        100 - height,
        height,
        i % 8,
        escaped(bars[i].name),
        text::count(bars[i].value));
  }
  return text + fmt::format("</svg>\n<p class=\"facts\">{} bars, the highest {}</p>\n",
                            text::count(std::ssize(bars)),
                            text::count(most));
}

std::string bars_part(const std::vector<Bar>& bars) {
  constexpr size_t kMostRows = 40;
  if (bars.empty()) {
    return "";
  }
  const int64_t most = std::max<int64_t>(1, std::ranges::max(bars, {}, &Bar::value).value);
  return fmt::format("<div class=\"card bars\">\n{}</div>\n",
                     bars.size() <= kMostRows ? bar_rows(bars, most) : bar_columns(bars, most));
}

}  // namespace

void write_picture_page(const std::string& path, const PicturePage& page) {
  std::string figures;
  bool has_truth = false;
  for (const PagePicture& picture : page.pictures) {
    figures += figure_of(picture);
    has_truth = has_truth || !picture.true_points.empty();
  }
  std::string body =
      fmt::format("<header><h1>{}</h1></header>\n<p class=\"facts\"><span>{}</span>{}</p>\n{}",
                  escaped(page.title),
                  escaped(page.note),
                  has_truth ? "<span class=\"true\">● true</span><span class=\"said\">● "
                              "predicted</span>"
                            : "",
                  bars_part(page.bars));
  body +=
      fmt::format("<div class=\"samples\" style=\"--side:{}px\">\n{}</div>\n", page.side, figures);
  replace_file(path, page_document({.title = page.title, .body = std::move(body)}));
}

std::string page_name(const std::string& path) {
  if (!path.ends_with(".html")) {
    return path + ": expected a name that ends with .html";
  }
  std::error_code error;
  const std::filesystem::file_status there = std::filesystem::status(path, error);
  if (!std::filesystem::exists(there)) {
    return "";
  }
  if (!std::filesystem::is_regular_file(there)) {  // a pipe would wait for a writer
    return path + ": expected the name of a page to write, and it is not a regular file";
  }
  constexpr int64_t kEnd = 1024;
  const int64_t size = file_size(path);
  const std::string end = read_piece(path, std::max<int64_t>(0, size - kEnd), kEnd);
  return size == 0 || end.find(kPageMark) != std::string::npos
             ? ""
             : path +
                   " is there and is not a page by Argosy: nothing else is overwritten. Choose "
                   "another name, or remove it first";
}

void write_samples(const std::string& folder,
                   const std::string& name,
                   const std::vector<PagePicture>& pictures) {
  auto all = nlohmann::ordered_json::array();
  for (const PagePicture& picture : pictures) {
    all.push_back({{"caption", picture.caption},
                   {"mark", static_cast<int>(picture.mark)},
                   {"png", base64_of(picture)}});
  }
  make_folder(folder + "/samples");
  replace_file(folder + "/samples/" + name + ".json",
               all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace argosy::runs
