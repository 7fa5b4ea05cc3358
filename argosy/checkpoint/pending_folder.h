#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/checkpoint/manifest.h"
#include "argosy/os/fd.h"

namespace argosy::checkpoint {

/// Writes a new file into `folder`, brings it to the disk, and returns its entry for the manifest.
/// Errors: CheckpointError("checkpoint.save") with the path and the system's words.
ManifestFile write_file(const std::string& folder,
                        const std::string& name,
                        const std::vector<std::span<const std::byte>>& pieces);
ManifestFile write_file(const std::string& folder, const std::string& name, std::string_view text);

/// A checkpoint that is being written: a folder beside its place with a temporary name. It gets the
/// final name with all its files, or not at all.
///
///     PendingFolder folder("runs/a", "step-000000120");
///     manifest.files.push_back(write_file(folder.path(), "model.safetensors", {head, data}));
///     folder.commit(manifest);
///
/// Other processes may write files into it too. A killed process leaves the folder behind under a
/// name that no reader takes. remove_leftovers() recognizes it because its owner no longer holds
/// the lock.
/// Errors: CheckpointError("checkpoint.save") with path.
class PendingFolder final {
 public:
  PendingFolder(std::string directory, const std::string& name);
  ~PendingFolder();
  PendingFolder(const PendingFolder&) = delete;
  PendingFolder& operator=(const PendingFolder&) = delete;

  /// The folder for its files.
  [[nodiscard]] const std::string& path() const { return temporary_; }
  /// The final path.
  [[nodiscard]] const std::string& place() const { return place_; }
  /// Writes the manifest, brings all names to the disk and renames the folder. A checkpoint with
  /// this name is replaced in one step, or in two if the file system cannot; it is never half
  /// there.
  void commit(const Manifest& manifest);
  /// The same of a folder of another kind.
  void commit();

 private:
  void replace_in_two_steps();

  std::string directory_;
  std::string place_;
  std::string temporary_{};
  os::UniqueFd lock_{};
};

/// True for the name of a checkpoint that is being written or removed.
[[nodiscard]] bool is_temporary_name(std::string_view name);

/// Removes what killed processes left in `directory`. The folders of living processes stay, those
/// with files that no checkpoint has too, and without locks everything stays. A checkpoint whose
/// successor did not get its name has it again.
void remove_leftovers(const std::string& directory);

/// Makes the directory of a training's checkpoints, tries to write there, and removes what killed
/// processes left. Returns "", or what stands in the way.
[[nodiscard]] std::string prepare_directory(const std::string& directory);

/// Removes a checkpoint in one step by renaming it to a temporary name, then deletes it.
void remove_checkpoint(const std::string& path);

}  // namespace argosy::checkpoint
