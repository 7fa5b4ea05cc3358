#include "argosy/datasets/test_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "argosy/base/strings.h"

namespace argosy::datasets {
namespace {

void send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return;  // the client has gone
    }
    text.remove_prefix(static_cast<size_t>(sent));
  }
}

/// Has the client closed the connection before so much time is over?
bool gone_within(int fd, std::chrono::milliseconds time) {
  pollfd hang_up{.fd = fd, .events = POLLRDHUP, .revents = 0};
  return ::poll(&hang_up, 1, static_cast<int>(time.count())) > 0;
}

std::string read_head(int fd) {
  std::string head;
  std::array<char, 4096> buffer{};
  while (head.find("\r\n\r\n") == std::string::npos) {
    const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (got <= 0) {
      return "";
    }
    head.append(buffer.data(), static_cast<size_t>(got));
  }
  return head;
}

Request parse(const std::string& head) {
  constexpr std::string_view kRange = "range: bytes=";
  Request request;
  request.path = strings::split(head, ' ').at(1);
  if (const size_t at = strings::to_lower(head).find(kRange); at != std::string::npos) {
    request.from = std::stoull(head.substr(at + kRange.size()));
  }
  return request;
}

void send_reply(int fd, const Request& request, const Reply& reply) {
  const bool part = reply.status == 200 && reply.honours_range && request.from.has_value();
  const size_t from = part ? *request.from : 0;
  if (part && from >= reply.body.size()) {
    send_all(fd, "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n\r\n");
    return;
  }
  std::string head =
      fmt::format("HTTP/1.1 {} Words\r\nConnection: close\r\n", part ? 206 : reply.status);
  if (reply.tells_length) {
    head += fmt::format("Content-Length: {}\r\n", reply.body.size() - from);
  }
  if (part) {
    head += fmt::format(
        "Content-Range: bytes {}-{}/{}\r\n", from, reply.body.size() - 1, reply.body.size());
  }
  if (!reply.location.empty()) {
    head += fmt::format("Location: {}\r\n", reply.location);
  }
  send_all(fd, head + "\r\n");
  std::string_view body = std::string_view(reply.body).substr(from);
  body = body.substr(0, reply.drops_after.value_or(body.size()));
  while (!body.empty() && !gone_within(fd, reply.pause)) {
    send_all(fd, body.substr(0, reply.bytes_at_once));
    body.remove_prefix(std::min(body.size(), reply.bytes_at_once));
  }
}

}  // namespace

TestServer::TestServer(std::function<Reply(const Request&)> handler)
    : handler_(std::move(handler)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_.get(), 64) != 0 ||
      ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("the loopback has no free port");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

TestServer::~TestServer() {
  closing_ = true;
  thread_.join();
}

std::string TestServer::url() const {
  return fmt::format("http://127.0.0.1:{}", port_);
}

std::vector<Request> TestServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void TestServer::run() {
  while (!closing_) {
    pollfd ready{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 20) > 0) {
      os::UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      connections_.emplace_back(
          [this, fd = std::move(connection)]() mutable { answer(std::move(fd)); });
    }
  }
  for (std::thread& connection : connections_) {
    connection.join();
  }
}

void TestServer::answer(os::UniqueFd connection) {
  const std::string head = read_head(connection.get());
  if (head.empty()) {
    return;
  }
  Request request = parse(head);
  const Reply reply = ask_handler(request);
  send_reply(connection.get(), request, reply);
}

Reply TestServer::ask_handler(Request& request) {
  const std::lock_guard lock(mutex_);
  request.number = static_cast<int>(std::ranges::count(requests_, request.path, &Request::path));
  requests_.push_back(request);
  return handler_(request);
}

}  // namespace argosy::datasets
