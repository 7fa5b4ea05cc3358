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

/// Listens for processes of this host under a name in the kernel's abstract name space. There is no
/// file, and the name vanishes with the socket, whatever ends the process. Other network namespaces
/// do not see it. Messages keep their bounds (SOCK_SEQPACKET) and may carry descriptors.
class MessageListener final {
 public:
  /// Errors: EADDRINUSE; EINVAL for a name that is empty or longer than 100 bytes.
  [[nodiscard]] static Result<MessageListener> listen(const std::string& name);
  /// Returns the connection of the next caller. Errors: ETIMEDOUT at the deadline.
  [[nodiscard]] Result<UniqueFd> accept(const Deadline& deadline) const;

 private:
  explicit MessageListener(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

/// Connects to the listener of that name. Errors: ECONNREFUSED when nobody listens there.
[[nodiscard]] Result<UniqueFd> connect_messages(const std::string& name);

/// Returns the user whose process is at the other end.
[[nodiscard]] Result<uid_t> user_of_peer(int fd);

/// True when the other end is closed. Never blocks.
[[nodiscard]] bool is_hung_up(int fd);

struct Message {
  std::string text{};
  std::vector<UniqueFd> fds{};  ///< closed on exec
};

/// Sends `text` (1 byte to 64 KiB) with at most 253 `fds`; the receiver gets descriptors of its
/// own.
/// Errors: EPIPE when the other side is gone.
Status send_message(int fd, std::string_view text, std::span<const int> fds = {});

/// Waits for the next message.
/// Errors: ETIMEDOUT at the deadline; ECONNRESET when the other side is gone; EMSGSIZE for a
/// message that exceeds the limits of send_message().
[[nodiscard]] Result<Message> receive_message(int fd, const Deadline& deadline);

}  // namespace argosy::os
