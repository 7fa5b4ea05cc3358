#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/deadline.h"
#include "argosy/base/result.h"
#include "argosy/os/fd.h"

namespace argosy::os {

/// Listens for processes of this host, under a name in the kernel's abstract name space: there is
/// no file, and it goes with the socket, whatever ends the process. Another network namespace has
/// other names. Messages keep their bounds (SOCK_SEQPACKET) and may carry descriptors.
class MessageListener final {
 public:
  /// Errors: EADDRINUSE; EINVAL for a name that is empty or longer than 100 bytes.
  [[nodiscard]] static Result<MessageListener> listen(const std::string& name);
  /// The next caller. Errors: ETIMEDOUT at the deadline.
  [[nodiscard]] Result<UniqueFd> accept(const Deadline& deadline) const;

 private:
  explicit MessageListener(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

/// Errors: ECONNREFUSED when nobody listens there.
[[nodiscard]] Result<UniqueFd> connect_messages(const std::string& name);

/// The user whose process called, or listened.
[[nodiscard]] Result<uid_t> user_of_peer(int fd);

struct Message {
  std::string text{};
  std::vector<UniqueFd> fds{};  ///< closed on exec
};

/// `text`: 64 KiB at most, not empty. `fds`: 253 at most; the receiver gets descriptors of its own.
/// Errors: EPIPE when the other side is gone.
Status send_message(int fd, std::string_view text, std::span<const int> fds = {});

/// Errors: ETIMEDOUT at the deadline; ECONNRESET when the other side is gone; EMSGSIZE for a
/// message that is longer, or carries more, than send_message() sends.
[[nodiscard]] Result<Message> receive_message(int fd, const Deadline& deadline);

}  // namespace argosy::os
