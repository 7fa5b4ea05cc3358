#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "argosy/checkpoint/manifest.h"

namespace argosy::checkpoint {

/// Reads elements of the tensors in a checkpoint's folder, in whatever pieces they lie.
///
///     const TensorReader reader(folder, read_manifest(folder));
///     for (const ManifestTensor& tensor : reader.manifest().tensors) {
///       std::vector<std::byte> bytes(bytes_of(tensor));
///       reader.read(tensor, bytes);
///     }
///
/// Thread-safe.
/// Errors: CheckpointError with the path and the tensor's name; every byte that is read is checked.
class TensorReader final {
 public:
  TensorReader(std::string folder, Manifest manifest);
  ~TensorReader();
  TensorReader(const TensorReader&) = delete;
  TensorReader& operator=(const TensorReader&) = delete;

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  /// Fills `out` with the elements of a tensor of the manifest, row-major, from their byte `from`
  /// on. Cost: reads what is asked for, in blocks of 1 MiB; of a tensor whose pieces are not
  /// row-major all of it, and keeps that until another one is read.
  void read(const ManifestTensor& tensor, std::span<std::byte> out, int64_t from = 0) const;

 private:
  struct Opened;
  Opened& open(const std::string& file) const;
  void read_in_order(const ManifestTensor& tensor, std::span<std::byte> out, int64_t from) const;
  void read_piece(const ManifestTensor& tensor,
                  const ManifestPiece& piece,
                  std::span<std::byte> out,
                  int64_t from) const;

  const std::string folder_;
  const Manifest manifest_;
  mutable std::mutex mutex_{};
  mutable std::map<std::string, std::unique_ptr<Opened>> files_;
  mutable const ManifestTensor* turned_ = nullptr;  // whose elements are row-major in
  mutable std::vector<std::byte> turned_bytes_{};
};

/// Returns the size of a tensor.
[[nodiscard]] int64_t bytes_of(const ManifestTensor& tensor);

}  // namespace argosy::checkpoint
