#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "argosy/checkpoint/manifest.h"
#include "argosy/os/fd.h"

namespace argosy::checkpoint {

/// Writes a new file into `folder` and brings it to the disk; what the manifest says of it.
/// Errors: CheckpointError("checkpoint.save") with the path and the system's words.
ManifestFile write_file(const std::string& folder,
                        const std::string& name,
                        std::initializer_list<std::span<const std::byte>> pieces);
ManifestFile write_file(const std::string& folder, const std::string& name, std::string_view text);

/// A checkpoint while it is written: a folder beside its place, under a temporary name, that takes
/// the final one with all its files or not at all.
///
///     PendingFolder folder("runs/a", "step-000000120");
///     manifest.files.push_back(write_file(folder.path(), "model.safetensors", {head, data}));
///     folder.commit(manifest);
///
/// Other processes may write files into it, too. One that is killed leaves it behind, under a name
/// that no reader takes; remove_leftovers() finds it by the lock that its owner no longer holds.
/// Errors: CheckpointError("checkpoint.save") with path.
class PendingFolder final {
 public:
  PendingFolder(std::string directory, const std::string& name);
  ~PendingFolder();
  PendingFolder(const PendingFolder&) = delete;
  PendingFolder& operator=(const PendingFolder&) = delete;

  /// Where its files go.
  [[nodiscard]] const std::string& path() const { return temporary_; }
  /// The final name's.
  [[nodiscard]] const std::string& place() const { return place_; }
  /// Writes the manifest, brings all names to the disk and renames. A checkpoint that had this name
  /// is replaced in one step (where the file system cannot: in two, and is never half there).
  void commit(const Manifest& manifest);

 private:
  std::string directory_;
  std::string place_;
  std::string temporary_{};
  os::UniqueFd lock_{};
};

/// Is this the name of a checkpoint that is being written or removed?
[[nodiscard]] bool is_temporary_name(std::string_view name);

/// Removes what killed processes left in `directory`. What a living one works on stays, and so does
/// all where locks are not to be had.
void remove_leftovers(const std::string& directory);

/// Renames a checkpoint to a temporary name, so that it is gone in one step, and deletes it.
void remove_checkpoint(const std::string& path);

}  // namespace argosy::checkpoint
