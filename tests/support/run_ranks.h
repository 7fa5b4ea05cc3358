#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace argosy::test {

enum class RankMode {
  kThreads,    ///< ranks share the process: for ThreadSanitizer and speed
  kProcesses,  ///< forked: a rank may die by a signal; output is captured
};

struct RankOptions {
  RankMode mode = RankMode::kThreads;
  /// When it passes, all ranks are killed and the captured output is printed. Threads cannot be
  /// killed: the whole test program then aborts, naming the ranks that did not return.
  std::chrono::milliseconds deadline = std::chrono::seconds(30);
};

/// How one rank ended.
struct RankOutcome {
  int rank = -1;
  std::string error_type{};  ///< "argosy::TimeoutError"; empty when no exception left the function
  std::string error{};       ///< what() of that exception
  std::vector<int> peers{};  ///< of a CommError
  int signal = 0;            ///< the signal that ended the process, e.g. SIGKILL
  int exit_code = 0;         ///< of a rank that called exit itself
  bool timed_out = false;    ///< it was still running at the deadline
  bool cut_short = false;    ///< its process ended with exit code 0 before the function returned
  bool expectation_failed = false;  ///< an EXPECT_ or ASSERT_ failed in it (processes; see output)
  std::string output{};             ///< stdout and stderr (processes)

  [[nodiscard]] bool ok() const {
    return error_type.empty() && signal == 0 && exit_code == 0 && !timed_out && !cut_short &&
           !expectation_failed;
  }
};

/// "rank 3: argosy::CommError: [transport.…] …", with the output; for failure messages.
[[nodiscard]] std::string describe(const RankOutcome& outcome);

/// Calls fn(rank) for n ranks at once and waits for all of them. Throws std::runtime_error with
/// everything that is known when a rank did not end well, so that a test fails by it:
///
///     test::run_ranks(4, [&](int rank) {
///       auto transport = make(rank, 4, store);
///       EXPECT_EQ(sum_over(*transport), 6);          // expectations work in both modes
///     }, {.mode = test::RankMode::kProcesses});
///
/// Fork rules (kProcesses): the test must not have used OpenMP (torch operators), gRPC or threads
/// before it in the same process; children start with the memory of the parent, so a store must be
/// one that processes share (a file store made before, or a server that one of the ranks starts).
/// Children die with the parent, and never run atexit handlers or static destructors.
/// Thread-safety: from the main thread of the test.
void run_ranks(int n, const std::function<void(int)>& fn, const RankOptions& options = {});

/// The same, but hands back how each rank ended, for tests in which some are meant to fail:
///
///     auto outcomes = test::try_run_ranks(5, [&](int rank) {
///       auto transport = make(rank, 5, store);
///       if (rank == 3) raise(SIGKILL);
///       transport->barrier(10s);
///     }, {.mode = test::RankMode::kProcesses});
///     EXPECT_EQ(outcomes[3].signal, SIGKILL);
///     EXPECT_THAT(outcomes[0].peers, ElementsAre(3)) << describe(outcomes[0]);
[[nodiscard]] std::vector<RankOutcome> try_run_ranks(int n,
                                                     const std::function<void(int)>& fn,
                                                     const RankOptions& options = {});

}  // namespace argosy::test
