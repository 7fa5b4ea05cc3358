#include "argosy/datasets/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "argosy/base/error.h"
#include "argosy/datasets/fetch.h"
#include "argosy/formats/digest.h"

namespace argosy::datasets {
namespace {

namespace fs = std::filesystem;

void keep_one_of_alternatives(const Row& set, std::vector<CheckedFile>& files) {
  if (!set.one_file_is_enough) {
    return;
  }
  const CheckedFile first = files.front();
  std::erase_if(files, [](const CheckedFile& file) { return file.state == FileState::kMissing; });
  if (files.empty()) {
    files.push_back(first);
  }
}

/// All that the file may rightly be.
std::vector<Published> right_ones(const PublishedFile& file) {
  std::vector<Published> all = file.also_right;
  all.insert(all.begin(), file.published);
  return all;
}

bool has_length(const PublishedFile& file, int64_t bytes) {
  const std::vector<Published> all = right_ones(file);
  return std::ranges::find(all, bytes, &Published::bytes) != all.end();
}

bool has_md5(const PublishedFile& file, const std::string& md5) {
  const std::vector<Published> all = right_ones(file);
  return std::ranges::find(all, md5, &Published::md5) != all.end();
}

/// How many of the set's files bear the names of files in the folder, and how many their length
/// too: MNIST and Fashion-MNIST differ in nothing else.
std::pair<int, int> likeness(const Row& set, const std::string& folder) {
  std::pair<int, int> count{0, 0};
  for (const PublishedFile& file : set.files) {
    std::error_code error;
    const auto bytes = static_cast<int64_t>(fs::file_size(fs::path(folder) / file.name, error));
    count.second += error ? 0 : 1;
    count.first += !error && has_length(file, bytes) ? 1 : 0;
  }
  return count;
}

Verified verify_folder(const std::string& folder) {
  const Row* best = nullptr;
  std::pair<int, int> most{0, 0};
  for (const Row* set : rows()) {
    if (const auto count = likeness(*set, folder); count > most) {
      most = count;
      best = set;
    }
  }
  if (best == nullptr) {
    throw UsageError("datasets.verify",
                     fmt::format("{} has no file of a known set. To see what is missing: argosy "
                                 "data verify NAME {}",
                                 folder,
                                 folder));
  }
  return verify(best->name, folder);
}

Verified verify_file(const std::string& path) {
  const std::string sum = formats::file_digest(formats::Digest::kMd5, path);
  const std::string name = fs::path(path).filename().string();
  const Row* set_of_name = nullptr;
  const PublishedFile* file_of_name = nullptr;
  for (const Row* set : rows()) {
    for (const PublishedFile& file : set->files) {
      if (has_md5(file, sum)) {
        return {set->name, "", {check_file(path, file)}};
      }
      if (file.name == name && set_of_name == nullptr) {
        set_of_name = set;
        file_of_name = &file;
      }
    }
  }
  if (set_of_name == nullptr) {
    throw UsageError(
        "datasets.verify",
        fmt::format("{} is not one of the published files: neither its MD5 ({}) nor its "
                    "name is known",
                    path,
                    sum));
  }
  return {set_of_name->name, "", {check_file(path, *file_of_name)}};
}

}  // namespace

std::string_view to_string(FileState state) {
  switch (state) {
    case FileState::kFine:
      return "fine";
    case FileState::kMissing:
      return "missing";
    case FileState::kDamaged:
      return "damaged";
  }
  return "?";
}

CheckedFile check_file(const std::string& path, const PublishedFile& known) {
  CheckedFile file{.path = path, .known = known};
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    file.reason = "is not there";
    return file;
  }
  file.state = FileState::kDamaged;
  if (error || !fs::is_regular_file(status)) {
    file.reason =
        error ? "cannot be looked at: " + errno_message(error.value()) : "is not a regular file";
    return file;
  }
  file.bytes = static_cast<int64_t>(fs::file_size(path, error));
  if (!has_length(known, file.bytes)) {
    file.reason = fmt::format("expected {} bytes, got {}", known.published.bytes, file.bytes);
    return file;
  }
  try {
    file.md5 = formats::file_digest(formats::Digest::kMd5, path);
  } catch (const DataError& bad) {
    file.reason = bad.what();
    return file;
  }
  if (has_md5(known, file.md5)) {
    file.state = FileState::kFine;
  } else {
    file.reason = fmt::format("expected MD5 {}, got {}", known.published.md5, file.md5);
  }
  return file;
}

bool Verified::fine() const {
  return std::ranges::all_of(
      files, [](const CheckedFile& file) { return file.state == FileState::kFine; });
}

Verified verify(std::string_view name, const std::string& folder) {
  return verify(row_of(name), folder.empty() ? folder_of(name) : folder);
}

Verified verify(const Row& set, const std::string& folder) {
  if (set.files.empty()) {
    throw UsageError("datasets.verify",
                     fmt::format("nobody publishes MD5s for {}: there is nothing to compare with. "
                                 "argosy data info {} PATH reads all of it",
                                 set.name,
                                 set.name));
  }
  Verified verified{.set = set.name, .folder = folder};
  for (const PublishedFile& file : set.files) {
    verified.files.push_back(check_file((fs::path(folder) / file.name).string(), file));
  }
  keep_one_of_alternatives(set, verified.files);
  return verified;
}

Verified verify_path(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) ? verify_folder(path) : verify_file(path);
}

}  // namespace argosy::datasets
