#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "argosy/datasets/part_file.h"

namespace argosy::datasets {

struct TransferOptions {
  int64_t most_bytes = 0;  ///< a server that sends more is wrong; 0: no limit
  std::chrono::milliseconds connect_timeout{20'000};
  /// A server that sends nothing for this long is given up. Whole seconds.
  std::chrono::seconds stall_timeout{30};
  /// Called with the size of the part whenever it has changed.
  std::function<void(int64_t bytes)> on_bytes = nullptr;
};

/// The end of one transfer. The caller checks whether the bytes are the right ones.
struct TransferEnd {
  enum class Kind {
    kDone,   ///< the server says that this was all
    kAgain,  ///< dropped, slow or busy: another try may help, and what has come is kept
    kNever,  ///< this address cannot work: 404, a wrong certificate, no such file
  };
  Kind kind = Kind::kDone;
  std::string reason{};  ///< unless kDone: "HTTP status 404", "timed out …"
};

/// Fetches `url` (http, https or file) into `part`, from where the part ends. If a server cannot
/// begin there, it sends everything, and the part is begun anew. Redirections are followed to http
/// and https only. Proxies are taken from the environment (https_proxy, no_proxy …).
///
/// Blocks. Thread-safe for different parts. Errors: DataError when the part cannot be written.
[[nodiscard]] TransferEnd transfer(const std::string& url,
                                   PartFile& part,
                                   const TransferOptions& options);

}  // namespace argosy::datasets
