#pragma once

#include <filesystem>

namespace argosy::test {

/// An empty folder under $TMPDIR (or /tmp) that goes with this object, with everything in it.
/// In a forked rank the copy of the object removes nothing: only the process that made it does.
class TempDir final {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int owner_pid_;
};

}  // namespace argosy::test
