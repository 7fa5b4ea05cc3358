#include "argosy/checkpoint/tensor_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/checkpoint/block_reader.h"
#include "argosy/formats/safetensors.h"

namespace argosy::checkpoint {
namespace {

/// A checkpoint of thousands of ranks has more files than a process may open, and each that is open
/// keeps a block of 1 MiB.
constexpr size_t kMostFiles = 128;

int64_t element_bytes_of(const ManifestTensor& tensor) {
  return formats::element_bytes(*formats::safetensor_type(tensor.dtype));
}

/// How far apart in `pieces' order` neighbours along each dim are.
std::vector<int64_t> strides_in_order(const ManifestTensor& tensor) {
  std::vector<int64_t> strides(tensor.shape.size());
  int64_t stride = 1;
  for (auto dim = tensor.order.rbegin(); dim != tensor.order.rend(); ++dim) {
    strides[static_cast<size_t>(*dim)] = stride;
    stride *= tensor.shape[static_cast<size_t>(*dim)];
  }
  return strides;
}

/// From the pieces' order of elements to row-major.
std::vector<std::byte> turn(const ManifestTensor& tensor, std::span<const std::byte> from) {
  const std::vector<int64_t> strides = strides_in_order(tensor);
  const int64_t size = element_bytes_of(tensor);
  std::vector<std::byte> to(from.size());
  std::vector<int64_t> index(tensor.shape.size(), 0);
  int64_t place = 0;
  for (auto at = to.begin(); at != to.end(); at += size) {
    std::copy_n(from.begin() + place * size, size, at);
    for (size_t dim = index.size(); dim-- > 0;) {
      place += strides[dim];
      if (++index[dim] < tensor.shape[dim]) {
        break;
      }
      place -= strides[dim] * tensor.shape[dim];
      index[dim] = 0;
    }
  }
  return to;
}

}  // namespace

/// A file and where its tensors lie.
struct TensorReader::Opened {
  Opened(const std::string& path, const ManifestFile& known) : file(path, known) {
    const formats::SafetensorsHeader header = formats::read_safetensors_header(file.fd(), path);
    std::vector<std::byte> head(static_cast<size_t>(header.data_offset));
    file.read(0, head);  // is what was written
    for (const formats::SafetensorEntry& entry : header.entries) {
      entries.emplace(entry.name, entry);
    }
  }
  BlockReader file;
  std::unordered_map<std::string, formats::SafetensorEntry> entries{};
};

TensorReader::TensorReader(std::string folder, Manifest manifest)
    : folder_(std::move(folder)), manifest_(std::move(manifest)) {}

TensorReader::~TensorReader() = default;

TensorReader::Opened& TensorReader::open(const std::string& file) const {
  if (const auto known = files_.find(file); known != files_.end()) {
    return *known->second;
  }
  if (files_.size() >= kMostFiles) {
    files_.clear();
  }
  const std::string path = (std::filesystem::path(folder_) / file).string();
  try {
    return *files_.emplace(file, std::make_unique<Opened>(path, *manifest_.find_file(file)))
                .first->second;
  } catch (const DataError& error) {
    const std::string text = error.what();
    throw CheckpointError("checkpoint.load",
                          text.substr(text.find(path) == std::string::npos ? 0 : text.find(path)),
                          {path, {}});
  }
}

void TensorReader::read(const ManifestTensor& tensor,
                        std::span<std::byte> out,
                        int64_t from) const {
  const std::scoped_lock lock(mutex_);
  if (from < 0 || from > bytes_of(tensor) || std::ssize(out) > bytes_of(tensor) - from) {
    throw UsageError("checkpoint.load",
                     fmt::format("\"{}\" has {} bytes, asked for {} from {} on",
                                 tensor.name,
                                 bytes_of(tensor),
                                 out.size(),
                                 from));
  }
  if (tensor.order.empty()) {
    read_in_order(tensor, out, from);
    return;
  }
  if (turned_ != &tensor) {
    turned_ = nullptr;
    std::vector<std::byte> all(static_cast<size_t>(bytes_of(tensor)));
    read_in_order(tensor, all, 0);
    turned_bytes_ = turn(tensor, all);
    turned_ = &tensor;
  }
  std::ranges::copy(std::span(turned_bytes_).subspan(static_cast<size_t>(from), out.size()),
                    out.begin());
}

void TensorReader::read_in_order(const ManifestTensor& tensor,
                                 std::span<std::byte> out,
                                 int64_t from) const {
  if (tensor.pieces.empty()) {
    read_piece(tensor, {tensor.file, {0, numel(tensor)}}, out, from);
    return;
  }
  const int64_t size = element_bytes_of(tensor);
  const int64_t to = from + std::ssize(out);
  for (const ManifestPiece& piece : tensor.pieces) {
    const int64_t begin = std::max(from, piece.range.begin * size);
    const int64_t end = std::min(to, piece.range.end * size);
    if (begin < end) {
      read_piece(tensor,
                 piece,
                 out.subspan(static_cast<size_t>(begin - from), static_cast<size_t>(end - begin)),
                 begin - piece.range.begin * size);
    }
  }
}

void TensorReader::read_piece(const ManifestTensor& tensor,
                              const ManifestPiece& piece,
                              std::span<std::byte> out,
                              int64_t from) const {
  Opened& opened = open(piece.file);
  const auto entry = opened.entries.find(tensor.name);
  const std::vector<int64_t> shape =
      tensor.pieces.empty() ? tensor.shape : std::vector{piece.range.size()};
  if (entry == opened.entries.end() || entry->second.shape != shape ||
      to_string(entry->second.type) != tensor.dtype) {
    throw CheckpointError("checkpoint.load",
                          "the file and the manifest do not agree. Take another checkpoint",
                          {opened.file.path(), tensor.name});
  }
  opened.file.read(entry->second.offset + from, out);
}

int64_t bytes_of(const ManifestTensor& tensor) {
  return numel(tensor) * element_bytes_of(tensor);
}

}  // namespace argosy::checkpoint
