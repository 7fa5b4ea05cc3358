/// Strangers call at every port at which the ranks of a job listen while they meet: a port scan,
/// say. They get nothing of the job and are logged, and the job's sums are right.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/os/fd.h"
#include "argosy/os/socket.h"
#include "argosy/rendezvous/file_store.h"
#include "argosy/transport/gloo/gloo.h"

#include "besieged_store.h"
#include "listening_ports.h"
#include "tests/support/run_ranks.h"
#include "tests/support/shared_counter.h"
#include "tests/support/temp_dir.h"

namespace argosy::transport {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kRanks = 3;
constexpr float kSumOfRanks = 1 + 2 + 3;

enum class Manners {
  kSilent,   ///< connects, says nothing and stays: a slow scan, a monitor
  kGarbage,  ///< talks of something else: a browser
  kGone,     ///< connects and goes: a fast scan
};

/// Says its piece and keeps the connection, if it is of those that stay.
class Stranger final {
 public:
  Stranger(uint16_t port, Manners manners)
      : fd_(*os::connect_tcp("127.0.0.1", port, Deadline::after(10s))) {
    if (manners == Manners::kGarbage) {
      constexpr std::string_view kRequest =
          "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n";
      EXPECT_TRUE(os::write_all(fd_.get(), kRequest).ok());
    } else if (manners == Manners::kGone) {
      fd_.close();
    }
  }

  /// All that it is told, up to the end of the connection, which the job must bring about.
  std::string hears() {
    std::string heard;
    std::array<char, 4096> piece{};
    const Deadline deadline = Deadline::after(20s);
    while (fd_) {
      const Result<bool> ready = os::wait_ready(fd_.get(), POLLIN, deadline);
      if (!ready.ok() || !*ready) {
        return heard + " and is still connected";
      }
      const ssize_t got = ::recv(fd_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
      if (got <= 0) {
        break;
      }
      heard.append(piece.data(), static_cast<size_t>(got));
    }
    return heard;
  }

 private:
  os::UniqueFd fd_;
};

/// The sum over all ranks, small (each rank adds) and large (each adds a part).
void expect_right_sums(Transport& transport) {
  for (const int64_t count : {5, 1 << 18}) {
    std::vector<float> values(static_cast<size_t>(count), static_cast<float>(transport.rank() + 1));
    transport.all_reduce(values.data(), count, DType::kF32, ReduceOp::kSum, 20s);
    EXPECT_EQ(values, std::vector<float>(values.size(), kSumOfRanks));
  }
}

class Strangers : public ::testing::TestWithParam<Manners> {};

TEST_P(Strangers, AtEveryPortWhileRanksMeetAreTurnedAway) {
  const test::TempDir folder;
  const auto outcomes =
      test::try_run_ranks(kRanks,
                          [&](int rank) {
                            std::vector<Stranger> strangers;
                            const auto store = test::besieged_store(
                                rendezvous::file_store((folder.path() / "store").string()),
                                [&](const std::string& address) {
                                  for (const uint16_t port : test::listening_ports(::getpid())) {
                                    for (int i = 0; i < 3; ++i) {
                                      strangers.emplace_back(port, GetParam());
                                    }
                                  }
                                  return address;
                                });
                            const auto transport = make_gloo(store, rank, kRanks, {.timeout = 20s});
                            EXPECT_GE(strangers.size(), 3U);
                            expect_right_sums(*transport);
                            for (Stranger& stranger : strangers) {
                              EXPECT_EQ(stranger.hears(), "");
                            }
                            EXPECT_THAT(test::listening_ports(::getpid()), IsEmpty());
                          },
                          {.mode = test::RankMode::kProcesses, .deadline = 60s});
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.ok()) << describe(outcome);
    EXPECT_THAT(outcome.output,
                HasSubstr("[transport.gloo] rank " + std::to_string(outcome.rank) +
                          " turned away a caller from 127.0.0.1"));
  }
}

INSTANTIATE_TEST_SUITE_P(All,
                         Strangers,
                         ::testing::Values(Manners::kSilent, Manners::kGarbage, Manners::kGone));

/// As fast as it can, from a process of its own, at whatever listens at the moment.
TEST(StrangersStorm, DisturbsNoneOfTenMeetings) {
  constexpr int kMeetings = 10;
  const test::TempDir folder;
  test::SharedCounter calls;  // each rank publishes its address only after one more of them
  test::run_ranks(kRanks + 1,
                  [&](int rank) {
                    const auto store = rendezvous::file_store((folder.path() / "store").string());
                    const auto key = [](int who) { return "pid/" + std::to_string(who); };
                    const Deadline deadline = Deadline::after(90s);
                    if (rank < kRanks) {
                      store->set(key(rank), std::to_string(::getpid()), deadline);
                      for (int meeting = 0; meeting < kMeetings; ++meeting) {
                        const auto besieged = test::besieged_store(
                            rendezvous::prefix_store(store, "meeting" + std::to_string(meeting)),
                            [&](const std::string& address) {
                              EXPECT_TRUE(calls.wait_for(calls.add(0) + 1));
                              return address;
                            });
                        const auto transport = make_gloo(besieged, rank, kRanks, {.timeout = 20s});
                        expect_right_sums(*transport);
                      }
                      store->add("over", 1, deadline);
                      return;
                    }
                    std::vector<pid_t> ranks;
                    for (int other = 0; other < kRanks; ++other) {
                      ranks.push_back(std::stoi(store->get(key(other), deadline)));
                    }
                    std::vector<os::UniqueFd> open;
                    while (store->add("over", 0, deadline) < kRanks) {
                      for (const pid_t pid : ranks) {
                        for (const uint16_t port : test::listening_ports(pid)) {
                          Result<os::UniqueFd> fd = os::connect_tcp(
                              "127.0.0.1", port, Deadline::after(0ms));  // tries once
                          if (fd.ok()) {
                            open.push_back(*std::move(fd));
                            calls.add(1);
                          }
                        }
                      }
                      if (open.size() > 500) {
                        open.clear();
                      }
                    }
                  },
                  {.mode = test::RankMode::kProcesses, .deadline = 120s});
}

}  // namespace
}  // namespace argosy::transport
