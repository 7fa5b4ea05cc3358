#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/data/bad_samples.h"

namespace argosy::data::detail {

struct StreamReaderOptions {
  int64_t batch_size = 1;
  bool drop_last = false;  ///< leaves out a short last portion
  bool repeat = false;     ///< begins a stream again when it ends
  bool skip_bad = false;   ///< drops only the sample for which next() throws a DataError
};

/// Reads one share of a stream in portions of batch_size, by several threads in turns.
///
/// `Source`: { Stream open(); int64_t key(int64_t k) } with Stream's next() and maybe skip(n).
/// Portion p has the samples from p·batch_size, whoever reads it, so a reader that begins with
/// portion p skips those before it.
/// Thread-safety: several threads may call read() at once, each with its own portion. Portions must
/// be begun in their order, because the reader of portion p waits for those below.
template <typename Source>
class StreamReader final {
 public:
  using Stream = decltype(std::declval<Source&>().open());
  using Item = typename decltype(std::declval<Stream&>().next())::value_type;

  struct Portion {
    std::vector<Item> items;
    std::vector<int64_t> keys;  ///< keys of the items
    BadSamples bad;
    bool ended = false;  ///< the stream had ended
  };

  StreamReader(Source source, int64_t first_portion, const StreamReaderOptions& options)
      : source_(std::move(source)), options_(options), turn_(first_portion) {}

  /// `current` receives the key of the sample that is being read.
  /// Errors: those of the stream; later portions are then empty.
  Portion read(int64_t portion, const std::atomic<bool>& stop, std::atomic<int64_t>& current) {
    const Turn turn(*this, portion);
    Portion result;
    if (stop || failed_) {
      result.ended = true;
      return result;
    }
    failed_ = true;  // unless all goes well
    fill(result, current);
    failed_ = false;
    return result;
  }

 private:
  /// The turn of one portion: from the end of the portion before to its own end, however it ends.
  class Turn final {
   public:
    Turn(StreamReader& reader, int64_t portion) : reader_(reader) {
      std::unique_lock lock(reader_.mutex_);
      reader_.next_turn_.wait(lock, [&] { return reader_.turn_ == portion; });
    }
    ~Turn() {
      const std::lock_guard lock(reader_.mutex_);
      ++reader_.turn_;
      reader_.next_turn_.notify_all();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    StreamReader& reader_;
  };

  void fill(Portion& portion, std::atomic<int64_t>& current) {
    if (!stream_.has_value()) {
      stream_.emplace(source_.open());
      skip(turn_ * options_.batch_size, current);  // turn_ is ours now: nobody writes it
    }
    int64_t taken = 0;
    for (; taken < options_.batch_size && !ended_; ++taken) {
      std::optional<Item> item = next(portion.bad, current);
      if (ended_) {
        break;
      }
      if (item.has_value()) {
        portion.items.push_back(std::move(*item));
        portion.keys.push_back(current);
      }
    }
    portion.ended = taken == 0;
    if (options_.drop_last && taken < options_.batch_size) {
      portion.items.clear();
      portion.keys.clear();
    }
  }

  /// Returns the next item. nullopt for a bad one, and at the end (ended_).
  std::optional<Item> next(BadSamples& bad, std::atomic<int64_t>& current) {
    while (true) {
      current = source_.key(place_);
      std::optional<Item> item;
      try {
        item = stream_->next();
      } catch (const DataError& error) {
        if (!options_.skip_bad || ++bad_in_a_row_ >= BadSamples::kMostInARow) {
          throw;
        }
        bad.skip(error.place().index < 0 ? error.with_index(current) : error);
        ++place_;
        return std::nullopt;
      }
      if (item.has_value()) {
        ++place_;
        bad_in_a_row_ = 0;
        return item;
      }
      if (!begin_again()) {
        return std::nullopt;
      }
    }
  }

  /// Called at the end of the stream. False: there is nothing more.
  bool begin_again() {
    if (!options_.repeat) {
      ended_ = true;
      return false;
    }
    if (place_ == 0) {
      throw DataError("data.DataLoader",
                      "this share of the stream has no sample, and StreamShards::batches asks for "
                      "some on every rank. Fewer ranks, or more data");
    }
    stream_.emplace(source_.open());
    place_ = 0;
    return true;
  }

  void skip(int64_t n, std::atomic<int64_t>& current) {
    if constexpr (requires(Stream & stream) { stream.skip(n) + int64_t{0}; }) {
      while (n > 0) {
        const int64_t skipped = stream_->skip(n);
        place_ += skipped;
        n -= skipped;
        if (n > 0 && !begin_again()) {
          return;
        }
      }
    } else {
      BadSamples counted_before;
      for (; n > 0 && !ended_; --n) {
        (void)next(counted_before, current);
      }
    }
  }

  Source source_;
  const StreamReaderOptions options_;
  std::mutex mutex_;
  std::condition_variable next_turn_;
  int64_t turn_;  // the portion that may be read; by mutex_
  // The rest belongs to whose turn it is.
  std::optional<Stream> stream_;
  int64_t place_ = 0;         // samples read since the stream began
  int64_t bad_in_a_row_ = 0;  // the last ones
  bool ended_ = false;
  bool failed_ = false;
};

}  // namespace argosy::data::detail
