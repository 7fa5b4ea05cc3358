#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace argosy::runs {

/// A picture with a caption, on a page.
struct PagePicture {
  std::string png{};  ///< the bytes of a PNG file; empty: a gray square
  std::string caption{};
  enum class Mark : uint8_t { kNone, kRight, kWrong };
  Mark mark = Mark::kNone;  ///< gives the caption a color
  /// Points as x, y, x, y, … in pixels. A NaN draws nothing. These are red; the true ones are blue.
  std::vector<float> points{};
  std::vector<float> true_points{};
  /// Size of the picture to which the points refer. `png` may be smaller.
  int width = 1;
  int height = 1;
};

/// A named number, drawn as a bar.
struct Bar {
  std::string name{};
  int64_t value = 0;
};

/// The content of write_picture_page(), from the top.
struct PicturePage {
  std::string title{};
  std::string note{};  ///< a line below the title
  std::vector<Bar> bars{};
  std::vector<PagePicture> pictures{};
  int side = 128;  ///< least width of a picture, in the browser's pixels
};

/// Writes a page that shows pictures: one HTML file, which needs no other file, no script and no
/// network. Texts are shown letter by letter, so they may come from anywhere.
///
///     write_picture_page("faces.html", {.title = "Faces", .pictures = pictures});
///
/// Errors: DataError "runs.write" with path.
void write_picture_page(const std::string& path, const PicturePage& page);

/// Returns what is wrong with the name of a page that is to be written, also where a file of
/// another kind has it already; empty: nothing. For program::Limits::check.
[[nodiscard]] std::string page_name(const std::string& path);

/// Writes `folder`/samples/`name`.json, which the run's page shows: captions, marks and pictures.
/// Errors: DataError "runs.write" with path.
void write_samples(const std::string& folder,
                   const std::string& name,
                   const std::vector<PagePicture>& pictures);

}  // namespace argosy::runs
