#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace argosy::os {

/// Sleeps while `word` holds `expected`, `at_most` so long; returns at once when it holds another
/// value. It may also return for no reason: look again, in a loop. `word` may lie in memory that
/// processes share.
void futex_wait(const std::atomic<uint32_t>& word,
                uint32_t expected,
                std::chrono::milliseconds at_most);

/// Wakes all that sleep on `word`, in every process.
void futex_wake_all(const std::atomic<uint32_t>& word);

}  // namespace argosy::os
