#include "argosy/checkpoint/inspect.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <tuple>

#include "argosy/base/error.h"
#include "argosy/checkpoint/checksum.h"
#include "argosy/checkpoint/pending_folder.h"
#include "argosy/os/fd.h"

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;

struct Flaw {
  State state;
  std::string reason;
};

/// What is wrong with a file; nothing where it is right.
std::optional<Flaw> look_at_size(const std::string& path, const ManifestFile& file) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return Flaw{State::kTorn, fmt::format("{}: {}", file.name, errno_message(errno))};
  }
  if (!S_ISREG(info.st_mode) || info.st_size != file.bytes) {
    return Flaw{State::kTorn,
                fmt::format("{}: expected {} bytes, got {}", file.name, file.bytes, info.st_size)};
  }
  return std::nullopt;
}

std::optional<Flaw> look_at_bytes(const std::string& path, const ManifestFile& file) {
  auto fd = os::open_file(path, O_RDONLY);
  std::vector<std::byte> buffer(size_t{1} << 20);
  Checksum checksum;
  while (fd.ok()) {
    const auto count = os::read_all(fd->get(), buffer);
    if (!count.ok()) {
      return Flaw{State::kDamaged, fmt::format("{}: {}", file.name, count.failure().what)};
    }
    checksum.update(std::span(buffer).first(*count));
    if (*count < buffer.size()) {
      break;
    }
  }
  if (!fd.ok()) {
    return Flaw{State::kDamaged, fmt::format("{}: {}", file.name, fd.failure().what)};
  }
  if (checksum.text() != file.checksum) {
    return Flaw{
        State::kDamaged,
        fmt::format(
            "{}: expected the checksum {}, got {}", file.name, file.checksum, checksum.text())};
  }
  return std::nullopt;
}

std::optional<Flaw> look(const std::string& folder, const Manifest& manifest, Check check) {
  for (const ManifestFile& file : manifest.files) {
    const std::string path = (fs::path(folder) / file.name).string();
    if (auto flaw = look_at_size(path, file)) {
      return flaw;
    }
  }
  for (const ManifestFile& file : manifest.files) {
    const std::string path = (fs::path(folder) / file.name).string();
    auto flaw = check == Check::kChecksums ? look_at_bytes(path, file) : std::nullopt;
    if (flaw) {
      return flaw;
    }
  }
  return std::nullopt;
}

/// "[checkpoint.manifest] path: what" without what is said elsewhere.
std::string bare(std::string_view text, const CheckpointPlace& place) {
  text.remove_prefix(std::min(text.size(), text.find("] ") + 2));
  if (text.starts_with(place.path)) {
    text.remove_prefix(std::min(text.size(), place.path.size() + 2));
  }
  return std::string(text);
}

/// Does it look as if somebody had begun a checkpoint in it?
bool has_parts(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name == "state.json" || name.ends_with(".safetensors")) {
      return true;
    }
  }
  return folder.filename().string().starts_with("step-");
}

bool newer(const Inspected& a, const Inspected& b) {
  const auto key = [](const Inspected& it) {
    return it.manifest ? std::tuple(it.manifest->step, it.manifest->time)
                       : std::tuple(int64_t{-1}, std::string());
  };
  return key(a) != key(b) ? key(a) > key(b) : a.path > b.path;
}

}  // namespace

std::string_view to_string(State state) {
  switch (state) {
    case State::kWhole:
      return "whole";
    case State::kTorn:
      return "torn";
    case State::kDamaged:
      return "damaged";
    case State::kNewer:
      return "newer";
  }
  return "";
}

bool is_checkpoint(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::path(path) / kManifestName, error);
}

Inspected inspect(const std::string& folder, Check check) {
  Inspected result{.path = folder};
  if (is_temporary_name(fs::path(folder).filename().string())) {
    result.state = State::kTorn;
    result.reason = "a save or a removal that was cut short, or is going on";
    return result;
  }
  try {
    result.manifest = read_manifest(folder);
  } catch (const CheckpointError& error) {
    const std::string why = bare(error.what(), error.place());
    result.reason = error.place().path == folder ? why : fmt::format("{}: {}", kManifestName, why);
    result.state = !is_checkpoint(folder)                           ? State::kTorn
                   : why.find("Update Argosy") != std::string::npos ? State::kNewer
                                                                    : State::kDamaged;
    return result;
  }
  if (auto flaw = look(folder, *result.manifest, check)) {
    result.state = flaw->state;
    result.reason = flaw->reason;
  }
  return result;
}

std::vector<Inspected> list(const std::string& directory, Check check) {
  std::error_code error;
  std::vector<Inspected> all;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_symlink(ignored) || !entry->is_directory(ignored)) {
      continue;
    }
    const std::string path = entry->path().string();
    if (is_temporary_name(entry->path().filename().string()) || is_checkpoint(path) ||
        has_parts(entry->path())) {
      all.push_back(inspect(path, check));
    }
  }
  if (error) {
    throw CheckpointError("checkpoint.inspect",
                          "cannot read the folder: " + errno_message(error.value()),
                          {directory, {}});
  }
  std::ranges::sort(all, newer);
  return all;
}

std::vector<std::string> Newest::remarks() const {
  std::vector<std::string> lines;
  for (const Inspected& one : skipped) {
    lines.push_back(
        fmt::format("passed over {}, which is {}: {}", one.path, to_string(one.state), one.reason));
  }
  return lines;
}

Newest find_newest(const std::string& directory, std::string_view prefix) {
  std::error_code error;
  Newest newest;
  if (!fs::exists(directory, error) && !error) {
    return newest;
  }
  for (Inspected& candidate : list(directory, Check::kSizes)) {
    const bool named = fs::path(candidate.path).filename().string().starts_with(prefix);
    if (!named || (candidate.state == State::kWhole && newest.path)) {
      continue;  // not asked for, or older
    }
    Inspected looked = candidate.state == State::kWhole ? inspect(candidate.path, Check::kChecksums)
                                                        : std::move(candidate);
    if (looked.state == State::kWhole) {
      newest.path = looked.path;
      newest.manifest = std::move(looked.manifest);
    } else {
      newest.skipped.push_back(std::move(looked));
    }
  }
  return newest;
}

}  // namespace argosy::checkpoint
