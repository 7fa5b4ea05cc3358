#include "argosy/transport/in_process_hub.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "argosy/transport/watched_transport.h"

namespace argosy::transport {
namespace {

std::mutex registry_mutex;

std::map<uint64_t, std::weak_ptr<Hub>>& registry() {
  static std::map<uint64_t, std::weak_ptr<Hub>> hubs;
  return hubs;
}

uint64_t next_id() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

Hub::Hub(int size, RankNames names)
    : id_(next_id()),
      size_(size),
      names_(std::move(names)),
      contributions_(static_cast<size_t>(size)),
      here_(static_cast<size_t>(size)),
      gone_(static_cast<size_t>(size)) {}

std::shared_ptr<Hub> Hub::make(int size, const RankNames& names) {
  auto hub = std::make_shared<Hub>(size, names);
  const std::lock_guard lock(registry_mutex);
  std::erase_if(registry(), [](const auto& entry) { return entry.second.expired(); });
  registry()[hub->id()] = hub;
  return hub;
}

std::shared_ptr<Hub> Hub::find(uint64_t id) {
  const std::lock_guard lock(registry_mutex);
  const auto found = registry().find(id);
  return found == registry().end() ? nullptr : found->second.lock();
}

void Hub::collective(int rank,
                     const Contribution& mine,
                     const Deadline& deadline,
                     const Work& work) {
  arrive(rank, mine, deadline);
  work(contributions_);
  finish();
}

void Hub::arrive(int rank, const Contribution& mine, const Deadline& deadline) {
  const auto me = static_cast<size_t>(rank);
  std::unique_lock lock(mutex_);
  check_present(lock);
  contributions_[me] = mine;
  here_[me] = true;
  const uint64_t before = started_;
  if (++arrived_ == size_) {
    refused_ = disagreement();
    arrived_ = 0;
    std::fill(here_.begin(), here_.end(), false);
    ++started_;
    changed_.notify_all();
  } else {
    wait_until(changed_, lock, deadline, [&] {
      return started_ != before || std::find(gone_.begin(), gone_.end(), true) != gone_.end();
    });
    if (started_ == before) {
      --arrived_;
      here_[me] = false;
      check_present(lock);
      LinkTimeout late;
      for (int other = 0; other < size_; ++other) {
        if (other != rank && !here_[static_cast<size_t>(other)]) {
          late.awaited.push_back(other);
        }
      }
      throw LinkTimeout(std::move(late));
    }
  }
  if (!refused_.empty()) {
    throw Mismatch{refused_};
  }
}

/// No deadline: whoever arrived only copies memory, and must be out before its owner may free it.
void Hub::finish() {
  std::unique_lock lock(mutex_);
  const uint64_t before = ended_;
  if (++finished_ == size_) {
    finished_ = 0;
    ++ended_;
    changed_.notify_all();
  } else {
    changed_.wait(lock, [&] { return ended_ != before; });
  }
}

void Hub::check_present(std::unique_lock<std::mutex>& lock) const {
  (void)lock;
  const auto gone = std::find(gone_.begin(), gone_.end(), true);
  if (gone != gone_.end()) {
    throw LinkBroken{static_cast<int>(gone - gone_.begin()), "it takes no part any more"};
  }
}

std::string Hub::disagreement() const {
  const Contribution& first = contributions_.front();
  for (int rank = 1; rank < size_; ++rank) {
    const Contribution& other = contributions_[static_cast<size_t>(rank)];
    if (first.call != other.call) {
      std::string text =
          transport::disagreement(names_.one(0), first.call, names_.one(rank), other.call);
      for (const Contribution* one : {&first, &other}) {
        text += one->agreed == nullptr ? ""
                                       : fmt::format("{}{} B",
                                                     one == &first ? ": " : " and ",
                                                     fmt::join(one->agreed->bytes, " + "));
      }
      return text;
    }
  }
  return {};
}

void Hub::post(std::map<Key, Queue>& others,
               std::map<Key, Queue>& own,
               const Key& key,
               const std::shared_ptr<Message>& message) {
  const std::lock_guard lock(mutex_);
  // Who is gone may have given its memory back, though its side still waits in the queue.
  for (const int end : {std::get<0>(key), std::get<1>(key)}) {
    if (gone_[static_cast<size_t>(end)]) {
      throw LinkBroken{end, "it takes no part any more"};
    }
  }
  Queue& waiting = others[key];
  if (waiting.empty()) {
    own[key].push_back(message);
    return;
  }
  const auto other = waiting.front();
  waiting.pop_front();
  Message& sent = message->from != nullptr ? *message : *other;
  Message& received = message->from != nullptr ? *other : *message;
  if (sent.bytes != received.bytes) {
    sent.refused = received.refused = true;
  } else if (sent.bytes > 0) {  // an empty message may have a null address
    std::memcpy(received.to, sent.from, sent.bytes);
  }
  sent.done = received.done = true;
  changed_.notify_all();
}

void Hub::post_send(const Key& key, const std::shared_ptr<Message>& message) {
  post(recvs_, sends_, key, message);
}

void Hub::post_recv(const Key& key, const std::shared_ptr<Message>& message) {
  post(sends_, recvs_, key, message);
}

void Hub::await(const Key& key,
                int self,
                const std::shared_ptr<Message>& message,
                const Deadline& deadline) {
  const int peer = std::get<0>(key) == self ? std::get<1>(key) : std::get<0>(key);
  std::unique_lock lock(mutex_);
  const auto is_gone = [&] {
    return gone_[static_cast<size_t>(peer)] || gone_[static_cast<size_t>(self)];
  };
  wait_until(changed_, lock, deadline, [&] { return message->done || is_gone(); });
  if (message->refused) {
    throw Mismatch{
        fmt::format("the sender's and the receiver's size differ (here {} B)", message->bytes)};
  }
  if (!message->done) {
    if (is_gone()) {
      throw LinkBroken{peer, "it takes no part any more"};
    }
    throw LinkTimeout{{peer}};
  }
}

void Hub::withdraw(const Key& key, const std::shared_ptr<Message>& message) {
  const std::lock_guard lock(mutex_);
  for (auto* queues : {&sends_, &recvs_}) {
    const auto found = queues->find(key);
    if (found != queues->end()) {
      std::erase(found->second, message);
      if (found->second.empty()) {
        queues->erase(found);
      }
    }
  }
}

void Hub::leave(int rank) {
  {
    const std::lock_guard lock(mutex_);
    gone_[static_cast<size_t>(rank)] = true;
  }
  changed_.notify_all();
}

}  // namespace argosy::transport
