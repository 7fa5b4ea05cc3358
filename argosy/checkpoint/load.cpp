#include "argosy/checkpoint/load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <span>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/checkpoint/checksum.h"
#include "argosy/checkpoint/safetensors_type.h"
#include "argosy/checkpoint/values_text.h"
#include "argosy/formats/safetensors.h"
#include "argosy/os/fd.h"

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;
using formats::SafetensorEntry;
using formats::SafetensorsFile;

[[noreturn]] void fail(const std::string& path, const std::string& what, std::string key = {}) {
  throw CheckpointError("checkpoint.load", what, {path, std::move(key)});
}

void check_sum(const std::string& path, const ManifestFile& file, const Checksum& checksum) {
  if (checksum.text() != file.checksum) {
    fail(path,
         fmt::format("damaged: expected the checksum {}, got {}. Take another checkpoint",
                     file.checksum,
                     checksum.text()));
  }
}

/// All tensors of a file, each byte of which goes through the checksum.
std::map<std::string, at::Tensor> read_file(const std::string& path, const ManifestFile& known) {
  std::map<std::string, at::Tensor> tensors;
  const SafetensorsFile file(path);
  if (file.header().file_bytes != known.bytes) {
    fail(path,
         fmt::format("expected {} bytes, got {}. Take another checkpoint",
                     known.bytes,
                     file.header().file_bytes));
  }
  Checksum checksum;
  std::vector<std::byte> head(static_cast<size_t>(file.header().data_offset));
  file.read({.name = "header", .offset = 0, .bytes = file.header().data_offset}, head);
  checksum.update(head);
  std::vector<const SafetensorEntry*> order;
  for (const SafetensorEntry& entry : file.header().entries) {
    order.push_back(&entry);
  }
  std::ranges::sort(
      order, {}, [](const SafetensorEntry* e) { return std::pair(e->offset, e->bytes); });
  for (const SafetensorEntry* entry : order) {
    at::Tensor tensor = at::empty(entry->shape, scalar_type_of(entry->type));
    const std::span bytes(static_cast<std::byte*>(tensor.data_ptr()),
                          static_cast<size_t>(entry->bytes));
    file.read(*entry, bytes);
    checksum.update(bytes);
    tensors.emplace(entry->name, std::move(tensor));
  }
  check_sum(path, known, checksum);
  return tensors;
}

}  // namespace

Checkpoint::Checkpoint(std::string path)
    : path_(std::move(path)), manifest_(read_manifest(path_)) {}

engine::StateDict Checkpoint::read_tensors(const std::string& part) const {
  std::map<std::string, std::map<std::string, at::Tensor>> files;
  engine::StateDict dict;
  for (const ManifestTensor& entry : manifest_.tensors) {
    if (entry.part != part) {
      continue;
    }
    const std::string path = (fs::path(path_) / entry.file).string();
    if (!files.contains(entry.file)) {
      try {
        files[entry.file] = read_file(path, *manifest_.find_file(entry.file));
      } catch (const DataError& error) {
        const std::string text = error.what();
        fail(path, text.substr(text.find(path) == std::string::npos ? 0 : text.find(path)));
      }
    }
    const auto& tensors = files[entry.file];
    const auto tensor = tensors.find(entry.name);
    if (tensor == tensors.end() || tensor->second.sizes() != at::IntArrayRef(entry.shape)) {
      fail(path, "the file and the manifest do not agree. Take another checkpoint", entry.name);
    }
    dict.set(entry.name, tensor->second);
  }
  return dict;
}

engine::StateDict Checkpoint::part(const std::string& name) const {
  if (std::ranges::find(manifest_.parts, name) == manifest_.parts.end()) {
    fail(path_,
         fmt::format(
             "there is no part \"{}\"; there are: {}", name, fmt::join(manifest_.parts, ", ")));
  }
  return read_tensors(name);
}

nlohmann::ordered_json Checkpoint::read_values(const std::string& name) const {
  const ManifestFile* file = manifest_.find_file(name);
  const std::string path = (fs::path(path_) / name).string();
  if (file == nullptr) {
    fail(path_, fmt::format("there is no {} in this checkpoint", name));
  }
  const auto text = os::read_file(path, static_cast<size_t>(file->bytes) + 1);
  if (!text.ok()) {
    fail(path, "cannot read: " + errno_message(text.failure().error_number));
  }
  Checksum checksum;
  checksum.update(std::as_bytes(std::span(*text)));
  check_sum(path, *file, checksum);
  return parse_values(*text, path);
}

nlohmann::ordered_json Checkpoint::values() const {
  return read_values("state.json");
}

void Checkpoint::check_rank(int64_t rank) const {
  ARGOSY_CHECK(rank >= 0 && rank < manifest_.world_size,
               "checkpoint.load",
               "{} was written by {} ranks, asked for rank {}",
               path_,
               manifest_.world_size,
               rank);
}

engine::StateDict Checkpoint::rank_tensors(int64_t rank) const {
  check_rank(rank);
  return read_tensors(fmt::format("rank{}", rank));
}

nlohmann::ordered_json Checkpoint::rank_values(int64_t rank) const {
  check_rank(rank);
  return read_values(fmt::format("rank{}.json", rank));
}

Snapshot Checkpoint::snapshot(int64_t rank) const {
  Snapshot all;
  for (const std::string& name : manifest_.parts) {
    all.parts.emplace_back(name, part(name));
  }
  all.values = values();
  if (rank < manifest_.world_size) {
    all.rank_tensors = rank_tensors(rank);
    all.rank_values = rank_values(rank);
  }
  all.step = manifest_.step;
  all.epoch = manifest_.epoch;
  all.score = manifest_.score;
  return all;
}

}  // namespace argosy::checkpoint
