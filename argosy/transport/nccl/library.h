#pragma once

#include <memory>
#include <string>
#include <vector>

#include "argosy/transport/nccl/nccl_api.h"

// Internal to the room.
namespace argosy::transport::nccl {

/// A library with NCCL's interface, found when the program runs: libnccl.so.2 of NVIDIA or
/// librccl.so.1 of AMD.
///
/// Immutable. A library that was loaded stays in the process.
class Library final {
 public:
  /// Loads `name`, a file or what the system's loader finds by it. Empty: the one that
  /// ARGOSY_NCCL_LIBRARY names, else that which libtorch has loaded, else the first that the loader
  /// finds.
  /// Errors: ConfigError that says what was tried and why each did not do.
  [[nodiscard]] static std::shared_ptr<const Library> load(const std::string& name = {});

  [[nodiscard]] const Api& api() const { return api_; }
  /// 21803 for 2.18.3.
  [[nodiscard]] int version() const { return version_; }
  /// "NCCL 2.18.3 (/usr/lib/libnccl.so.2)"
  [[nodiscard]] const std::string& description() const { return description_; }
  /// Whether calls return at once, and communicators can be made and aborted without a thread that
  /// blocks: since 2.27, unless NCCL_COMM_BLOCKING is set.
  [[nodiscard]] bool is_non_blocking() const { return api_.comm_init_rank_config != nullptr; }
  /// Whether several communicators can be aborted as a group: since 2.22.
  [[nodiscard]] bool aborts_in_groups() const { return version_ >= 22200; }
  /// What this version lacks, in words; empty for 2.27 and later.
  [[nodiscard]] std::vector<std::string> missing() const;

 private:
  Library() = default;

  Api api_{};
  int version_ = 0;
  std::string description_{};
};

/// "2.18.3" of 21803.
[[nodiscard]] std::string version_text(int version);

}  // namespace argosy::transport::nccl
