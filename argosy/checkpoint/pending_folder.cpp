#include "argosy/checkpoint/pending_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "argosy/base/error.h"
#include "argosy/checkpoint/checksum.h"
#include "argosy/os/folder_lock.h"
#include "argosy/os/whole_file.h"

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWriting = ".tmp-";
constexpr std::string_view kRemoving = ".old-";
constexpr std::string_view kReplaced = ".was-";  // its successor gets its name
constexpr size_t kPiece = size_t{4} << 20;       // stays in the cache between checksum and write

[[noreturn]] void fail(const std::string& path, std::string_view step, int code) {
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  const bool closed = code == EACCES || code == EROFS || code == EPERM;
  throw CheckpointError("checkpoint.save",
                        fmt::format("cannot {}: {}. {}Checkpoints that were there are untouched",
                                    step,
                                    errno_message(code),
                                    full     ? "Free some space, or keep fewer (keep_last). "
                                    : closed ? "Give a folder that may be written to. "
                                             : ""),
                        {path, {}});
}

std::string temporary_name(const std::string& place, std::string_view kind) {
  static std::atomic<int> count{0};
  const fs::path path(place);
  return (path.parent_path() /
          fmt::format(".{}{}{}-{}", path.filename().string(), kind, ::getpid(), count++))
      .string();
}

os::UniqueFd open_folder(const std::string& path) {
  auto fd = os::open_file(path, O_RDONLY | O_DIRECTORY);
  return fd.ok() ? *std::move(fd) : os::UniqueFd();
}

