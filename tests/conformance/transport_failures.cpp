#include <signal.h>
#include <unistd.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/conformance/transport_conformance.h"

namespace argosy::conformance {
namespace {

using namespace std::chrono_literals;
using test::RankOutcome;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using transport::DType;
using transport::ReduceOp;
using transport::Transport;

constexpr int kCulprit = 3;

void expect_all_blame(const std::vector<RankOutcome>& outcomes,
                      int culprit,
                      const std::string& type) {
  for (const RankOutcome& outcome : outcomes) {
    if (outcome.rank != culprit) {
      EXPECT_EQ(outcome.error_type, type) << describe(outcome);
      EXPECT_THAT(outcome.peers, ElementsAre(culprit)) << describe(outcome);
      EXPECT_EQ(outcome.signal, 0) << describe(outcome);
    }
  }
}

TEST_P(TransportFailures, ATimeoutNamesWhoDidNotCome) {
  SharedCounter given_up;
  const auto outcomes = try_run([&](std::unique_ptr<Transport> t) {
    float value = 1;
    t->all_reduce(&value, 1, DType::kF32, ReduceOp::kSum, kTimeout);
    if (t->rank() == kCulprit) {  // alive, but never calls it
      const Deadline deadline = Deadline::after(kTimeout);
      while (given_up.add(0) < 4 && !deadline.expired()) {
        std::this_thread::sleep_for(5ms);
      }
      return;
    }
    try {
      t->barrier(4s);  // what a rank may need to come, on a machine that others keep busy
    } catch (const TimeoutError& e) {
      EXPECT_THAT(e.what(), HasSubstr("waiting for rank 3"));
      EXPECT_THAT(e.what(),
                  AnyOf(HasSubstr("last seen after all_reduce (seq 1)"),
                        HasSubstr("last seen before its first operation"),
                        HasSubstr("what it did last is not known")));
      // Broken for good, with the same cause, at once.
      EXPECT_THROW(t->barrier(kTimeout), TimeoutError);
      EXPECT_THROW((void)t->send(&value, 4, (t->rank() + 1) % 5, 0), TimeoutError);
      given_up.add(1);
      throw;
    } catch (...) {
      given_up.add(1);
      throw;
    }
    given_up.add(1);
  });
  expect_all_blame(outcomes, kCulprit, "argosy::TimeoutError");
  EXPECT_TRUE(outcomes[kCulprit].ok()) << describe(outcomes[kCulprit]);
}

/// Beside a message for which there is time: the deadline that passed is the one to tell of.
TEST_P(TransportFailures, ATimeoutBesideAMessageNamesWhoDidNotCome) {
  SharedCounter given_up;
  const auto outcomes = try_run([&](std::unique_ptr<Transport> t) {
    float value = 1;
    t->all_reduce(&value, 1, DType::kF32, ReduceOp::kSum, kTimeout);
    if (t->rank() == 0) {
      char byte = 0;
      const auto message = t->recv(&byte, 1, kCulprit, 0);
      std::string told;
      std::thread waits([&] {
        try {
          message->wait(kTimeout);
        } catch (const Error& error) {
          told = error.what();
        }
      });
      std::string late;
      try {
        t->barrier(500ms);
      } catch (const TimeoutError& error) {
        late = error.what();
      }
      waits.join();
      given_up.add(1);
      EXPECT_THAT(late, HasSubstr("rank 3"));
      EXPECT_THAT(told, HasSubstr("timed out"));
      return;
    }
    const Deadline deadline = Deadline::after(kTimeout);
    while (given_up.add(0) < 1 && !deadline.expired()) {
      std::this_thread::sleep_for(5ms);
    }
  });
  EXPECT_TRUE(outcomes[0].ok()) << describe(outcomes[0]);
}

TEST_P(TransportFailures, ALateMessageNamesItsSender) {
  SharedCounter given_up;
  const auto outcomes = try_run([&](std::unique_ptr<Transport> t) {
    if (t->rank() == 0) {
      char byte = 0;
      try {
        t->recv(&byte, 1, kCulprit, 0)->wait(200ms);
      } catch (...) {
        given_up.add(1);
        throw;
      }
    }
    const Deadline deadline = Deadline::after(kTimeout);
    while (given_up.add(0) < 1 && !deadline.expired()) {
      std::this_thread::sleep_for(5ms);
    }
  });
  EXPECT_EQ(outcomes[0].error_type, "argosy::TimeoutError");
  EXPECT_THAT(outcomes[0].peers, ElementsAre(kCulprit)) << describe(outcomes[0]);
}

TEST_P(TransportFailures, WhoLeavesWhileOthersWaitIsNamed) {
  const auto outcomes = try_run([&](std::unique_ptr<Transport> t) {
    t->barrier(kTimeout);
    if (t->rank() == kCulprit) {
      return;  // its program ends
    }
    t->barrier(kTimeout);
  });
  expect_all_blame(outcomes, kCulprit, "argosy::CommError");
  EXPECT_THAT(outcomes[0].error, HasSubstr("rank 3 left the group"));
}

TEST_P(TransportFailures, LeavingAfterTheLastOperationHarmsNobody) {
  const auto outcomes = try_run([&](std::unique_ptr<Transport> t) {
    std::vector<float> values(300'000, 1.0F);
    t->all_reduce(values.data(), 300'000, DType::kF32, ReduceOp::kSum, kTimeout);
    for (const float value : values) {
      ASSERT_EQ(value, 5.0F);
    }
  });
  for (const auto& outcome : outcomes) {
    EXPECT_TRUE(outcome.ok()) << describe(outcome);
  }
}

TEST_P(TransportFailures, CloseWakesWhoWaits) {
  SharedCounter woken;
  const auto outcomes = try_run([&](std::unique_ptr<Transport> t) {
    if (t->rank() != 0) {  // never call it, so that it cannot end
      const Deadline deadline = Deadline::after(kTimeout);
      while (woken.add(0) == 0 && !deadline.expired()) {
        std::this_thread::sleep_for(5ms);
      }
      return;
    }
    std::thread closer([&] { t->close(); });
    try {
      t->barrier(kTimeout);
      ADD_FAILURE() << "a barrier of one rank cannot end";
    } catch (const CommError& e) {
      EXPECT_THAT(e.what(), HasSubstr("closed"));
    }
    closer.join();
    woken.add(1);
  });
  for (const auto& outcome : outcomes) {
    EXPECT_TRUE(outcome.ok()) << describe(outcome);
  }
}

void expect_death(const std::vector<RankOutcome>& outcomes) {
  EXPECT_EQ(outcomes[kCulprit].signal, SIGKILL);
  expect_all_blame(outcomes, kCulprit, "argosy::CommError");
  EXPECT_THAT(outcomes[0].error, ContainsRegex("rank 3 (died|is gone)"));
}

TEST_P(TransportDeaths, BetweenOperations) {
  expect_death(try_run([&](std::unique_ptr<Transport> t) {
    t->barrier(kTimeout);
    if (t->rank() == kCulprit) {
      ::raise(SIGKILL);
    }
    t->barrier(kTimeout);
  }));
}

/// Each rank is somewhere else in a large all_reduce when it happens.
TEST_P(TransportDeaths, InMidCollective) {
  expect_death(try_run([&](std::unique_ptr<Transport> t) {
    std::thread killer;
    if (t->rank() == kCulprit) {
      killer = std::thread([] {
        std::this_thread::sleep_for(50ms);
        ::raise(SIGKILL);
      });
    }
    std::vector<float> values(3'000'000);
    for (;;) {
      t->all_reduce(values.data(), 3'000'000, DType::kF32, ReduceOp::kSum, kTimeout);
    }
  }));
}

/// The root of a broadcast sends to the dead and hears nothing from anybody.
TEST_P(TransportDeaths, WhileOthersOnlySendToIt) {
  expect_death(try_run([&](std::unique_ptr<Transport> t) {
    std::vector<char> values(20'000'000);
    t->barrier(kTimeout);
    if (t->rank() == kCulprit) {
      ::raise(SIGKILL);
    }
    for (;;) {
      t->broadcast(values.data(), 20'000'000, DType::kU8, 0, kTimeout);
      t->barrier(kTimeout);
    }
  }));
}

/// Cut in the middle of a message, of which nothing comes back.
TEST_P(TransportDeaths, WhileAMessageGoesToIt) {
  const auto outcomes = try_run([&](std::unique_ptr<Transport> t) {
    std::vector<char> values(50'000'000);
    t->barrier(kTimeout);
    if (t->rank() == kCulprit) {
      const auto transfer = t->recv(values.data(), values.size(), 0, 0);
      ::raise(SIGKILL);
    }
    if (t->rank() == 0) {
      t->send(values.data(), values.size(), kCulprit, 0)->wait(kTimeout);
    }
    t->barrier(kTimeout);
  });
  expect_death(outcomes);
}

/// Whoever waits for a message of any rank hears of a death too, though others could still send.
TEST_P(TransportDeaths, WhileAnyRankMaySend) {
  const auto outcomes = try_run([&](std::unique_ptr<Transport> t) {
    t->barrier(kTimeout);
    if (t->rank() == kCulprit) {
      ::raise(SIGKILL);
    }
    int value = 0;
    if (t->rank() == 0 && t->name() != "in_process" && t->name() != "nccl") {
      t->recv(&value, sizeof value, transport::kAnyRank, 0)->wait(kTimeout);
    }
    t->barrier(kTimeout);
  });
  expect_death(outcomes);
}

TEST_P(TransportDeaths, AtTheEndWhileOthersStillTalk) {
  const auto outcomes = try_run([&](std::unique_ptr<Transport> t) {
    t->barrier(kTimeout);
    if (t->rank() == kCulprit) {
      t->close();
      ::raise(SIGKILL);
    }
    t->barrier(kTimeout);
  });
  EXPECT_EQ(outcomes[kCulprit].signal, SIGKILL);
  expect_all_blame(outcomes, kCulprit, "argosy::CommError");
}

TEST_P(TransportDeaths, AStoppedRankIsNamedByTheTimeout) {
  SharedCounter pid;
  SharedCounter given_up;
  const auto outcomes = try_run([&](std::unique_ptr<Transport> t) {
    t->barrier(kTimeout);
    if (t->rank() == kCulprit) {
      pid.add(::getpid());
      ::raise(SIGSTOP);  // until the last of the others has given up, and kills it
    }
    try {
      t->barrier(500ms);
    } catch (...) {
      if (given_up.add(1) == 4) {
        ::kill(static_cast<pid_t>(pid.add(0)), SIGKILL);
      }
      throw;
    }
  });
  expect_all_blame(outcomes, kCulprit, "argosy::TimeoutError");
}

/// Dies at its n-th touch of the store, so in every phase of the meeting.
class DyingStore final : public rendezvous::Store {
 public:
  DyingStore(std::shared_ptr<rendezvous::Store> store, int calls)
      : store_(std::move(store)), calls_(calls) {}
  void set(const std::string& k, const std::string& v, const Deadline& d) override {
    touch();
    store_->set(k, v, d);
  }
  std::string get(const std::string& k, const Deadline& d) override {
    touch();
    return store_->get(k, d);
  }
  void wait(const std::vector<std::string>& k, const Deadline& d) override { store_->wait(k, d); }
  int64_t add(const std::string& k, int64_t n, const Deadline& d) override {
    return store_->add(k, n, d);
  }
  std::string compare_set(const std::string& k,
                          const std::string& e,
                          const std::string& v,
                          const Deadline& d) override {
    return store_->compare_set(k, e, v, d);
  }
  bool check(const std::vector<std::string>& k, const Deadline& d) override {
    return store_->check(k, d);
  }
  bool remove(const std::string& k, const Deadline& d) override { return store_->remove(k, d); }
  std::vector<std::string> keys(const std::string& p, const Deadline& d) override {
    return store_->keys(p, d);
  }
  std::unique_ptr<rendezvous::Presence> announce(const std::string& m, const Deadline& d) override {
    return store_->announce(m, d);
  }
  std::vector<rendezvous::Departure> departures(const std::string& p, const Deadline& d) override {
    return store_->departures(p, d);
  }
  std::vector<rendezvous::Member> members(const std::string& p, const Deadline& d) override {
    return store_->members(p, d);
  }
  std::string describe() const override { return store_->describe(); }

 private:
  void touch() {
    if (--calls_ == 0) {
      ::raise(SIGKILL);
    }
  }
  std::shared_ptr<rendezvous::Store> store_;
  int calls_;
};

TEST_P(TransportDeaths, AtSetUp) {
  const Case& c = GetParam();
  int deaths = 0;
  for (const int calls : {1, 2, 7, 9}) {  // of the store; a transport may do with fewer
    const Meeting meeting(c.mode);
    const auto outcomes = test::try_run_ranks(c.size,
                                              [&](int rank) {
                                                auto store = meeting.store();
                                                if (rank == kCulprit) {
                                                  store =
                                                      std::make_shared<DyingStore>(store, calls);
                                                }
                                                const auto t = c.make(rank, c.size, store);
                                                t->barrier(kTimeout);
                                              },
                                              {.mode = c.mode});
    if (outcomes[kCulprit].ok()) {
      break;
    }
    ++deaths;
    expect_death(outcomes);
  }
  EXPECT_GE(deaths, 1);
}

}  // namespace
}  // namespace argosy::conformance
