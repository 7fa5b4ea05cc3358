#include "argosy/datasets/source.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/datasets/files.h"
#include "argosy/datasets/row.h"
#include "argosy/image/codec.h"

namespace argosy::datasets {
namespace {

namespace fs = std::filesystem;

bool is_record_file(const std::string& path) {
  constexpr std::string_view kMagic = "ARGOREC\n";
  std::array<char, kMagic.size()> begin{};
  std::ifstream file(path, std::ios::binary);
  return file.read(begin.data(), begin.size()) &&
         std::string_view(begin.data(), begin.size()) == kMagic;
}

std::string set_of_folder(const std::string& path) {
  for (const Row* row : rows()) {
    if (!find_file(path, row->in_folder).empty()) {
      const bool clothes = row->name == "mnist" && path.find("fashion") != std::string::npos;
      return clothes ? "fashion_mnist" : row->name;  // whose files have the same names
    }
  }
  return "folder";
}

std::string set_of_file(const std::string& path) {
  if (is_record_file(path)) {
    return "records";
  }
  const std::string name = fs::path(path).filename().string();
  for (const Row* row : rows()) {
    if (!row->in_name.empty() && name.find(row->in_name) != std::string::npos) {
      return row->name;
    }
  }
  return "";
}

}  // namespace

std::unique_ptr<Source> open(const std::string& set, const std::string& path) {
  return row_of(set).open(path);
}

std::string recognise(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return set_of_folder(path);
  }
  return fs::is_regular_file(path, error) ? set_of_file(path) : "";
}

image::Image picture_of(const formats::PackedSample& sample, image::Damaged damaged) {
  if (sample.kind == formats::Picture::kEncoded) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(sample.picture.data());
    return image::decode({bytes, sample.picture.size()}, {.damaged = damaged, .name = sample.name});
  }
  const image::Order order = sample.channels == 1   ? image::Order::kGray
                             : sample.channels == 3 ? image::Order::kRgb
                                                    : image::Order::kRgba;
  image::Image picture(
      {.height = static_cast<int>(sample.height), .width = static_cast<int>(sample.width)}, order);
  std::memcpy(picture.data(), sample.picture.data(), sample.picture.size());
  return picture;
}

}  // namespace argosy::datasets
