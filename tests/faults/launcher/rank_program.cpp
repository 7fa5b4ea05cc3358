// A rank that joins its job through the launcher's store and then waits to be told to fail, by
// SIGUSR1: with code 7 as rank 3, with code 1 as any other, without a goodbye to the store. With
// HANG=abort or ignore rank 1 stands still where the others wait for it. With THROW=with_handler or
// without rank 1 ends by an exception, with or without the library's handler of crashes.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "argosy/os/crash_handler.h"
#include "argosy/os/heartbeat.h"
#include "argosy/rendezvous/join.h"

namespace {

int exit_code = 1;

void fail(int /*signal*/) {
  ::_exit(exit_code);
}

void throw_as_rank_1() {
  const char* how = std::getenv("THROW");
  const char* rank = std::getenv("RANK");
  if (how != nullptr && rank != nullptr && std::string_view(rank) == "1") {
    if (std::string_view(how) == "with_handler") {
      argosy::os::install_crash_handler();
    }
    throw std::runtime_error("my file is missing");
  }
}

}  // namespace

int main() {
  using namespace std::chrono_literals;
  throw_as_rank_1();
  try {
    const auto joined = argosy::rendezvous::join({}, argosy::Deadline::after(60s));
    exit_code = joined.rank == 3 ? 7 : 1;
    ::signal(SIGUSR1, fail);
    const char* hang = std::getenv("HANG");
    const auto heartbeat =
        hang != nullptr ? argosy::os::Heartbeat::begin() : std::unique_ptr<argosy::os::Heartbeat>();
    if (heartbeat) {
      heartbeat->beat(
          joined.rank == 1 ? "all_reduce (seq 5) of world" : "all_reduce (seq 6) of world",
          joined.rank == 1 ? 0 : 1);
      ::signal(SIGABRT, std::string_view(hang) == "ignore" ? SIG_IGN : SIG_DFL);
    }
    fmt::print("pid {} joined {} ranks\n", ::getpid(), joined.world_size);
    std::fflush(stdout);
    while (true) {
      ::pause();
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
