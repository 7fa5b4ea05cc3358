#include "argosy/checkpoint/safetensors_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/checkpoint/safetensors_file.h"
#include "argosy/os/fd.h"

#include <nlohmann/json.hpp>

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "checkpoint.read_weights";

[[noreturn]] void fail_index(const std::string& path, std::string_view what, std::string key = {}) {
  throw CheckpointError(kIndex, what, {path, std::move(key)});
}

/// Links may lead anywhere, as in Hugging Face's cache; names must not.
bool stays_inside(const fs::path& file) {
  return !file.empty() && file.is_relative() && std::ranges::find(file, "..") == file.end();
}

/// What an index says.
struct ShardIndex {
  std::set<std::string> files{};
  std::map<std::string, std::string> file_of{};  ///< by the name of a tensor

  explicit ShardIndex(const std::string& path) {
    const std::string text =
        os::read_file(path).or_throw<CheckpointError>(kIndex, CheckpointPlace{path});
    const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    const auto weight_map = json.is_object() ? json.find("weight_map") : json.end();
    if (weight_map == json.end() || !weight_map->is_object() || weight_map->empty()) {
      fail_index(path,
                 "expected weights, or the index of several safetensors files: JSON with a "
                 "\"weight_map\" of names and files");
    }
    for (const auto& [name, file] : weight_map->items()) {
      if (!file.is_string() || !stays_inside(file.get<std::string>())) {
        fail_index(path,
                   fmt::format("expected the name of a file in the folder of the index, got {}. "
                               "Fetch the index again, from whom you trust",
                               file.dump()),
                   name);
      }
      file_of.emplace(name, file.get<std::string>());
      files.insert(file.get<std::string>());
    }
  }
};

/// Adds a shard's tensors to those of the shards before it.
void add_shard(const std::string& path,
               const std::string& file,
               const ShardIndex& index,
               engine::StateDict& all) {
  const fs::path shard = fs::path(path).parent_path() / file;
  std::error_code error;
  if (!fs::exists(shard, error)) {
    const auto held =
        std::ranges::count(index.file_of, file, [](const auto& e) { return e.second; });
    fail_index(path,
               fmt::format("the shard {} is missing, which holds {} of {} tensors. Fetch it into "
                           "the folder of the index",
                           file,
                           held,
                           index.file_of.size()));
  }
  for (const auto& [name, tensor] : read_safetensors(shard.string())) {
    const auto said = index.file_of.find(name);
    if (all.contains(name) || (said != index.file_of.end() && said->second != file)) {
      fail_index(
          path,
          fmt::format("expected it in {}, got it in {} too. Fetch all of them again, from one "
                      "revision",
                      said == index.file_of.end() ? "one shard" : "the shard " + said->second,
                      file),
          name);
    }
    all.set(name, tensor);
  }
}

}  // namespace

engine::StateDict read_safetensors_index(const std::string& path) {
  const ShardIndex index(path);
  engine::StateDict all;
  for (const std::string& file : index.files) {
    add_shard(path, file, index, all);
  }
  for (const auto& [name, file] : index.file_of) {
    if (!all.contains(name)) {
      fail_index(path,
                 fmt::format("expected it in the shard {}, which has no tensor of this name. Fetch "
                             "all of them again, from one revision",
                             file),
                 name);
    }
  }
  return all;
}

}  // namespace argosy::checkpoint
