#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace argosy::os {

/// Sleeps while `word` holds `expected`, but not longer than `at_most`. Returns at once when it
/// holds another value. It may also return for no reason, so check the word again in a loop. `word`
/// may lie in memory that processes share.
void futex_wait(const std::atomic<uint32_t>& word,
                uint32_t expected,
                std::chrono::milliseconds at_most);

/// Wakes all that sleep on `word`, in every process.
void futex_wake_all(const std::atomic<uint32_t>& word);

}  // namespace argosy::os
