#include "argosy/datasets/sets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/datasets/files.h"
#include "argosy/os/fd.h"

namespace argosy::datasets {
namespace {

namespace fs = std::filesystem;

bool is_record_file(const std::string& path) {
  constexpr std::string_view kMagic = "ARGOREC\n";
  const Result<std::string> begin = os::read_head(path, kMagic.size());
  return begin.ok() && *begin == kMagic;
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

// Addresses are those of the sets' authors, of torchvision and of Paddle: the last have no limit of
// connections and are near to China, the others near to the rest of the world.
const std::vector<const Row*>& rows() {
  static const std::vector<const Row*> all{&mnist(),
                                           &fashion_mnist(),
                                           &mnist_json(),
                                           &cifar10(),
                                           &cifar100(),
                                           &svhn(),
                                           &flowers102(),
                                           &voc2012(),
                                           &keypoints(),
                                           &folder(),
                                           &records()};
  return all;
}

const Row* find_row(std::string_view name) {
  const auto found = std::ranges::find(rows(), name, &Row::name);
  return found == rows().end() ? nullptr : *found;
}

const Row& row_of(std::string_view name) {
  if (const Row* row = find_row(name)) {
    return *row;
  }
  std::vector<std::string> names;
  std::ranges::transform(rows(), std::back_inserter(names), &Row::name);
  const auto meant = strings::closest(name, names);
  throw UsageError("datasets.name",
                   fmt::format("unknown data set \"{}\". {}",
                               name,
                               meant ? fmt::format("Did you mean {}?", *meant)
                                     : fmt::format("Expected one of {}", fmt::join(names, ", "))));
}

const Row& row_of_path(const std::string& path) {
  const std::string name = recognise(path);
  if (name.empty()) {
    throw DataError(
        "datasets.name", "neither its name nor its content says which set it is", {path});
  }
  return row_of(name);
}

std::shared_ptr<const Source> open(std::string_view name, OpenOptions options) {
  return open(row_of(name), std::move(options));
}

std::string recognise(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return set_of_folder(path);
  }
  return fs::is_regular_file(path, error) ? set_of_file(path) : "";
}

}  // namespace argosy::datasets
