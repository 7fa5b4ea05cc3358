#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "argosy/base/check.h"

namespace argosy::data {

struct CacheStats {
  int64_t hits = 0;    ///< get() that found its value
  int64_t misses = 0;  ///< get() that made it
  int64_t kept = 0;    ///< values that are kept
  int64_t bytes = 0;   ///< bytes of those values
  bool full = false;   ///< a value found no room
};

/// Values by index. They are made when they are first asked for, and kept up to a number of bytes.
///
///     SampleCache<std::vector<uint8_t>> files(paths.size(), {.max_bytes = 4LL << 30});
///     auto bytes = files.get(i, [&] { return read_file(paths[i]); },
///                            [](const auto& b) { return b.size(); });
///
/// It is for data sets that decode or augment at random: they keep their encoded bytes here, before
/// anything is drawn. A kept value is never replaced: an epoch reads each sample once, so the value
/// that was used longest ago is the next to be used. Half the bytes give half the hits.
/// Thread-safe: one thread at a time makes a value, and the others wait for it; a kept value is
/// made once. Nothing is locked meanwhile. If make() throws, its caller gets the exception, nothing
/// is kept, and the next caller tries again.
template <typename T>
class SampleCache final {
 public:
  struct Options {
    int64_t max_bytes = 0;
  };

  SampleCache(int64_t size, const Options& options)
      : max_bytes_(options.max_bytes), entries_(checked(size, options)) {}
  ~SampleCache() = default;
  SampleCache(const SampleCache&) = delete;
  SampleCache& operator=(const SampleCache&) = delete;

  /// Returns the value of `index`, which is shared and never changes. bytes(value) returns its
  /// size.
  template <typename Make, typename Bytes>
  [[nodiscard]] std::shared_ptr<const T> get(int64_t index, Make make, Bytes bytes) const {
    ARGOSY_CHECK(index >= 0 && index < static_cast<int64_t>(entries_.size()),
                 "data.Cache",
                 "index {} is outside the data set of {} samples",
                 index,
                 entries_.size());
    Claim claim(*this, index);
    if (claim.found() != nullptr) {
      ++hits_;
      return claim.found();
    }
    ++misses_;
    auto value = std::make_shared<const T>(make());
    if (reserve(static_cast<int64_t>(bytes(*value)))) {
      claim.keep(value);
    }
    return value;
  }

  [[nodiscard]] CacheStats stats() const {
    return {.hits = hits_, .misses = misses_, .kept = kept_, .bytes = bytes_, .full = full_};
  }

 private:
  struct Entry {
    std::shared_ptr<const T> value;
    bool in_the_making = false;
  };
  /// Guards the entries whose index has the same remainder.
  struct Stripe {
    std::mutex mutex;
    std::condition_variable made;
  };

  /// The right to make a value, unless it is there.
  class Claim final {
   public:
    Claim(const SampleCache& cache, int64_t index)
        : stripe_(cache.stripes_[index % kStripes]), entry_(cache.entries_[index]) {
      std::unique_lock lock(stripe_.mutex);
      stripe_.made.wait(lock, [&] { return !entry_.in_the_making; });
      found_ = entry_.value;
      entry_.in_the_making = found_ == nullptr;
    }
    ~Claim() {
      if (found_ != nullptr) {
        return;
      }
      {
        const std::lock_guard lock(stripe_.mutex);
        entry_.value = std::move(kept_);
        entry_.in_the_making = false;
      }
      stripe_.made.notify_all();
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

    [[nodiscard]] const std::shared_ptr<const T>& found() const { return found_; }
    void keep(std::shared_ptr<const T> value) { kept_ = std::move(value); }

   private:
    Stripe& stripe_;
    Entry& entry_;
    std::shared_ptr<const T> found_;
    std::shared_ptr<const T> kept_;
  };

  static size_t checked(int64_t size, const Options& options) {
    ARGOSY_CHECK(size >= 0, "data.Cache", "size must not be negative, got {}", size);
    ARGOSY_CHECK(options.max_bytes > 0,
                 "data.Cache",
                 "max_bytes must be positive, got {}",
                 options.max_bytes);
    return static_cast<size_t>(size);
  }

  bool reserve(int64_t bytes) const {
    if (bytes_.fetch_add(bytes) + bytes > max_bytes_) {
      bytes_ -= bytes;
      full_ = true;
      return false;
    }
    ++kept_;
    return true;
  }

  static constexpr int64_t kStripes = 64;
  const int64_t max_bytes_;
  mutable std::array<Stripe, kStripes> stripes_;
  mutable std::vector<Entry> entries_;
  mutable std::atomic<int64_t> hits_{0};
  mutable std::atomic<int64_t> misses_{0};
  mutable std::atomic<int64_t> kept_{0};
  mutable std::atomic<int64_t> bytes_{0};
  mutable std::atomic<bool> full_{false};
};

}  // namespace argosy::data
