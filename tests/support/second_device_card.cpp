#include "tests/support/second_device_card.h"

#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>
#include <stdexcept>
#include <string>

namespace argosy::test {
namespace {

/// All blocks by their addresses. They are never given back to the system.
struct Blocks {
  std::mutex mutex;
  std::map<const char*, Block*> by_address;
};
Blocks& blocks() {
  static auto* const all = new Blocks();
  return *all;
}

}  // namespace

Block* Card::block_at(const void* host) {
  const std::lock_guard lock(blocks().mutex);
  const auto* const address = static_cast<const char*>(host);
  const auto& all = blocks().by_address;
  const auto behind = all.upper_bound(address);
  if (behind == all.begin()) {
    return nullptr;
  }
  const auto& [begin, block] = *std::prev(behind);
  return address < begin + block->bytes ? block : nullptr;
}

std::map<int, std::unique_ptr<Card>>& Card::all() {
  // Never destroyed by itself: what runs at exit must find its streams. A child of fork() has none
  // of its parent's threads.
  static std::map<int, std::unique_ptr<Card>>* cards = nullptr;
  static pid_t owner = 0;
  if (owner != getpid()) {
    cards = new std::map<int, std::unique_ptr<Card>>();
    owner = getpid();
    (void)std::atexit([] {
      for (const auto& [index, card] : *cards) {  // streams wait for each other
        for (const auto& [id, queue] : card->streams_) {
          queue->wait(queue->newest());
        }
      }
      for (const auto& [index, card] : *cards) {
        card->ended_ = true;
        card->streams_.clear();  // while libtorch is whole
      }
    });
  }
  return *cards;
}

Card& Card::number(int index) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Card>& card = all()[index];
  if (card == nullptr) {
    card.reset(new Card(index));
  }
  return *card;
}

LateQueue& Card::stream(int64_t id) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<LateQueue>& queue = streams_[id];
  if (queue == nullptr) {
    const char* const given = std::getenv("ARGOSY_TEST_SEED");
    const uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
    queue = std::make_unique<LateQueue>(seed * 1000 + static_cast<uint64_t>(index_ * 100 + id));
    StreamOrder::of_process().add(
        *queue, "stream " + std::to_string(id) + " of card " + std::to_string(index_));
  }
  return *queue;
}

Moment Card::now(int64_t id) {
  return StreamOrder::of_process().now(stream(id));
}

/// Blocks whose last user has ended go back to where they came from.
void Card::reclaim() {
  std::erase_if(waiting_, [&](const Waiting& each) {
    for (const Moment& moment : each.until) {
      if (!StreamOrder::of_process().forget_before(moment, each.block->uses)) {
        return false;
      }
    }
    free_[{each.block->stream, each.block->bytes}].push_back(each.block);
    return true;
  });
}

Block* Card::allocate(size_t bytes, int64_t stream_id) {
  constexpr size_t kLeast = 64;
  const size_t size = std::bit_ceil(std::max(bytes, kLeast));
  Block* block = nullptr;
  {
    const std::lock_guard lock(mutex_);
    reclaim();
    std::vector<Block*>& blocks = free_[{stream_id, size}];
    if (!blocks.empty()) {
      block = blocks.back();
      blocks.pop_back();
    }
  }
  if (block == nullptr) {
    void* const host = std::aligned_alloc(kLeast, size);
    if (host == nullptr) {
      throw std::bad_alloc();
    }
    block = new Block{.host = host, .bytes = size, .card = index_, .stream = stream_id};
    const std::lock_guard lock(blocks().mutex);
    blocks().by_address[static_cast<const char*>(host)] = block;
  }
  StreamOrder::of_process().submit(stream(stream_id),
                                   [host = block->host, bytes] { std::memset(host, 0xff, bytes); },
                                   {{&block->uses, true}});
  return block;
}

void Card::free(Block* block) {
  if (ended_) {
    return;
  }
  std::vector<Moment> until;
  for (const int64_t user : block->used_by) {
    until.push_back(now(user));
  }
  block->used_by.clear();
  const std::lock_guard lock(mutex_);
  waiting_.push_back({block, until});
  reclaim();
}

void Card::use(Block* block, int64_t stream_id) {
  const std::lock_guard lock(mutex_);
  if (stream_id != block->stream) {
    block->used_by.insert(stream_id);
  }
}

void Card::throw_error() {
  std::vector<LateQueue*> queues;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, queue] : streams_) {
      queues.push_back(queue.get());
    }
  }
  for (LateQueue* const queue : queues) {
    if (const std::exception_ptr error = queue->take_error()) {
      std::rethrow_exception(error);
    }
  }
  if (const std::string race = StreamOrder::of_process().take_race(); !race.empty()) {
    throw std::runtime_error(race);
  }
}

}  // namespace argosy::test
