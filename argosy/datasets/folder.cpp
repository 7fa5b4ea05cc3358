#include "argosy/datasets/folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <system_error>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/datasets/encoded_source.h"
#include "argosy/datasets/sets.h"
#include "argosy/image/codec.h"

namespace argosy::datasets {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNames = 10;  // in a message

[[noreturn]] void fail_folder(const std::string& path, const std::string& what) {
  throw DataError("datasets.folder", what, {path});
}

using FolderId = std::pair<dev_t, ino_t>;
/// What a folder lies in, itself included.
using Ancestors = std::set<FolderId>;
/// How often each folder was come to. Links may lead to one from several places; links to folders
/// of links double with each level, and forty of them would never end.
using Visits = std::map<FolderId, int>;
constexpr int kMostVisits = 1000;

struct Listing {
  std::vector<std::string> folders{};  // names, not sorted
  std::vector<std::string> files{};
  std::vector<std::string> broken{};  // links that lead nowhere
};

Listing list(const std::string& path) {
  std::error_code error;
  fs::directory_iterator entry(path, error);
  Listing listing;
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code broken;
    const fs::file_type type = entry->status(broken).type();
    auto& names = type == fs::file_type::directory             ? listing.folders
                  : broken || type == fs::file_type::not_found ? listing.broken
                                                               : listing.files;
    names.push_back(entry->path().filename().string());
  }
  if (error) {
    fail_folder(path,
                error == std::errc::no_such_file_or_directory ? "no such folder"
                : error == std::errc::not_a_directory
                    ? "expected a folder"
                    : "cannot list the folder: " + errno_message(error.value()));
  }
  return listing;
}

std::vector<std::string> lower_case(std::vector<std::string> texts) {
  for (std::string& text : texts) {
    text = strings::to_lower(text);
  }
  return texts;
}

bool has_extension(const std::string& name, const std::vector<std::string>& lower_extensions) {
  const std::string lower = strings::to_lower(name);
  return std::any_of(lower_extensions.begin(),
                     lower_extensions.end(),
                     [&](const std::string& extension) { return lower.ends_with(extension); });
}

/// Adds the folder and all below it to `folders`, each with its images.
struct Folder {
  std::string path{};
  std::vector<std::string> images{};
};

void walk(const std::string& path,
          const Ancestors& above,
          const std::vector<std::string>& extensions,
          Visits& visits,
          std::vector<Folder>& folders) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    fail_folder(path, "cannot open: " + errno_message(errno));
  }
  Ancestors ancestors = above;
  if (!ancestors.emplace(status.st_dev, status.st_ino).second) {
    fail_folder(path, "a link that leads back to a folder that it lies in");
  }
  if (++visits[{status.st_dev, status.st_ino}] > kMostVisits) {
    fail_folder(path,
                fmt::format("links lead to this folder from more than {} places", kMostVisits));
  }
  Listing listing = list(path);
  for (const std::string& name : listing.broken) {
    if (has_extension(name, extensions)) {
      fail_folder(fmt::format("{}/{}", path, name), "a link that leads nowhere");
    }
  }
  Folder& folder = folders.emplace_back(Folder{.path = path});
  std::copy_if(std::make_move_iterator(listing.files.begin()),
               std::make_move_iterator(listing.files.end()),
               std::back_inserter(folder.images),
               [&](const std::string& name) { return has_extension(name, extensions); });
  std::sort(folder.images.begin(), folder.images.end());
  for (const std::string& name : listing.folders) {
    walk(fmt::format("{}/{}", path, name), ancestors, extensions, visits, folders);
  }
}

/// All images at and below `path`, in the order that sorting os.walk() gives.
std::vector<std::string> images_below(const std::string& path, const FolderOptions& options) {
  std::vector<Folder> folders;
  Visits visits;
  walk(path, {}, lower_case(options.extensions), visits, folders);
  std::sort(folders.begin(), folders.end(), [](const Folder& a, const Folder& b) {
    return a.path < b.path;
  });
  std::vector<std::string> images;
  for (const Folder& folder : folders) {
    for (const std::string& name : folder.images) {
      images.push_back(fmt::format("{}/{}", folder.path, name));
    }
  }
  return images;
}

std::string without_slashes(std::string root) {
  while (root.size() > 1 && root.ends_with('/')) {
    root.pop_back();
  }
  return root;
}

}  // namespace

ClassFolder scan_class_folder(const std::string& root, const FolderOptions& options) {
  const std::string base = without_slashes(root);
  ClassFolder found{.classes = list(base).folders};
  if (found.classes.empty()) {
    fail_folder(root, "no class folders: expected ROOT/CLASS/IMAGE");
  }
  std::sort(found.classes.begin(), found.classes.end());
  std::vector<std::string> empty;
  for (size_t label = 0; label < found.classes.size(); ++label) {
    const size_t before = found.samples.size();
    for (std::string& path :
         images_below(fmt::format("{}/{}", base, found.classes[label]), options)) {
      found.samples.push_back({std::move(path), static_cast<int64_t>(label)});
    }
    if (found.samples.size() == before) {
      empty.push_back(found.classes[label]);
    }
  }
  if (!empty.empty() && options.absent == Absent::kError) {
    const size_t shown = std::min(empty.size(), kMostNames);
    fail_folder(
        root,
        fmt::format("{} of {} classes have no image: {}{}. Expected files that end in {}; or allow "
                    ""
                    "it by missing=skip behind --data, Absent::kSkip in code",
                    empty.size(),
                    found.classes.size(),
                    fmt::join(empty.begin(), empty.begin() + static_cast<ptrdiff_t>(shown), ", "),
                    shown < empty.size() ? ", …" : "",
                    fmt::join(options.extensions, " ")));
  }
  return found;
}