/// Is `fd` still what lies at `path`?
bool still_there(const os::UniqueFd& fd, const std::string& path) {
  struct stat own {};
  struct stat other {};
  return ::fstat(fd.get(), &own) == 0 && ::stat(path.c_str(), &other) == 0 &&
         own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// What temporary_name() has made.
struct TemporaryName {
  std::string_view name{};  ///< of the place
  std::string_view kind{};
};

std::optional<TemporaryName> parsed(std::string_view text) {
  for (const std::string_view kind : {kWriting, kRemoving, kReplaced}) {
    const size_t at = text.rfind(kind);
    if (text.starts_with('.') && at != std::string_view::npos && at > 1) {
      const std::string_view numbers = text.substr(at + kind.size());
      const size_t dash = std::min(numbers.find('-'), numbers.size());
      if (is_number(numbers.substr(0, dash)) &&
          is_number(numbers.substr(std::min(dash + 1, numbers.size())))) {
        return TemporaryName{text.substr(1, at - 1), kind};
      }
    }
  }
  return std::nullopt;
}

/// True if a checkpoint may have all that lies there, and somebody else's folder hardly.
bool has_our_files_only(const fs::path& folder) {
  std::error_code error;
  const auto is_ours = [](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    const bool is_known = name == ".metadata" ||
                          std::ranges::any_of(std::array{".safetensors", ".json", ".distcp"},
                                              [&](const char* end) { return name.ends_with(end); });
    std::error_code ignored;
    return is_known && entry.symlink_status(ignored).type() == fs::file_type::regular;
  };
  fs::directory_iterator entries(folder, error);
  return !error && std::ranges::all_of(entries, is_ours);
}

/// Puts `temporary` in the place of what is there, which gets its name.
bool swap_names(const std::string& temporary, const std::string& place) {
  return ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

ManifestFile write_file(const std::string& folder,
                        const std::string& name,
                        const std::vector<std::span<const std::byte>>& pieces) {
  const std::string path = (fs::path(folder) / name).string();
  auto fd = os::open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (!fd.ok()) {
    fail(path, "create", fd.failure().error_number);
  }
  FileChecksums checksums;
  ManifestFile file{.name = name};
  for (std::span<const std::byte> rest : pieces) {
    while (!rest.empty()) {
      const auto piece = rest.first(std::min(rest.size(), kPiece));
      checksums.update(piece);
      if (const Status status = os::write_all(fd->get(), piece); !status.ok()) {
        fail(path, "write", status.failure().error_number);
      }
      file.bytes += static_cast<int64_t>(piece.size());
      rest = rest.subspan(piece.size());
    }
  }
  if (::fsync(fd->get()) != 0) {
    fail(path, "bring to the disk", errno);
  }
  if (::close(fd->release()) != 0) {  // network file systems tell a full disk here
    fail(path, "close", errno);
  }
  file.checksum = checksums.text();
  file.blocks = checksums.blocks();
  return file;
}

ManifestFile write_file(const std::string& folder, const std::string& name, std::string_view text) {
  return write_file(folder, name, {std::as_bytes(std::span(text))});
}

PendingFolder::PendingFolder(std::string directory, const std::string& name)
    : directory_(std::move(directory)), place_((fs::path(directory_) / name).string()) {
  while (!lock_) {
    temporary_ = temporary_name(place_, kWriting);
    if (::mkdir(temporary_.c_str(), 0777) != 0) {
      if (errno == EEXIST) {
        continue;
      }
      fail(std::exchange(temporary_, {}), "create", errno);
    }
    lock_ = open_folder(temporary_);
    if (!lock_ && errno != ENOENT) {
      fail(temporary_, "open", errno);
    }
    // Who removes leftovers may have come between; without locks (NFS) nobody removes any.
    const Result<bool> ours = os::try_flock(lock_);
    if (lock_ && ((ours.ok() && !*ours) || !still_there(lock_, temporary_))) {
      lock_.close();
    }
  }
}

PendingFolder::~PendingFolder() {
  if (!temporary_.empty()) {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
  }
}

void PendingFolder::commit(const Manifest& manifest) {
  const std::string text = to_text(manifest);
  (void)parse_manifest(text, place_);  // what nobody could read would take an older one's place
  write_file(temporary_, std::string(kManifestName), text);
  commit();
}

void PendingFolder::commit() {
  os::sync_folder(temporary_)
      .or_throw<CheckpointError>("checkpoint.save", CheckpointPlace{temporary_});
  if (::rename(temporary_.c_str(), place_.c_str()) == 0) {
    temporary_.clear();
  } else if (errno != EEXIST && errno != ENOTEMPTY) {
    fail(place_, "rename to this name", errno);
  } else if (!swap_names(temporary_, place_)) {
    replace_in_two_steps();
  }
  os::sync_folder(directory_)
      .or_throw<CheckpointError>(
          "checkpoint.save",
          CheckpointPlace{directory_});  // the destructor deletes what was exchanged
}

/// What was there is removed when the new one has its name; remove_leftovers() brings it back if
/// this process dies in between.
void PendingFolder::replace_in_two_steps() {
  const std::string former = temporary_name(place_, kReplaced);
  if (::rename(place_.c_str(), former.c_str()) != 0) {
    fail(place_, "replace", errno);
  }
  if (::rename(temporary_.c_str(), place_.c_str()) != 0) {
    const int code = errno;
    (void)::rename(former.c_str(), place_.c_str());
    fail(place_, "rename to this name", code);
  }
  temporary_ = former;  // the destructor deletes it
}

bool is_temporary_name(std::string_view name) {
  return parsed(name).has_value();
}

void remove_leftovers(const std::string& directory) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string path = entry.path().string();
    const std::string file_name = entry.path().filename().string();
    const std::optional<TemporaryName> name = parsed(file_name);
    std::error_code ignored;
    if (!name || entry.is_symlink(ignored) || !has_our_files_only(path)) {
      continue;
    }
    const os::UniqueFd fd = open_folder(path);
    if (const Result<bool> ours = os::try_flock(fd); !ours.ok() || !*ours) {
      continue;
    }
    const fs::path place = entry.path().parent_path() / name->name;
    if (name->kind == kReplaced && !fs::exists(place, ignored)) {
      fs::rename(path, place, ignored);  // its successor did not get its name
    } else {
      fs::remove_all(path, ignored);
    }
  }
}

void remove_checkpoint(const std::string& path) {
  const std::string gone = temporary_name(path, kRemoving);
  if (::rename(path.c_str(), gone.c_str()) != 0) {
    fail(path, "remove", errno);
  }
  std::error_code error;
  fs::remove_all(gone, error);
  if (error) {
    fail(gone, "remove", error.value());
  }
}

std::string prepare_directory(const std::string& directory) {
  std::error_code error;
  const bool is_new = fs::create_directories(directory, error);
  if (error) {
    return fmt::format("{}: cannot create: {}", directory, errno_message(error.value()));
  }
  if (is_new) {  // its own name lasts too; where that cannot be had, nothing else can be done
    (void)os::sync_folder((fs::absolute(directory, error) / "..").string());
  }
  try {
    const PendingFolder trial(directory, "trial");
    remove_leftovers(directory);
  } catch (const CheckpointError& caught) {
    const std::string text = caught.what();
    return text.substr(text.find("] ") + 2);
  }
  return "";
}

}  // namespace argosy::checkpoint
