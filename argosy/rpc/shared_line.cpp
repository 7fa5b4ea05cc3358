#include "argosy/rpc/shared_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <string_view>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/os/unix_socket.h"

namespace argosy::rpc {
namespace {

using namespace std::chrono_literals;

constexpr size_t kLine = 64;  ///< blocks begin and end with cache lines
constexpr size_t kSmallestSegment = size_t{64} << 20;
/// What was said to come has been sent already.
constexpr auto kPromptly = 2s;

/// The reader claims what is offered, and frees it.
enum class State : uint64_t { kFree, kOffered, kClaimed };

/// As it stands in shared memory. With the number of its block, so that nobody who comes late
/// changes the state of the next block at that place.
constexpr uint64_t word(State state, uint64_t number) {
  return number << 2U | static_cast<uint64_t>(state);
}

/// True if the state was `from`, and is `to` now.
bool change(std::atomic<uint64_t>& state, uint64_t number, State from, State to) {
  uint64_t expected = word(from, number);
  return state.compare_exchange_strong(expected, word(to, number), std::memory_order_acq_rel);
}

size_t rounded(size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

[[noreturn]] void not_there(const std::string& what) {
  throw RendezvousError("rpc.shared_memory", what);
}

}  // namespace

/// Stands before the bytes of a block.
struct alignas(kLine) SharedLine::Header {
  std::atomic<uint64_t> state;
};

SharedLine::Block::Block(std::span<std::byte> whole,
                         size_t bytes,
                         const Place& place,
                         const Deadline& expires)
    : whole_(whole),
      bytes_(whole.subspan(sizeof(Header), bytes)),
      place_(place),
      expires_(expires) {
  state().store(word(State::kFree, place.number), std::memory_order_relaxed);
}

std::atomic<uint64_t>& SharedLine::Block::state() const {
  return reinterpret_cast<Header*>(whole_.data())->state;
}

bool SharedLine::Block::offer() {
  return change(state(), place_.number, State::kFree, State::kOffered);
}

void SharedLine::Block::withdraw() {
  (void)change(state(), place_.number, State::kOffered, State::kFree);
}

bool SharedLine::Block::is_free() {
  if (drafted.load(std::memory_order_acquire)) {
    return false;
  }
  if (expires_.expired()) {
    withdraw();
  }
  return state().load(std::memory_order_acquire) == word(State::kFree, place_.number);
}

SharedLine::SharedLine(os::UniqueFd socket, size_t most_bytes)
    : socket_(std::move(socket)), most_bytes_(most_bytes) {}

SharedLine::~SharedLine() = default;

/// A block that the other side had claimed when it died is never freed; it goes with the line.
void SharedLine::sweep(Segment& segment) {
  std::erase_if(segment.blocks, [](const auto& block) { return block.second->is_free(); });
}

std::optional<size_t> SharedLine::find_gap(const Segment& segment, size_t bytes) {
  size_t begin = 0;
  for (const auto& [offset, block] : segment.blocks) {
    if (offset - begin >= bytes) {
      return begin;
    }
    begin = offset + block->whole_bytes();
  }
  return segment.memory.bytes().size() - begin >= bytes ? std::optional(begin) : std::nullopt;
}

bool SharedLine::add_segment(size_t bytes) {
  const size_t size = std::max(kSmallestSegment, bytes);
  if (size > most_bytes_ - std::min(bytes_, most_bytes_)) {
    return false;
  }
  Result<os::SharedMemory> memory = os::SharedMemory::create("argosy-rpc", size);
  if (!memory.ok()) {
    return false;
  }
  const std::array<int, 1> fds{memory->fd()};
  if (!os::send_message(socket_.get(), std::to_string(ours_.size()), fds).ok()) {
    return false;
  }
  bytes_ += size;
  ours_.push_back({.memory = *std::move(memory)});
  return true;
}

std::shared_ptr<SharedLine::Block> SharedLine::make_block(size_t bytes, const Deadline& expires) {
  if (bytes > most_bytes_) {  // before it is rounded
    return nullptr;
  }
  const size_t whole = rounded(bytes) + sizeof(Header);
  const std::lock_guard lock(mutex_);
  for (size_t number = 0;; ++number) {
    if (number == ours_.size() && !add_segment(whole)) {
      return nullptr;
    }
    Segment& segment = ours_[number];
    sweep(segment);
    if (const std::optional<size_t> gap = find_gap(segment, whole)) {
      auto block = std::make_shared<Block>(
          segment.memory.bytes().subspan(*gap, whole),
          bytes,
          Place{static_cast<uint32_t>(number), *gap + sizeof(Header), ++blocks_},
          expires);
      segment.blocks[*gap] = block;
      return block;
    }
  }
}

std::optional<Draft> SharedLine::allocate(size_t bytes, const Deadline& expires) {
  std::shared_ptr<Block> block = make_block(bytes, expires);
  if (block == nullptr) {
    return std::nullopt;
  }
  // The line keeps the memory mapped, and the block knows when its last handle of this side goes.
  std::shared_ptr<const void> owner(block.get(), [line = shared_from_this(), block](const void*) {
    block->drafted.store(false, std::memory_order_release);
  });
  return Draft(block->bytes(), std::move(owner));
}

std::shared_ptr<SharedLine::Block> SharedLine::offer(const Memory& memory) {
  const std::lock_guard lock(mutex_);
  for (Segment& segment : ours_) {
    const std::span<std::byte> all = segment.memory.bytes();
    if (memory.bytes().data() < all.data() || memory.bytes().data() >= all.data() + all.size()) {
      continue;
    }
    const auto offset = static_cast<size_t>(memory.bytes().data() - all.data()) - sizeof(Header);
    const auto found = segment.blocks.find(offset);
    const bool whole =
        found != segment.blocks.end() && found->second->bytes().size() == memory.size();
    return whole && found->second->offer() ? found->second : nullptr;
  }
  return nullptr;
}

std::shared_ptr<const os::SharedMemory> SharedLine::their_segment(uint32_t number) {
  const std::lock_guard lock(their_mutex_);
  while (theirs_.size() <= number) {
    Result<os::Message> message = os::receive_message(socket_.get(), Deadline::after(kPromptly));
    if (!message.ok() || message->fds.size() != 1 ||
        message->text != std::to_string(theirs_.size())) {
      not_there(fmt::format("segment {} does not come: {}",
                            theirs_.size(),
                            message.ok() ? "another message did" : message.failure().what));
    }
    theirs_.push_back(std::make_shared<const os::SharedMemory>(
        os::SharedMemory::open(std::move(message->fds[0]))
            .or_throw<RendezvousError>("rpc.shared_memory")));
  }
  return theirs_[number];
}

Memory SharedLine::claim(const Place& place, size_t bytes) {
  constexpr uint32_t kMostSegments = 4096;
  if (place.segment >= kMostSegments) {
    not_there(fmt::format("there is no segment {}", place.segment));
  }
  std::shared_ptr<const os::SharedMemory> segment = their_segment(place.segment);
  const std::span<std::byte> all = segment->bytes();
  if (place.offset < sizeof(Header) || place.offset % kLine != 0 || place.offset > all.size() ||
      bytes > all.size() - place.offset) {
    not_there(fmt::format(
        "{} bytes at {} do not lie in a segment of {}", bytes, place.offset, all.size()));
  }
  std::byte* const data = all.data() + place.offset;
  std::atomic<uint64_t>& state = reinterpret_cast<Header*>(data - sizeof(Header))->state;
  const uint64_t number = place.number;
  if (!change(state, number, State::kOffered, State::kClaimed)) {
    not_there("the other side has taken a block back");
  }
  std::shared_ptr<const void> owner(
      data, [segment = std::move(segment), &state, number](const void*) {
        state.store(word(State::kFree, number), std::memory_order_release);
      });
  return Memory::of({data, bytes}, std::move(owner));
}

bool SharedLine::is_abandoned() const {
  return os::is_hung_up(socket_.get());
}

}  // namespace argosy::rpc
