#include "argosy/datasets/cifar_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/formats/file_reader.h"
#include "argosy/formats/shown_name.h"

namespace argosy::datasets {
namespace {

constexpr int kTrainBatches = 5;  // of CIFAR-10

/// What a file is by its name.
struct Role {
  bool names = false;  // of classes; else a batch
  CifarPart part = CifarPart::kTrain;
  int number = 0;  // of CIFAR-10's training batches, from 1
};

std::optional<Role> role_of(std::string_view name) {
  constexpr std::string_view kNumbered = "data_batch_";
  for (const std::string_view names : {"batches.meta",
                                       "batches.meta.txt",
                                       "meta",
                                       "fine_label_names.txt",
                                       "coarse_label_names.txt"}) {
    if (name == names) {
      return Role{.names = true};
    }
  }
  if (name.ends_with(".bin")) {
    name.remove_suffix(4);
  }
  if (name == "train") {
    return Role{};
  }
  if (name == "test" || name == "test_batch") {
    return Role{.part = CifarPart::kTest};
  }
  if (name.starts_with(kNumbered)) {
    const auto number = strings::parse_int(name.substr(kNumbered.size()));
    if (number && *number > 0 && *number <= kTrainBatches) {
      return Role{.number = static_cast<int>(*number)};
    }
  }
  return std::nullopt;
}

bool is_wanted(std::string_view name, CifarPart part) {
  const std::optional<Role> role = role_of(name);
  return role && (role->names || role->part == part);
}

std::string_view base_name(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

std::string_view folder_of(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
}

using Folders = std::map<std::string, std::vector<CifarFile>>;

/// Counts a file that was read. Errors: all together are more than
/// formats::ArchiveLimits::total_bytes.
void charge(const CifarFile& file, const CifarOptions& options, int64_t& total) {
  total += static_cast<int64_t>(file.bytes.size());
  if (total > options.limits.total_bytes) {
    throw DataError("datasets.cifar",
                    fmt::format("the files so far take more than {} bytes of memory. If it is "
                                "sound, raise ArchiveLimits::total_bytes",
                                options.limits.total_bytes),
                    {file.place});
  }
}

Folders read_archive(const std::string& path, const CifarOptions& options) {
  formats::ArchiveReader reader(path, options.limits);
  Folders folders;
  int64_t total = 0;
  while (const std::optional<formats::ArchiveMember> member = reader.next()) {
    const std::string_view name = base_name(member->name);
    if (is_wanted(name, options.part)) {
      auto& files = folders[std::string(folder_of(member->name))];
      files.push_back({reader.place(), std::string(name), reader.read_all()});
      charge(files.back(), options, total);
    }
  }
  return folders;
}

std::vector<uint8_t> read_whole(const std::string& path, int64_t limit) {
  constexpr size_t kFirst = size_t{64} * 1024;
  formats::FileReader reader(path);
  std::vector<uint8_t> bytes;
  while (true) {
    const size_t have = bytes.size();
    bytes.resize(std::max(kFirst, have * 2));
    const size_t got = reader.read(std::span(bytes).subspan(have));
    bytes.resize(have + got);
    if (got == 0) {
      return bytes;
    }
    if (static_cast<int64_t>(bytes.size()) > limit) {
      throw DataError(
          "datasets.cifar",
          fmt::format("more than {} bytes. If it is sound, raise ArchiveLimits::member_bytes",
                      limit),
          {path});
    }
  }
}

bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> entries;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    entries.push_back(at->path());
  }
  if (error) {
    throw DataError(
        "datasets.cifar", "cannot list the folder: " + error.message(), {folder.string()});
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool has_batches(const std::vector<std::filesystem::path>& entries, CifarPart part) {
  return std::any_of(entries.begin(), entries.end(), [&](const std::filesystem::path& entry) {
    const std::optional<Role> role = role_of(entry.filename().string());
    return role && !role->names && role->part == part && is_file(entry);
  });
}

/// The folder's own files or, where it has no batch, those of the folders in it.
Folders read_folder(const std::string& path, const CifarOptions& options) {
  std::map<std::string, std::vector<std::filesystem::path>> found;
  const std::vector<std::filesystem::path> entries = entries_of(path);
  if (has_batches(entries, options.part)) {
    found[path] = entries;
  } else {
    for (const std::filesystem::path& entry : entries) {
      std::error_code ignored;
      if (std::filesystem::is_directory(entry, ignored)) {
        found[entry.string()] = entries_of(entry);
      }
    }
  }
  Folders folders;
  int64_t total = 0;
  for (const auto& [folder, inside] : found) {
    if (!has_batches(inside, options.part)) {
      continue;
    }
    for (const std::filesystem::path& entry : inside) {
      const std::string name = entry.filename().string();
      if (is_wanted(name, options.part) && is_file(entry)) {
        folders[folder].push_back(
            {entry.string(), name, read_whole(entry.string(), options.limits.member_bytes)});
        charge(folders[folder].back(), options, total);
      }
    }
  }
  return folders;
}

/// The only folder that has batches.
std::vector<CifarFile> choose(const std::string& path, Folders folders, CifarPart part) {
  std::erase_if(folders, [](const auto& folder) {
    return std::all_of(folder.second.begin(), folder.second.end(), [](const CifarFile& file) {
      return role_of(file.name)->names;
    });
  });
  if (folders.empty()) {
    throw DataError("datasets.cifar",
                    fmt::format("no batches of the {} part: expected {}, with or without .bin",
                                part == CifarPart::kTrain ? "training" : "test",
                                part == CifarPart::kTrain ? "data_batch_1 to data_batch_5 or train"
                                                          : "test_batch or test"),
                    {path});
  }
  if (folders.size() > 1) {
    std::vector<std::string> names;
    for (const auto& [name, files] : folders) {
      names.push_back(formats::shown_name(name));
    }
    throw DataError(
        "datasets.cifar",
        fmt::format("batches in several folders: {}. Name one of them", fmt::join(names, ", ")),
        {path});
  }
  return std::move(folders.begin()->second);
}

/// All five, each once; or one.
void check_numbers(const std::string& path, const std::vector<CifarFile>& batches) {
  std::vector<int> numbers;
  for (const CifarFile& batch : batches) {
    numbers.push_back(role_of(batch.name)->number);
  }
  for (size_t i = 1; i < numbers.size(); ++i) {
    if (numbers[i] == numbers[i - 1] || numbers[0] == 0) {
      throw DataError("datasets.cifar",
                      fmt::format("a second batch of the same part beside {}: which one is meant?",
                                  batches[i - 1].name),
                      {batches[i].place});
    }
  }
  for (int i = 0; numbers[0] > 0 && i < kTrainBatches; ++i) {
    if (i >= static_cast<int>(numbers.size()) || numbers[i] != i + 1) {
      throw DataError(
          "datasets.cifar",
          fmt::format("data_batch_{} is missing: expected data_batch_1 to data_batch_{}",
                      i + 1,
                      kTrainBatches),
          {path});
    }
  }
}

}  // namespace

CifarFiles read_cifar_files(const std::string& path, const CifarOptions& options) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  if (!folder && formats::archive_kind(path) == formats::ArchiveKind::kNone) {
    const std::string name(base_name(path));
    return {{{path, name, read_whole(path, options.limits.member_bytes)}}, {}};
  }
  std::vector<CifarFile> files =
      choose(path, folder ? read_folder(path, options) : read_archive(path, options), options.part);
  CifarFiles result;
  for (CifarFile& file : files) {
    (role_of(file.name)->names ? result.names : result.batches).push_back(std::move(file));
  }
  std::stable_sort(
      result.batches.begin(), result.batches.end(), [](const CifarFile& a, const CifarFile& b) {
        return role_of(a.name)->number < role_of(b.name)->number;
      });
  check_numbers(path, result.batches);
  return result;
}

}  // namespace argosy::datasets
