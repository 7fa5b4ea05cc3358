#include "argosy/os/unix_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace argosy::os {
namespace {

constexpr size_t kLongestName = 100;
constexpr size_t kLongestText = size_t{64} << 10U;
constexpr size_t kMostFds = 253;  ///< SCM_MAX_FD

struct Address {
  sockaddr_un name{};
  socklen_t size = 0;

  explicit Address(std::string_view text) {
    name.sun_family = AF_UNIX;
    std::ranges::copy(text, name.sun_path + 1);  // after a 0: no file
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

Result<UniqueFd> make_socket(const std::string& name, int flags) {
  if (name.empty() || name.size() > kLongestName) {
    return Failure::from_errno("Unix socket \"" + name + "\"", EINVAL);
  }
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (!fd) {
    return Failure::from_errno("socket", errno);
  }
  return fd;
}

}  // namespace

Result<MessageListener> MessageListener::listen(const std::string& name) {
  Result<UniqueFd> fd = make_socket(name, SOCK_NONBLOCK);
  if (!fd.ok()) {
    return std::move(fd).failure();
  }
  const Address address(name);
  if (::bind(fd->get(), address.get(), address.size) != 0) {
    return Failure::from_errno("bind Unix socket " + name, errno);
  }
  if (::listen(fd->get(), SOMAXCONN) != 0) {
    return Failure::from_errno("listen at Unix socket " + name, errno);
  }
  return MessageListener(*std::move(fd));
}

Result<UniqueFd> MessageListener::accept(const Deadline& deadline) const {
  for (;;) {
    UniqueFd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (fd) {
      return fd;
    }
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
      return Failure::from_errno("accept", errno);
    }
    const Result<bool> ready = wait_ready(fd_.get(), POLLIN, deadline);
    if (!ready.ok()) {
      return ready.failure();
    }
    if (!*ready) {
      return Failure::from_errno("accept", ETIMEDOUT);
    }
  }
}

Result<UniqueFd> connect_messages(const std::string& name) {
  Result<UniqueFd> fd = make_socket(name, 0);
  if (!fd.ok()) {
    return fd;
  }
  const Address address(name);
  // Where the listener's queue is full, it would wait for ever. It stays for what is sent later.
  constexpr timeval kMostPatience{.tv_sec = 2, .tv_usec = 0};
  ::setsockopt(fd->get(), SOL_SOCKET, SO_SNDTIMEO, &kMostPatience, sizeof kMostPatience);
  while (::connect(fd->get(), address.get(), address.size) != 0) {
    if (errno != EINTR) {
      return Failure::from_errno("connect to Unix socket " + name, errno);
    }
  }
  return fd;
}

Result<uid_t> user_of_peer(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Failure::from_errno("SO_PEERCRED", errno);
  }
  return peer.uid;
}

bool is_hung_up(int fd) {
  pollfd poll{.fd = fd, .events = 0, .revents = 0};
  return ::poll(&poll, 1, 0) == 1 && (poll.revents & (POLLHUP | POLLERR)) != 0;
}

Status send_message(int fd, std::string_view text, std::span<const int> fds) {
  if (text.empty() || text.size() > kLongestText || fds.size() > kMostFds) {
    return Failure::from_errno("send message", EMSGSIZE);
  }
  iovec part{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostFds * sizeof(int))> control{};
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  while (::sendmsg(fd, &header, MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) {
      return Failure::from_errno("send message", errno);
    }
  }
  return {};
}

Result<Message> receive_message(int fd, const Deadline& deadline) {
  const Result<bool> ready = wait_ready(fd, POLLIN, deadline);
  if (!ready.ok()) {
    return ready.failure();
  }
  if (!*ready) {
    return Failure::from_errno("receive message", ETIMEDOUT);
  }
  Message message{.text = std::string(kLongestText, '\0')};
  iovec part{.iov_base = message.text.data(), .iov_len = message.text.size()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostFds * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t got = -1;
  do {
    got = ::recvmsg(fd, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got <= 0) {
    return Failure::from_errno("receive message", got == 0 ? ECONNRESET : errno);
  }
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
    if (one->cmsg_level == SOL_SOCKET && one->cmsg_type == SCM_RIGHTS) {
      std::vector<int> fds((one->cmsg_len - CMSG_LEN(0)) / sizeof(int));
      std::memcpy(fds.data(), CMSG_DATA(one), fds.size() * sizeof(int));
      message.fds.reserve(message.fds.size() + fds.size());
      for (const int received : fds) {
        message.fds.emplace_back(received);
      }
    }
  }
  if ((static_cast<unsigned>(header.msg_flags) & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return Failure::from_errno("receive message", EMSGSIZE);
  }
  message.text.resize(static_cast<size_t>(got));
  return message;
}

}  // namespace argosy::os
