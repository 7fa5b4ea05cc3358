#pragma once

#include <pthread.h>

#include <csignal>
#include <ctime>

namespace argosy::transport {

/// While it lives, a write of this thread to a connection that the other end closed returns EPIPE
/// and sends no SIGPIPE, which would end the program. Gloo writes without MSG_NOSIGNAL. Threads
/// that start meanwhile never get the signal. The program's own handling of it stays as it is.
class NoSigpipe final {
 public:
  NoSigpipe() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  ~NoSigpipe() {
    if (sigismember(&before_, SIGPIPE) == 1) {
      return;  // whoever blocked it deals with it
    }
    sigset_t pending;
    sigpending(&pending);
    if (sigismember(&pending, SIGPIPE) == 1) {
      sigset_t pipe;
      sigemptyset(&pipe);
      sigaddset(&pipe, SIGPIPE);
      const timespec now{};
      sigtimedwait(&pipe, nullptr, &now);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace argosy::transport
