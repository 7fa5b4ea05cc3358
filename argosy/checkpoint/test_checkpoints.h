#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/base/text.h"
#include "argosy/checkpoint/manifest.h"
#include "argosy/checkpoint/pending_folder.h"
#include "argosy/formats/safetensors.h"

namespace argosy::checkpoint::testing {

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// Returns the message of the CheckpointError that `f` throws.
template <typename F>
std::string checkpoint_error(F f) {
  try {
    f();
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "no CheckpointError was thrown";
}

struct MadeCheckpoint {
  int64_t step = 0;
  std::optional<double> score{};
  std::string name{};
};

/// Makes a checkpoint of one small tensor, without libtorch, and returns its folder.
inline std::string make_checkpoint(const std::string& directory, const MadeCheckpoint& options) {
  const std::string name =
      options.name.empty() ? "step-" + std::to_string(options.step) : options.name;
  PendingFolder folder(directory, name);
  const auto layout = formats::lay_out_safetensors({{.name = "w", .shape = {2, 3}}});
  std::vector<std::byte> data(24, static_cast<std::byte>(options.step));
  Manifest manifest{.step = options.step,
                    .score = options.score,
                    .time = text::utc(std::chrono::system_clock::now()),
                    .library = library_version(),
                    .parts = {"model"}};
  manifest.files.push_back(write_file(
      folder.path(), "model.safetensors", {std::as_bytes(std::span(layout.head)), data}));
  manifest.files.push_back(write_file(folder.path(), "state.json", "{}\n"));
  manifest.tensors.push_back({"model", "w", "F32", {2, 3}, "model.safetensors"});
  folder.commit(manifest);
  return folder.place();
}

/// Returns as soon as a save is running that has made so many files. Files in `before`, left by
/// killed processes, do not count.
inline void await_save(const std::string& directory,
                       const std::vector<std::string>& before,
                       int64_t files) {
  namespace fs = std::filesystem;
  const auto each_in = [](const fs::path& folder, const auto& look) {
    std::error_code gone;  // files appear and vanish meanwhile
    for (fs::directory_iterator at(folder, gone), end; !gone && at != end; at.increment(gone)) {
      look(at->path());
    }
  };
  for (bool found = false; !found; std::this_thread::yield()) {
    each_in(directory, [&](const fs::path& path) {
      const std::string name = path.filename().string();
      if (is_temporary_name(name) &&
          std::find(before.begin(), before.end(), name) == before.end()) {
        int64_t count = 0;
        each_in(path, [&](const fs::path&) { ++count; });
        found = found || count >= files;
      }
    });
  }
}

}  // namespace argosy::checkpoint::testing
