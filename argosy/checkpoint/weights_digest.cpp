#include "argosy/checkpoint/weights_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include "argosy/base/error.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/tensor_reader.h"
#include "argosy/formats/digest.h"
#include "argosy/os/fd.h"

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;
using formats::Digester;
using formats::SafetensorEntry;
using formats::SafetensorsFile;

void add_text(Digester& digester, std::string_view text) {
  digester.update(std::as_bytes(std::span(text)));
}

void add_number(Digester& digester, uint64_t number) {
  std::array<std::byte, 8> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(number >> (8 * i));
  }
  digester.update(bytes);
}

void add_description(Digester& digester, const SafetensorEntry& entry) {
  add_number(digester, entry.name.size());
  add_text(digester, entry.name);
  add_text(digester, to_string(entry.type));
  add_text(digester, std::string_view("\0", 1));
  add_number(digester, entry.shape.size());
  for (const int64_t dim : entry.shape) {
    add_number(digester, static_cast<uint64_t>(dim));
  }
}

std::string hash_of_folder(const std::string& folder) {
  const Inspected found = inspect(folder, Check::kChecksums);
  if (found.state != State::kWhole) {
    throw CheckpointError("checkpoint.hash",
                          fmt::format("{}: {}", to_string(found.state), found.reason),
                          {folder, {}});
  }
  const TensorReader reader(folder, *found.manifest);
  WeightsDigest digest;
  int64_t tensors = 0;
  for (const ManifestTensor& tensor : reader.manifest().tensors) {
    if (tensor.part == "model") {
      ++tensors;
      digest.add({.name = tensor.name,
                  .type = *formats::safetensor_type(tensor.dtype),
                  .shape = tensor.shape,
                  .bytes = bytes_of(tensor)},
                 [&](std::span<std::byte> out, int64_t from) { reader.read(tensor, out, from); });
    }
  }
  if (tensors == 0) {
    throw CheckpointError(
        "checkpoint.hash", "there is no part \"model\" in this checkpoint", {folder, {}});
  }
  return digest.hex();
}

}  // namespace

void WeightsDigest::add(SafetensorEntry entry, Read read) {
  items_.push_back({std::move(entry), std::move(read)});
}

std::string WeightsDigest::hex() const {
  std::vector<const Item*> order;
  for (const Item& item : items_) {
    order.push_back(&item);
  }
  std::ranges::sort(
      order, {}, [](const Item* item) -> const std::string& { return item->entry.name; });
  Digester digester(formats::Digest::kSha256);
  std::vector<std::byte> buffer(size_t{1} << 20);
  const Item* last = nullptr;
  for (const Item* item : order) {
    if (last != nullptr && last->entry.name == item->entry.name) {
      throw CheckpointError("checkpoint.hash", "the name is there twice", {{}, item->entry.name});
    }
    last = item;
    add_description(digester, item->entry);
    for (int64_t at = 0; at < item->entry.bytes;) {
      const auto piece = std::span(buffer).first(static_cast<size_t>(
          std::min<int64_t>(static_cast<int64_t>(buffer.size()), item->entry.bytes - at)));
      item->read(piece, at);
      digester.update(piece);
      at += static_cast<int64_t>(piece.size());
    }
  }
  return digester.hex();
}

std::string weights_hash(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return hash_of_folder(path);
  }
  const SafetensorsFile file(path);
  WeightsDigest digest;
  for (const SafetensorEntry& entry : file.header().entries) {
    digest.add(entry, [&](std::span<std::byte> out, int64_t from) { file.read(entry, out, from); });
  }
  return digest.hex();
}

bool is_hashed_without_torch(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return true;
  }
  constexpr size_t kHead = 9;
  const Result<std::string> head = os::read_head(path, kHead);
  const auto size = fs::file_size(path, error);
  return head.ok() && head->size() == kHead && !error &&
         formats::looks_like_safetensors(
             std::span(reinterpret_cast<const uint8_t*>(head->data()), kHead),
             static_cast<int64_t>(size));
}

}  // namespace argosy::checkpoint
