#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "argosy/rendezvous/store.h"
#include "argosy/transport/transport.h"

#include "tests/support/run_ranks.h"
#include "tests/support/shared_counter.h"
#include "tests/support/temp_dir.h"

// One suite for every transport. A backend joins with its factory, and CMake's
// argosy_transport_conformance(NAME SOURCES … DEPS …) adds the cases:
//
//     ARGOSY_CONFORMANCE(MyTransport,
//                        [](int rank, int size, const auto& store) { return make(store, rank,
//                        size); });
//
// Each case runs with 1, 2, 3, 5 and 8 ranks, as threads and as processes.
namespace argosy::conformance {

using Factory = std::function<std::unique_ptr<transport::Transport>(
    int rank, int size, const std::shared_ptr<rendezvous::Store>& store)>;

struct Case {
  Factory make{};
  int size = 1;
  test::RankMode mode = test::RankMode::kThreads;

  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.size << " ranks";
  }
};

[[nodiscard]] inline std::vector<Case> all_cases(const Factory& make,
                                                 const std::vector<test::RankMode>& modes,
                                                 const std::vector<int>& sizes) {
  std::vector<Case> cases;
  for (const auto mode : modes) {
    for (const int size : sizes) {
      cases.push_back({make, size, mode});
    }
  }
  return cases;
}

inline std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return (info.param.mode == test::RankMode::kThreads ? "Threads" : "Processes") +
         std::to_string(info.param.size);
}

constexpr std::chrono::seconds kTimeout{20};

/// The host of each rank, for transports that tell hosts apart: the first half, rounded up, is on
/// one.
[[nodiscard]] inline std::vector<int> two_hosts(int size) {
  std::vector<int> hosts(static_cast<size_t>(size), 1);
  std::fill_n(hosts.begin(), (size + 1) / 2, 0);
  return hosts;
}

/// A place where ranks of either mode meet: in memory for threads, in a folder for processes.
class Meeting final {
 public:
  explicit Meeting(test::RankMode mode);
  /// To be called in the rank.
  [[nodiscard]] std::shared_ptr<rendezvous::Store> store() const;

 private:
  test::RankMode mode_;
  std::shared_ptr<rendezvous::Store> in_process_;
  test::TempDir folder_;
};

class TransportTest : public ::testing::TestWithParam<Case> {
 protected:
  using Body = std::function<void(transport::Transport&)>;

  void SetUp() override {
    if (!GetParam().make) {
      GTEST_SKIP() << "this machine has no device for it";
    }
  }

  /// Runs `body` on all ranks, each with its transport.
  void run(const Body& body);
  /// The same for tests in which ranks fail; `body` owns the transport.
  std::vector<test::RankOutcome> try_run(
      const std::function<void(std::unique_ptr<transport::Transport>)>& body);
};

/// What holds for whole groups of any size.
class TransportConformance : public TransportTest {};
/// What happens when ranks die or stay away; five ranks, so that some are not neighbours.
class TransportFailures : public TransportTest {};
/// What happens when ranks call different operations: many small groups, as threads.
class TransportMismatches : public TransportTest {};
/// Ranks that are killed: processes only.
class TransportDeaths : public TransportTest {};

using test::SharedCounter;

}  // namespace argosy::conformance

#define ARGOSY_CONFORMANCE_OF_GROUPS(name, factory, ...)                                          \
  INSTANTIATE_TEST_SUITE_P(name,                                                                  \
                           TransportConformance,                                                  \
                           ::testing::ValuesIn(all_cases(factory, __VA_ARGS__, {1, 2, 3, 5, 8})), \
                           case_name);                                                            \
  INSTANTIATE_TEST_SUITE_P(name,                                                                  \
                           TransportFailures,                                                     \
                           ::testing::ValuesIn(all_cases(factory, __VA_ARGS__, {5})),             \
                           case_name)

#define ARGOSY_CONFORMANCE_MODES(name, factory, ...)                            \
  ARGOSY_CONFORMANCE_OF_GROUPS(name, factory, __VA_ARGS__);                     \
  INSTANTIATE_TEST_SUITE_P(                                                     \
      name,                                                                     \
      TransportMismatches,                                                      \
      ::testing::ValuesIn(all_cases(factory, {test::RankMode::kThreads}, {3})), \
      case_name)

/// Joins a backend that runs as threads and as processes.
#define ARGOSY_CONFORMANCE(name, ...)                                                            \
  namespace argosy::conformance {                                                                \
  static const Factory k##name##Factory = __VA_ARGS__;                                           \
  ARGOSY_CONFORMANCE_MODES(name,                                                                 \
                           k##name##Factory,                                                     \
                           (std::vector{test::RankMode::kThreads, test::RankMode::kProcesses})); \
  INSTANTIATE_TEST_SUITE_P(                                                                      \
      name,                                                                                      \
      TransportDeaths,                                                                           \
      ::testing::ValuesIn(all_cases(k##name##Factory, {test::RankMode::kProcesses}, {5})),       \
      case_name);                                                                                \
  }                                                                                              \
  static_assert(true)

/// Joins a backend that cannot compare the calls of its ranks; it has tests of its own of that.
#define ARGOSY_CONFORMANCE_WITHOUT_MISMATCHES(name, ...)                                   \
  namespace argosy::conformance {                                                          \
  static const Factory k##name##Factory = __VA_ARGS__;                                     \
  ARGOSY_CONFORMANCE_OF_GROUPS(name,                                                       \
                               k##name##Factory,                                           \
                               (std::vector{test::RankMode::kThreads,                      \
                                            test::RankMode::kProcesses}));                 \
  INSTANTIATE_TEST_SUITE_P(                                                                \
      name,                                                                                \
      TransportDeaths,                                                                     \
      ::testing::ValuesIn(all_cases(k##name##Factory, {test::RankMode::kProcesses}, {5})), \
      case_name);                                                                          \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportMismatches);                      \
  }                                                                                        \
  static_assert(true)

/// Joins a backend for threads of one process only.
#define ARGOSY_CONFORMANCE_THREADS(name, ...)                                                \
  namespace argosy::conformance {                                                            \
  static const Factory k##name##Factory = __VA_ARGS__;                                       \
  ARGOSY_CONFORMANCE_MODES(name, k##name##Factory, (std::vector{test::RankMode::kThreads})); \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TransportDeaths);                            \
  }                                                                                          \
  static_assert(true)
