/// Makes JPEGs of the sizes of ImageNet's (500×375 and about 110 KB on average) from the three
/// photographs of tests/data, for a machine that has no pictures.
///
///     gpu_pictures FOLDER [--files 256] [--links 48]
///
/// FOLDER gets eight classes with `files` different files together, each under `links` names.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>

#include "argosy/image/codec.h"
#include "argosy/image/resize.h"
#include "argosy/program/command_line.h"

namespace {

namespace fs = std::filesystem;
using argosy::image::Image;

constexpr int kClasses = 8;
constexpr int kPhotographs = 3;
constexpr int kQuality = 95;
constexpr int kNoise = 16;  ///< of a camera, at most; it makes the files as large as ImageNet's

struct Options {
  std::string folder{};
  std::string photographs = "tests/data/images";
  int files = 256;
  int links = 48;
};

/// Noise makes each file another, and as hard to decode as one from a camera.
Image noisy(Image picture, unsigned int seed) {
  std::mt19937 draw(seed);
  auto* const values = picture.row<uint8_t>(0);
  for (size_t i = 0; i < picture.total_bytes(); ++i) {
    const int noise = static_cast<int>(draw() % (2 * kNoise + 1)) - kNoise;
    values[i] = static_cast<uint8_t>(std::clamp(values[i] + noise, 0, 255));
  }
  return picture;
}

void make(const Options& options) {
  size_t bytes = 0;
  for (int i = 0; i < options.files; ++i) {
    const fs::path folder = fs::path(options.folder) / std::to_string(i % kClasses);
    fs::create_directories(folder);
    const Image photograph = argosy::image::decode_file(
        fmt::format("{}/flower_{}.jpg", options.photographs, i % kPhotographs + 1));
    const bool upright = i % 4 == 3;
    const Image picture = argosy::image::resize(
        photograph, {.height = upright ? 500 : 375, .width = upright ? 375 : 500});
    const auto jpeg =
        argosy::image::encode_jpeg(noisy(picture, static_cast<unsigned int>(i)), kQuality);
    const auto name = [&](int link) { return folder / fmt::format("{}_{}.jpg", i, link); };
    argosy::image::write_file(name(0), jpeg);
    for (int link = 1; link < options.links; ++link) {
      fs::create_hard_link(name(0), name(link));
    }
    bytes += jpeg.size();
  }
  fmt::print("{} pictures, {} different ones of {} KB on average\n",
             options.files * options.links,
             options.files,
             bytes / static_cast<size_t>(options.files) / 1000);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  return argosy::program::run(
      {"Makes JPEGs of the sizes of ImageNet's."},
      {{"folder", "", "Where they go", &options.folder, {.required = true}},
       {"--photographs", "FOLDER", "With flower_1.jpg to flower_3.jpg", &options.photographs},
       {"--files", "N", "Different pictures", &options.files, {.least = 1}},
       {"--links", "N", "Names of each", &options.links, {.least = 1}}},
      argc,
      argv,
      [&] { make(options); });
}
