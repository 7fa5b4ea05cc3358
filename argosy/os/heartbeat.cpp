#include "argosy/os/heartbeat.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include "argosy/base/env.h"
#include "argosy/base/strings.h"

namespace argosy::os {
namespace {

constexpr size_t kWords = 13;

/// The text is written word by word, with an odd version meanwhile: a reader that finds the same
/// even version before and after has read what belongs together.
struct Page {
  std::atomic<uint32_t> beating;
  std::atomic<uint32_t> version;
  std::atomic<int32_t> waiting;
  std::atomic<int64_t> at_ns;  ///< of CLOCK_MONOTONIC, which all processes share
  std::array<std::atomic<uint64_t>, kWords> text;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

Page& page_of(const SharedMemory& memory) {
  return *reinterpret_cast<Page*>(memory.bytes().data());  // zeros are a page at rest
}

int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// "": it was being written all the while.
std::string read_text(const Page& page) {
  std::array<uint64_t, kWords> words{};
  constexpr int kTries = 100;  // a process that is stopped while it writes leaves an odd version
  bool whole = false;
  for (int i = 0; i < kTries; ++i) {
    const uint32_t before = page.version.load(std::memory_order_acquire);
    std::ranges::transform(page.text, words.begin(), [](const std::atomic<uint64_t>& word) {
      return word.load(std::memory_order_relaxed);
    });
    std::atomic_thread_fence(std::memory_order_acquire);
    whole = before % 2 == 0 && page.version.load(std::memory_order_relaxed) == before;
    if (whole) {
      break;
    }
  }
  if (!whole) {
    return "";
  }
  const auto* const begin = reinterpret_cast<const char*>(words.data());
  return {begin, std::find(begin, begin + sizeof words, '\0')};
}

void write_text(Page& page, std::string_view text) {
  std::array<uint64_t, kWords> words{};
  std::copy_n(
      text.data(), std::min(text.size(), sizeof words - 1), reinterpret_cast<char*>(words.data()));
  const uint32_t version = page.version.load(std::memory_order_relaxed);
  page.version.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  for (size_t i = 0; i < kWords; ++i) {
    page.text[i].store(words[i], std::memory_order_relaxed);
  }
  page.version.store(version + 2, std::memory_order_release);
}

}  // namespace

Result<HeartbeatMonitor> HeartbeatMonitor::create() {
  Result<SharedMemory> memory = SharedMemory::create("heartbeat", sizeof(Page));
  if (!memory.ok()) {
    return std::move(memory).failure();
  }
  return HeartbeatMonitor(*std::move(memory));
}

std::optional<Pulse> HeartbeatMonitor::read() const {
  const Page& page = page_of(memory_);
  if (page.beating.load(std::memory_order_acquire) == 0) {
    return std::nullopt;
  }
  // In this order, for beat() has the other: nobody is seen to wait no more since long ago.
  const int waiting = page.waiting.load(std::memory_order_acquire);
  const int64_t silent = now_ns() - page.at_ns.load(std::memory_order_acquire);
  return Pulse{.silent = std::chrono::nanoseconds(std::max<int64_t>(0, silent)),
               .waiting = waiting,
               .last = read_text(page)};
}

std::unique_ptr<Heartbeat> Heartbeat::begin() {
  const std::optional<std::string> number = env::get("ARGOSY_HEARTBEAT_FD");
  const std::optional<int64_t> fd = number ? strings::parse_int(*number) : std::nullopt;
  if (!fd || *fd < 3) {
    return nullptr;
  }
  // Stays open under its number: the program may join its job again later.
  Result<UniqueFd> copy = duplicate(static_cast<int>(*fd));
  if (!copy.ok()) {
    return nullptr;
  }
  Result<SharedMemory> memory = SharedMemory::open(*std::move(copy));
  if (!memory.ok() || memory->bytes().size() != sizeof(Page)) {
    return nullptr;
  }
  std::unique_ptr<Heartbeat> heartbeat(new Heartbeat(*std::move(memory)));
  page_of(heartbeat->memory_).waiting.store(0, std::memory_order_release);
  heartbeat->beat("joined the job");
  page_of(heartbeat->memory_).beating.store(1, std::memory_order_release);
  return heartbeat;
}

Heartbeat::~Heartbeat() {
  page_of(memory_).beating.store(0, std::memory_order_release);
}

void Heartbeat::beat(std::string_view what, int waiting) {
  static std::mutex mutex;  // threads of this process; the reader never waits
  Page& page = page_of(memory_);
  const std::lock_guard lock(mutex);
  write_text(page, what);
  page.at_ns.store(now_ns(), std::memory_order_release);
  page.waiting.fetch_add(waiting, std::memory_order_acq_rel);
}

}  // namespace argosy::os
