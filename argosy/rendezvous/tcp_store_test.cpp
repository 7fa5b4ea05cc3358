// The client of PyTorch's TCPStore and the meeting through it, with a server of the same protocol
// in this process; tests/peers does the same with the real torchrun.
#include "argosy/rendezvous/tcp_store.h"

#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/os/socket.h"
#include "argosy/rendezvous/join.h"
#include "argosy/rendezvous/store_kinds.h"
#include "argosy/rendezvous/torchrun_meeting.h"

#include "tests/support/error_text.h"

namespace argosy::rendezvous {
namespace {

using namespace std::chrono_literals;
using test::error_text;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// Answers each connection in a thread of its own by `serve(fd)`.
class Server {
 public:
  explicit Server(std::function<void(int)> serve) : serve_(std::move(serve)) {
    accepting_ = std::thread([this] {
      while (!stop_) {
        Result<os::UniqueFd> fd = listener_.accept(Deadline::after(20ms));
        if (fd.ok()) {
          const std::lock_guard lock(mutex_);
          fds_.push_back(*std::move(fd));
          serving_.emplace_back(serve_, fds_.back().get());
        }
      }
    });
  }
  ~Server() {
    stop_ = true;
    accepting_.join();
    for (const os::UniqueFd& fd : fds_) {
      ::shutdown(fd.get(), SHUT_RDWR);
    }
    for (std::thread& thread : serving_) {
      thread.join();
    }
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  Server(Server&&) = delete;
  Server& operator=(Server&&) = delete;
  [[nodiscard]] uint16_t port() const { return listener_.port(); }

 private:
  std::function<void(int)> serve_;
  os::Listener listener_ = *os::Listener::listen_tcp("127.0.0.1", 0);
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::vector<os::UniqueFd> fds_;
  std::vector<std::thread> serving_;
  std::thread accepting_;
};

std::string take(int fd, size_t bytes) {
  std::string text(bytes, '\0');
  const Result<size_t> got = os::read_all(fd, std::as_writable_bytes(std::span(text)));
  return got.ok() && *got == bytes ? text : "";
}

template <typename T>
T take_number(int fd) {
  T number{};
  const std::string bytes = take(fd, sizeof(T));
  std::memcpy(&number, bytes.data(), bytes.size());
  return number;
}

void answer(int fd, std::string_view text) {
  (void)::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
}

template <typename T>
void answer_number(int fd, T number) {
  answer(fd, {reinterpret_cast<const char*>(&number), sizeof(number)});
}

/// As PyTorch's: commands by number, integers as they lie in memory, text behind its length.
class TorchrunsStore {
 public:
  TorchrunsStore() = default;
  ~TorchrunsStore() {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  TorchrunsStore(const TorchrunsStore&) = delete;
  TorchrunsStore& operator=(const TorchrunsStore&) = delete;
  TorchrunsStore(TorchrunsStore&&) = delete;
  TorchrunsStore& operator=(TorchrunsStore&&) = delete;
  [[nodiscard]] uint16_t port() const { return server_.port(); }
  std::atomic<int> reads = 0;  ///< values that were given out
  std::map<std::string, std::string> values() {
    const std::lock_guard lock(mutex_);
    return values_;
  }
  void put(const std::string& key, const std::string& value) {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
    changed_.notify_all();
  }

 private:
  static std::string take_text(int fd) { return take(fd, take_number<uint64_t>(fd)); }
  void serve(int fd) {
    while (true) {
      const std::string query = take(fd, 1);
      if (query.empty()) {
        return;
      }
      switch (query[0]) {
        case 0:
          EXPECT_EQ(take_number<uint32_t>(fd), 0x3C85F7CEU);
          break;
        case 1: {
          const std::string key = take_text(fd);
          put(key, take_text(fd));
          break;
        }
        case 3: {
          const std::string value = values()[take_text(fd)];
          answer_number(fd, uint64_t{value.size()});
          answer(fd, value);
          ++reads;
          break;
        }
        case 6: {
          EXPECT_EQ(take_number<uint64_t>(fd), 1U);
          const std::string key = take_text(fd);
          std::unique_lock lock(mutex_);
          changed_.wait(lock, [&] { return closing_ || values_.contains(key); });
          if (!closing_) {
            answer(fd, std::string(1, '\0'));
          }
          break;
        }
        case 13:
          answer(fd, take(fd, 4));
          break;
        default:
          ADD_FAILURE() << "query " << int{query[0]};
          return;
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  bool closing_ = false;
  Server server_{[this](int fd) { serve(fd); }};
};

MeetingPlace place_of(int rank, uint16_t port) {
  return {.kind = MeetingPlace::Kind::kTorchrun,
          .rank = rank,
          .world_size = 3,
          .host = "127.0.0.1",
          .port = port,
          .run_id = "job.0"};
}

TEST(TcpStore, SetsAndWaitsForValues) {
  TorchrunsStore torchruns;
  TcpStore one("127.0.0.1", torchruns.port(), soon());
  auto waiting = std::async(std::launch::async, [&] {
    TcpStore two("localhost", torchruns.port(), soon());
    return two.get("a/key", soon());
  });
  one.set("a/key", std::string("with\0null", 9), soon());
  EXPECT_EQ(waiting.get(), std::string("with\0null", 9));
  EXPECT_EQ(one.get("a/key", soon()).size(), 9);
  EXPECT_THAT(torchruns.values(), ElementsAre(testing::Pair("/a/key", testing::SizeIs(9))));
}

TEST(TcpStore, AKeyThatNobodySetsIsNamedAtTheDeadline) {
  TorchrunsStore torchruns;
  TcpStore store("127.0.0.1", torchruns.port(), soon());
  EXPECT_THAT(
      error_text<TimeoutError>([&] { (void)store.get("argosy/x/0", Deadline::after(50ms)); }),
      HasSubstr("nobody has set \"argosy/x/0\" in torchrun's store at 127.0.0.1:"));
}

TEST(TcpStore, WhatIsNoTcpStoreIsToldAsThat) {
  const auto connect_to = [](const std::function<void(int)>& serve) {
    const Server server(serve);
    return error_text<RendezvousError>([&] {
      TcpStore("127.0.0.1", server.port(), Deadline::after(200ms)).set("a", "b", soon());
    });
  };
  EXPECT_THAT(connect_to([](int fd) { ::shutdown(fd, SHUT_RDWR); }),
              HasSubstr("does not answer as PyTorch's TCPStore does"));
  EXPECT_THAT(connect_to([](int fd) { answer(fd, "HTTP/1.1 400 Bad Request"); }),
              HasSubstr("another number came back"));
  EXPECT_THAT(connect_to([](int) {}), HasSubstr("no answer"));
}

TEST(MeetThroughTorchrun, RankZeroHostsAndTheOthersFindIt) {
  TorchrunsStore torchruns;
  std::vector<std::future<std::vector<Member>>> ranks;
  for (int rank = 2; rank >= 0; --rank) {
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      const MeetingPlace place = place_of(rank, torchruns.port());
      const std::shared_ptr<Store> store = meet_through_torchrun(place, 0, soon());
      const auto presence = wait_for_ranks(*store, rank, 3, soon(), place.run_id);
      store->set("met/" + std::to_string(rank), "yes", soon());
      store->wait({"met/0", "met/1", "met/2"}, soon());
      return store->members("rank/", soon());
    }));
  }
  for (auto& rank : ranks) {
    EXPECT_FALSE(rank.get().empty());
  }
}

TEST(MeetThroughTorchrun, OnlyWhoReadsTorchrunsStoreMayReadOurs) {
  TorchrunsStore torchruns;
  const std::shared_ptr<Store> hosted =
      meet_through_torchrun(place_of(0, torchruns.port()), 0, soon());
  ASSERT_EQ(torchruns.values().size(), 1);
  const std::string said = torchruns.values().begin()->second;
  EXPECT_THAT(said, testing::MatchesRegex("argosy-store-2 127\\.0\\.0\\.1:[0-9]+ [0-9a-f]{32}"));
}

MeetingPlace with_token(MeetingPlace place, const std::string& token) {
  place.token = token;
  return place;
}

TEST(MeetThroughTorchrun, AGivenTokenIsProvenAndNotTold) {
  TorchrunsStore torchruns;
  const std::shared_ptr<Store> hosted =
      meet_through_torchrun(with_token(place_of(0, torchruns.port()), "sesame"), 0, soon());
  EXPECT_THAT(torchruns.values().begin()->second,
              testing::MatchesRegex("argosy-store-2 127\\.0\\.0\\.1:[0-9]+ proof:[0-9a-f]{64}"));
  const std::shared_ptr<Store> found =
      meet_through_torchrun(with_token(place_of(1, torchruns.port()), "sesame"), 0, soon());
  found->set("key", "of this job", soon());
  EXPECT_EQ(hosted->get("key", soon()), "of this job");
  for (const auto& [token, hint] : {std::pair{"", "with another token, and this rank has none"},
                                    {"simsim", "with another token, and this rank has one"}}) {
    EXPECT_THAT(error_text<RefusedError>([&, token = token] {
                  (void)meet_through_torchrun(
                      with_token(place_of(1, torchruns.port()), token), 0, Deadline::after(500ms));
                }),
                HasSubstr(hint));
  }
}

/// Who writes into torchrun's store, which asks nobody for a secret, must not get the job's token.
TEST(MeetThroughTorchrun, WhoDoesNotKnowTheTokenInvitesNobody) {
  std::atomic<int> calls = 0;
  const Server stranger([&](int) { ++calls; });
  TorchrunsStore torchruns;
  const std::string there = "argosy-store-2 127.0.0.1:" + std::to_string(stranger.port());
  for (const std::string secret : {"0123456789abcdef", "proof:0123456789abcdef"}) {
    torchruns.put("/argosy/job.0/0", there + " " + secret);
    EXPECT_THAT(error_text<RefusedError>([&] {
                  (void)meet_through_torchrun(with_token(place_of(1, torchruns.port()), "sesame"),
                                              0,
                                              Deadline::after(100ms));
                }),
                HasSubstr("All ranks need the same ARGOSY_TOKEN"));
  }
  EXPECT_EQ(calls, 0);
}

TEST(MeetThroughTorchrun, WhatAFormerRankZeroLeftIsReadAgain) {
  TorchrunsStore torchruns;
  const os::HeldPort nobody = *os::HeldPort::hold();
  torchruns.put("/argosy/job.0/0",
                "argosy-store-2 127.0.0.1:" + std::to_string(nobody.number()) + " former");
  auto one = std::async(std::launch::async, [&] {
    return meet_through_torchrun(place_of(1, torchruns.port()), 0, soon());
  });
  while (torchruns.reads == 0) {
    std::this_thread::sleep_for(1ms);
  }
  const std::shared_ptr<Store> hosted =
      meet_through_torchrun(place_of(0, torchruns.port()), 0, soon());
  hosted->set("key", "of this job", soon());
  EXPECT_EQ(one.get()->get("key", soon()), "of this job");
}

TEST(MeetThroughTorchrun, ARankZeroThatDoesNotComeIsNamed) {
  TorchrunsStore torchruns;
  try {
    (void)meet_through_torchrun(place_of(1, torchruns.port()), 0, Deadline::after(500ms));
    ADD_FAILURE() << "met nobody";
  } catch (const TimeoutError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 did not come"));
    EXPECT_THAT(error.peers(), ElementsAre(0));
  }
}

TEST(MeetThroughTorchrun, AnotherVersionsWordsAreRefused) {
  TorchrunsStore torchruns;
  torchruns.put("/argosy/job.0/0", "argosy-store-3 127.0.0.1:1 x");
  EXPECT_THAT(error_text<RendezvousError>(
                  [&] { (void)meet_through_torchrun(place_of(1, torchruns.port()), 0, soon()); }),
              AllOf(HasSubstr("argosy-store-3"), HasSubstr("one version of Argosy")));
}

}  // namespace
}  // namespace argosy::rendezvous