std::vector<std::string> scan_image_folder(const std::string& root, const FolderOptions& options) {
  std::vector<std::string> images = images_below(without_slashes(root), options);
  if (images.empty()) {
    fail_folder(root,
                fmt::format("no image in the folder and below: expected files that end in {}",
                            fmt::join(options.extensions, " ")));
  }
  return images;
}

namespace {

class FolderSource final : public EncodedSource {
 public:
  FolderSource(About about, std::vector<FolderSample> files)
      : EncodedSource(std::move(about)), files_(std::move(files)) {}

  [[nodiscard]] int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  [[nodiscard]] Sample get(int64_t index, Scratch& scratch) const override {
    const FolderSample& file = files_.at(static_cast<size_t>(index));
    scratch.bytes = image::read_file(file.path);
    return {.picture = {.bytes = scratch.bytes}, .labels = labels_of(file), .name = file.path};
  }
  [[nodiscard]] std::span<const int64_t> labels(int64_t index, Scratch&) const override {
    return labels_of(files_.at(static_cast<size_t>(index)));
  }

 private:
  [[nodiscard]] std::span<const int64_t> labels_of(const FolderSample& file) const {
    return {&file.label, about().classes.empty() ? size_t{0} : size_t{1}};
  }

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

ClassFolder classes_in(const std::string& path, Absent absent) {
  ClassFolder found = scan_class_folder(path, {.absent = absent});
  if (found.samples.empty()) {
    throw DataError("datasets.folder",
                    fmt::format("no picture in its {} class folder{}",
                                found.classes.size(),
                                found.classes.size() == 1 ? "" : "s"),
                    {path});
  }
  return found;
}

using SplitFolders = std::vector<std::pair<const char*, std::string>>;

/// PATH/train, PATH/valid (or val) and PATH/test, those of them that are there. None where
/// PATH/train is not there, or has no folders: then it is a class.
SplitFolders split_folders(const std::string& path) {
  SplitFolders found;
  if (!has_folders(path + "/train")) {
    return found;
  }
  for (const auto& [split, folder] :
       {std::pair{"train", "/train"}, {"valid", "/valid"}, {"valid", "/val"}, {"test", "/test"}}) {
    std::error_code error;
    if (fs::is_directory(path + folder, error)) {
      found.emplace_back(split, path + folder);
    }
  }
  return found;
}

std::shared_ptr<const Source> open_split_folders(const std::string& path,
                                                 const SplitFolders& folders,
                                                 Absent absent) {
  About about{.set = "folder", .path = path};
  std::vector<FolderSample> files;
  for (const auto& [split, folder] : folders) {
    ClassFolder found = classes_in(folder, absent);
    if (files.empty()) {
      about.classes = found.classes;
    }
    if (found.classes != about.classes) {
      throw DataError("datasets.folder",
                      fmt::format("its classes are {}, those of {} are {}",
                                  fmt::join(found.classes, ", "),
                                  folders.front().second,
                                  fmt::join(about.classes, ", ")),
                      {folder});
    }
    about.splits.push_back({split, std::ssize(files), std::ssize(found.samples)});
    std::ranges::move(found.samples, std::back_inserter(files));
  }
  return std::make_shared<const FolderSource>(std::move(about), std::move(files));
}

std::shared_ptr<const Source> open_folder(const OpenOptions& options) {
  const std::string& path = options.path;
  if (!has_folders(path)) {
    return open_files({path});
  }
  if (const SplitFolders splits = split_folders(path); !splits.empty()) {
    return open_split_folders(path, splits, options.absent);
  }
  ClassFolder found = classes_in(path, options.absent);
  return std::make_shared<const FolderSource>(
      About{.set = "folder", .path = path, .classes = std::move(found.classes)},
      std::move(found.samples));
}

}  // namespace

std::shared_ptr<const Source> open_files(const std::vector<std::string>& paths) {
  std::vector<FolderSample> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::is_regular_file(path, error)) {
      files.push_back({.path = path});
      continue;
    }
    if (!fs::exists(path, error)) {
      fail_folder(path, "no such file or folder");
    }
    for (std::string& file : scan_image_folder(path)) {
      files.push_back({.path = std::move(file)});
    }
  }
  About about{.set = "folder", .path = paths.size() == 1 ? paths.front() : ""};
  return std::make_shared<const FolderSource>(std::move(about), std::move(files));
}

const Row& folder() {
  static const Row row{.name = "folder",
                       .title = "A folder for each class; or train, valid and test with these",
                       .instead = "It is yours: give its path",
                       .options = {{"absent", "classes without a picture"}},
                       .augment = "resized_crop,flip",
                       .mean = kImageNetMean,
                       .std = kImageNetStd,
                       .open = open_folder};
  return row;
}

}  // namespace argosy::datasets
