#include "argosy/checkpoint/load.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>
#include <utility>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/checkpoint/checksum.h"
#include "argosy/checkpoint/safetensors_type.h"
#include "argosy/checkpoint/values_text.h"
#include "argosy/engine/parts.h"
#include "argosy/formats/safetensors.h"
#include "argosy/os/fd.h"

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;

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

/// A tensor whose values are in a checkpoint's files.
class TensorOnDisk final : public engine::FetchedMemory {
 public:
  TensorOnDisk(std::shared_ptr<const TensorReader> reader, const ManifestTensor& tensor)
      : reader_(std::move(reader)), tensor_(tensor) {}

  [[nodiscard]] at::Tensor make() { return make_flat(numel(tensor_), type()).view(tensor_.shape); }

  [[nodiscard]] bool can_read() const override { return true; }
  [[nodiscard]] at::Tensor read(const at::Tensor& view, const IndexRange& range) override {
    return read_elements(view.storage_offset() + range.begin, range.size());
  }
  [[nodiscard]] at::Tensor read_elements(int64_t begin, int64_t count) const {
    at::Tensor elements = at::empty({count}, type());
    const auto size = static_cast<int64_t>(elements.element_size());
    reader_->read(tensor_,
                  {static_cast<std::byte*>(elements.data_ptr()), static_cast<size_t>(count * size)},
                  begin * size);
    return elements;
  }

 private:
  at::Tensor fetch() override { return read_elements(0, numel(tensor_)); }
  [[nodiscard]] at::ScalarType type() const {
    return scalar_type_of(*formats::safetensor_type(tensor_.dtype));
  }

  const std::shared_ptr<const TensorReader> reader_;
  const ManifestTensor& tensor_;  // of the reader's manifest
};

}  // namespace

Checkpoint::Checkpoint(const std::string& path)
    : reader_(std::make_shared<const TensorReader>(path, read_manifest(path))) {}

engine::StateDict Checkpoint::read_tensors(const std::string& part, Reading reading) const {
  engine::StateDict dict;
  for (const ManifestTensor& entry : manifest().tensors) {
    if (entry.part == part) {
      const auto tensor = std::make_shared<TensorOnDisk>(reader_, entry);
      dict.set(entry.name,
               reading == Reading::kWhenUsed
                   ? tensor->make()
                   : tensor->read_elements(0, numel(entry)).view(entry.shape));
    }
  }
  return dict;
}

engine::StateDict Checkpoint::part(const std::string& name, Reading reading) const {
  if (std::ranges::find(manifest().parts, name) == manifest().parts.end()) {
    fail(path(),
         fmt::format(
             "there is no part \"{}\"; there are: {}", name, fmt::join(manifest().parts, ", ")));
  }
  return read_tensors(name, reading);
}

nlohmann::ordered_json Checkpoint::read_values(const std::string& name) const {
  const ManifestFile* file = manifest().find_file(name);
  const std::string file_path = (fs::path(path()) / name).string();
  if (file == nullptr) {
    fail(path(), fmt::format("there is no {} in this checkpoint", name));
  }
  const auto text = os::read_file(file_path, static_cast<size_t>(file->bytes) + 1);
  if (!text.ok()) {
    fail(file_path, "cannot read: " + errno_message(text.failure().error_number));
  }
  Checksum checksum;
  checksum.update(std::as_bytes(std::span(*text)));
  check_sum(file_path, *file, checksum);
  return parse_values(*text, file_path);
}

nlohmann::ordered_json Checkpoint::values() const {
  return read_values("state.json");
}

void Checkpoint::check_rank(int64_t rank) const {
  ARGOSY_CHECK(rank >= 0 && rank < manifest().world_size,
               "checkpoint.load",
               "{} was written by {} ranks, asked for rank {}",
               path(),
               manifest().world_size,
               rank);
}

engine::StateDict Checkpoint::rank_tensors(int64_t rank) const {
  check_rank(rank);
  return read_tensors(fmt::format("rank{}", rank), Reading::kNow);
}

nlohmann::ordered_json Checkpoint::rank_values(int64_t rank) const {
  check_rank(rank);
  return read_values(fmt::format("rank{}.json", rank));
}

Snapshot Checkpoint::snapshot(int64_t rank, Reading reading) const {
  Snapshot all;
  for (const std::string& name : manifest().parts) {
    all.parts.emplace_back(name, part(name, reading));
  }
  all.values = values();
  if (rank < manifest().world_size) {
    all.rank_tensors = rank_tensors(rank);
    all.rank_values = rank_values(rank);
  }
  all.step = manifest().step;
  all.epoch = manifest().epoch;
  all.score = manifest().score;
  return all;
}

}  // namespace argosy::checkpoint
