#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/datasets/folder.h"
#include "argosy/datasets/sources.h"
#include "argosy/image/codec.h"

namespace argosy::datasets {
namespace {

namespace fs = std::filesystem;

class FolderSource final : public SampleSource {
 public:
  FolderSource(Description description, std::vector<FolderSample> files)
      : SampleSource(std::move(description)), files_(std::move(files)) {}

  [[nodiscard]] int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  [[nodiscard]] formats::PackedSample get(int64_t index,
                                          std::vector<uint8_t>& scratch) const override {
    const FolderSample& file = files_.at(static_cast<size_t>(index));
    scratch = image::read_file(file.path);
    formats::PackedSample sample{.name = file.path, .picture = std::as_bytes(std::span(scratch))};
    if (!description().classes.empty()) {
      sample.labels = {file.label};
    }
    return sample;
  }

  [[nodiscard]] int64_t label(int64_t index) const override {
    return description().classes.empty() ? -1 : files_.at(static_cast<size_t>(index)).label;
  }

 private:
  std::vector<FolderSample> files_;
};

bool has_folders(const std::string& path) {
  std::error_code error;
  const auto begin = fs::directory_iterator(path, error);
  return !error && std::any_of(begin, fs::end(begin), [](const fs::directory_entry& entry) {
    std::error_code ignored;
    return entry.is_directory(ignored);
  });
}

}  // namespace

std::unique_ptr<SampleSource> open_folder(const std::string& path) {
  if (!has_folders(path)) {
    return open_image_folder(path);
  }
  ClassFolder found = scan_class_folder(path, {.empty_class = EmptyClass::kKeep});
  if (found.samples.empty()) {
    throw DataError("datasets.folder",
                    fmt::format("no picture in its {} class folder{}",
                                found.classes.size(),
                                found.classes.size() == 1 ? "" : "s"),
                    {path});
  }
  return std::make_unique<FolderSource>(
      Description{.set = "folder", .path = path, .classes = std::move(found.classes)},
      std::move(found.samples));
}

std::unique_ptr<SampleSource> open_image_folder(const std::string& path) {
  std::vector<FolderSample> files;
  for (std::string& file : scan_image_folder(path)) {
    files.push_back({.path = std::move(file)});
  }
  return std::make_unique<FolderSource>(Description{.set = "folder", .path = path},
                                        std::move(files));
}

}  // namespace argosy::datasets
