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
  /// Gives a server up from which nothing has come for so long. Whole seconds.
  std::chrono::seconds stall_timeout{30};
  /// Called with the size of the part whenever it has changed.
  std::function<void(int64_t bytes)> on_bytes = nullptr;
};

/// What came of one transfer. Whether the bytes are the right ones is for the caller to see.
struct TransferEnd {
  enum class Kind {
    kDone,   ///< the server says that this was all
    kAgain,  ///< dropped, slow, busy: worth another try, what has come is kept
    kNever,  ///< this address will not do: 404, no such host's certificate, no such file
  };
  Kind kind = Kind::kDone;
  std::string reason{};  ///< unless kDone: "HTTP status 404", "timed out …"
};

/// Fetches `url` (http, https or file) into `part`, from where it ends on. A server that cannot
/// begin there sends all of it, and the part is begun anew. Redirections are followed, to http and
/// https only; proxies are as the environment says (https_proxy, no_proxy …).
///
/// Blocks. Thread-safe for different parts. Errors: DataError where the part cannot be written.
[[nodiscard]] TransferEnd transfer(const std::string& url,
                                   PartFile& part,
                                   const TransferOptions& options);

}  // namespace argosy::datasets
