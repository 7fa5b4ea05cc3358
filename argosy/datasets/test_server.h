#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "argosy/os/fd.h"

namespace argosy::datasets {

struct Request {
  std::string path{};            ///< "/mnist/train-images-idx3-ubyte.gz"
  std::optional<size_t> from{};  ///< from "Range: bytes=<from>-"
  int number = 0;                ///< number among the requests for this path, from 0
};

/// A server's reply, and how it misbehaves.
struct Reply {
  int status = 200;
  std::string body{};
  bool honours_range = true;
  bool tells_length = true;                ///< Content-Length
  std::optional<size_t> drops_after{};     ///< closes the connection after so many bytes of body
  size_t bytes_at_once = size_t{1} << 20;  ///< in one write
  std::chrono::milliseconds pause{0};      ///< before each write
  std::string location{};                  ///< target of a redirection
};

/// An HTTP server on a free port of the loopback, for tests: answers as `handler` says, which is
/// called from several threads, but never at the same time.
class TestServer final {
 public:
  explicit TestServer(std::function<Reply(const Request&)> handler);
  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  [[nodiscard]] std::string url() const;  ///< "http://127.0.0.1:12345"
  [[nodiscard]] std::vector<Request> requests() const;

 private:
  void run();
  void answer(os::UniqueFd connection);
  [[nodiscard]] Reply ask_handler(Request& request);

  std::function<Reply(const Request&)> handler_;
  os::UniqueFd listener_{};
  uint16_t port_ = 0;
  std::atomic<bool> closing_{false};
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
  std::vector<std::thread> connections_;  // of run()'s thread alone
  std::thread thread_;
};

}  // namespace argosy::datasets
