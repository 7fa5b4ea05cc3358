#include <gtest/gtest.h>

#include "argosy/base/error.h"

#include "tests/conformance/transport_conformance.h"

namespace argosy::conformance {
namespace {

using transport::DType;
using transport::ReduceOp;
using transport::Transfer;
using transport::Transport;

using Transfers = std::vector<std::unique_ptr<Transfer>>;

void wait_all(Transfers& transfers) {
  for (auto& transfer : transfers) {
    transfer->wait(kTimeout);
  }
}

/// Messages over NCCL have no tags, only an order.
uint32_t tag(const Transport& t, uint32_t wanted) {
  return t.name() == "nccl" ? 0 : wanted;
}

/// All of one length, so that nothing but the tag tells them apart.
std::string text(int from, int to, uint32_t tag) {
  std::string words =
      std::to_string(from) + " to " + std::to_string(to) + " about " + std::to_string(tag);
  words.resize(3000, '.');
  return words;
}

TEST_P(TransportConformance, MessagesMeetByTagWhateverTheOrder) {
  run([](Transport& t) {
    const std::vector<uint32_t> tags =
        tag(t, 7) == 0 ? std::vector<uint32_t>{0} : std::vector<uint32_t>{0, 7, 3, 0xffffffffU, 12};
    Transfers transfers;
    std::vector<std::string> sent, received;
    sent.reserve(100);
    received.reserve(100);
    for (int peer = 0; peer < t.size(); ++peer) {
      for (const uint32_t about : tags) {
        if (peer != t.rank()) {
          sent.push_back(text(t.rank(), peer, about));
          transfers.push_back(t.send(sent.back().data(), sent.back().size(), peer, about));
        }
      }
    }
    for (int peer = t.size() - 1; peer >= 0; --peer) {
      for (size_t i = tags.size(); i-- > 0;) {
        if (peer != t.rank()) {
          received.emplace_back(text(peer, t.rank(), tags[i]).size(), '?');
          transfers.push_back(
              t.recv(received.back().data(), received.back().size(), peer, tags[i]));
        }
      }
    }
    wait_all(transfers);
    size_t next = 0;
    for (int peer = t.size() - 1; peer >= 0; --peer) {
      for (size_t i = tags.size(); i-- > 0;) {
        if (peer != t.rank()) {
          ASSERT_EQ(received[next++], text(peer, t.rank(), tags[i]));
        }
      }
    }
  });
}

TEST_P(TransportConformance, ManySendsBeforeTheReceivesKeepTheirOrder) {
  run([](Transport& t) {
    if (t.size() == 1) {
      return;
    }
    constexpr int kMessages = 200;
    const int next = (t.rank() + 1) % t.size();
    const int previous = (t.rank() + t.size() - 1) % t.size();
    std::vector<int> out(kMessages), in(kMessages, -1);
    Transfers transfers;
    for (int i = 0; i < kMessages; ++i) {
      out[static_cast<size_t>(i)] = t.rank() * 1000 + i;
      transfers.push_back(t.send(&out[static_cast<size_t>(i)], sizeof(int), next, tag(t, 5)));
    }
    for (int i = 0; i < kMessages; ++i) {
      transfers.push_back(t.recv(&in[static_cast<size_t>(i)], sizeof(int), previous, tag(t, 5)));
    }
    wait_all(transfers);
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_EQ(in[static_cast<size_t>(i)], previous * 1000 + i);
    }
  });
}

/// Messages wait across collectives, and neither takes the other's data.
TEST_P(TransportConformance, MessagesAndCollectivesDoNotMix) {
  run([](Transport& t) {
    if (t.size() == 1) {
      return;
    }
    const int next = (t.rank() + 1) % t.size();
    const int previous = (t.rank() + t.size() - 1) % t.size();
    for (uint32_t round = 0; round < 10; ++round) {
      int64_t out = t.rank() * 100 + round, in = -1, sum = 1;
      auto send = t.send(&out, sizeof(out), next, tag(t, round));
      t.all_reduce(&sum, 1, DType::kI64, ReduceOp::kSum, kTimeout);
      auto recv = t.recv(&in, sizeof(in), previous, tag(t, round));
      t.barrier(kTimeout);
      recv->wait(kTimeout);
      send->wait(kTimeout);
      ASSERT_EQ(sum, t.size());
      ASSERT_EQ(in, previous * 100 + round);
    }
  });
}

/// Of each rank two messages, of which some come before they are expected, and some after.
TEST_P(TransportConformance, WhoSendsFirstIsReceivedFromAny) {
  run([](Transport& t) {
    constexpr int kOfEach = 2;
    std::vector<int> got(static_cast<size_t>(kOfEach * (t.size() - 1)), -1);
    if (t.size() == 1 || t.name() == "in_process" || t.name() == "nccl") {
      EXPECT_THROW((void)t.recv(got.data(), sizeof(int), transport::kAnyRank, 0), UsageError);
      return;
    }
    if (t.rank() != 0) {
      const std::vector<int> mine{10 * t.rank(), 10 * t.rank() + 1};
      const int other = -1;
      Transfers transfers;
      transfers.push_back(t.send(&other, sizeof other, 0, 8));
      transfers.push_back(t.send(&mine[0], sizeof(int), 0, 9));
      t.barrier(kTimeout);
      transfers.push_back(t.send(&mine[1], sizeof(int), 0, 9));
      wait_all(transfers);
      t.barrier(kTimeout);
      return;
    }
    t.barrier(kTimeout);
    std::vector<int> seen(static_cast<size_t>(t.size()), 0);
    Transfers transfers;
    for (int& one : got) {
      transfers.push_back(t.recv(&one, sizeof(int), transport::kAnyRank, 9));
    }
    wait_all(transfers);
    for (size_t i = 0; i < got.size(); ++i) {
      const int source = transfers[i]->source();
      ASSERT_GT(source, 0);
      ASSERT_EQ(got[i], 10 * source + seen[static_cast<size_t>(source)]++) << "in their order";
    }
    for (int peer = 1; peer < t.size(); ++peer) {  // what has another tag is still there
      ASSERT_EQ(seen[static_cast<size_t>(peer)], kOfEach);
      int other = 0;
      const auto transfer = t.recv(&other, sizeof other, peer, 8);
      transfer->wait(kTimeout);
      ASSERT_EQ(other, -1);
      ASSERT_EQ(transfer->source(), peer);
    }
    t.barrier(kTimeout);
  });
}

/// Whether a receive names the sender or not.
TEST_P(TransportConformance, TheFirstReceiveGetsTheFirstMessage) {
  run([](Transport& t) {
    if (t.size() == 1 || t.name() != "shm") {
      return;  // it is not promised
    }
    constexpr int kMessages = 4;
    std::vector<int> values(kMessages);
    Transfers transfers;
    if (t.rank() == 0) {
      for (int i = 0; i < kMessages; ++i) {
        const int from = i % 2 == 0 ? transport::kAnyRank : 1;
        transfers.push_back(t.recv(&values[static_cast<size_t>(i)], sizeof(int), from, 3));
      }
    }
    t.barrier(kTimeout);  // all are started
    if (t.rank() == 1) {
      for (int i = 0; i < kMessages; ++i) {
        values[static_cast<size_t>(i)] = 10 + i;
        transfers.push_back(t.send(&values[static_cast<size_t>(i)], sizeof(int), 0, 3));
      }
    }
    wait_all(transfers);
    for (int i = 0; i < kMessages && t.rank() < 2; ++i) {
      ASSERT_EQ(values[static_cast<size_t>(i)], 10 + i);
    }
    t.barrier(kTimeout);
  });
}

TEST_P(TransportConformance, EmptyAndLargeMessages) {
  run([](Transport& t) {
    if (t.rank() > 1 || t.size() == 1) {
      return;
    }
    const int peer = 1 - t.rank();
    std::vector<char> large(5'000'001, static_cast<char>('a' + t.rank())), got(large.size());
    Transfers transfers;
    transfers.push_back(t.send(nullptr, 0, peer, tag(t, 1)));
    transfers.push_back(t.recv(nullptr, 0, peer, tag(t, 1)));
    transfers.push_back(t.send(large.data(), large.size(), peer, tag(t, 2)));
    transfers.push_back(t.recv(got.data(), got.size(), peer, tag(t, 2)));
    wait_all(transfers);
    ASSERT_EQ(got, std::vector<char>(large.size(), static_cast<char>('a' + peer)));
  });
}

}  // namespace
}  // namespace argosy::conformance
