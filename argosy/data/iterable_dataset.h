#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "argosy/data/dataset.h"
#include "argosy/data/random.h"

namespace argosy::data {

/// A share of a stream in an epoch.
struct Pass {
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t shard = 0;   ///< this share, 0 to shards - 1
  int64_t shards = 1;  ///< the number of shares of all ranks; together they have every sample once

  /// The stream for draws that must be equal in all shares, such as the order of files.
  [[nodiscard]] Random common_random() const { return {seed, epoch, -1}; }
  /// The stream for this share alone, such as for a shuffle buffer.
  [[nodiscard]] Random random() const { return {seed, epoch, -2 - shard}; }
  /// Returns the key of sample k (from 0) of this share: its name and its random stream. If sample
  /// i is dealt to share i mod shards, its key is its number in the whole.
  [[nodiscard]] int64_t key(int64_t k) const { return k * shards + shard; }
};

// Data that can only be read in its order (a socket, a pipe, archives, a generator) is any type
// with stream(pass), const and safe to call from several threads at once. It returns what reads
// that share: an object with next(), called by one thread at a time.
//
//     struct Lines {
//       std::string path;
//       struct Reader {
//         std::ifstream file;
//         Pass pass;
//         int64_t line = 0;
//         std::optional<std::string> next();   // nullopt: the end
//       };
//       Reader stream(const Pass& pass) const;   // every pass.shards-th line, from pass.shard on
//       at::Tensor get(std::string line, Random& random) const;   // optional, see below
//     };
//
// What next() returns is the sample, or, with get(item) or get(item, random), what get() makes it
// from. Loader threads take turns at next() and run get() at once, so whatever costs time
// (decoding, augmentation) belongs into get(). Optional too: skip(n), cheaper than n times next();
// returns how many there were. After a DataError next() may be called again, for the sample behind.

/// It has std::optional<T> next().
template <typename S>
concept SampleStream = requires(S& stream) {
  typename std::remove_cvref_t<decltype(stream.next())>::value_type;
  requires std::same_as<
      std::remove_cvref_t<decltype(stream.next())>,
      std::optional<typename std::remove_cvref_t<decltype(stream.next())>::value_type>>;
};

/// It has stream(pass), and no indices.
template <typename D>
concept IterableDataset = !Dataset<D> && requires(const D& dataset, const Pass& pass) {
  { dataset.stream(pass) } -> SampleStream;
};

template <typename D>
using StreamOf =
    std::remove_cvref_t<decltype(std::declval<const D&>().stream(std::declval<const Pass&>()))>;

/// The type that next() returns.
template <typename D>
using ItemOf =
    typename std::remove_cvref_t<decltype(std::declval<StreamOf<D>&>().next())>::value_type;

/// True if there is a get() that takes a random stream, or one that does not.
template <typename D>
concept GetsRandomItem = requires(const D& dataset, ItemOf<D>& item, Random& random) {
  dataset.get(std::move(item), random);
};
template <typename D>
concept GetsItem = requires(const D& dataset, ItemOf<D>& item) {
  dataset.get(std::move(item));
};

/// Returns the sample of an item.
template <typename D>
auto get_sample(const D& dataset, ItemOf<D>& item, Random& random) {
  if constexpr (GetsRandomItem<D>) {
    return dataset.get(std::move(item), random);
  } else if constexpr (GetsItem<D>) {
    return dataset.get(std::move(item));
  } else {
    return std::move(item);
  }
}

/// How a stream is divided, and where an epoch ends.
///
///     data::DataLoader loader(Lines{path}, data::StreamShards{.num_replicas = 4, .rank = 1},
///                             {.batch_size = 32, .num_workers = 2});
///
/// Rank r reads the shares r·per_rank … (r + 1)·per_rank - 1 of num_replicas·per_rank, taking a
/// batch from each in turn. So batches depend on these numbers, and not on the number of threads.
/// With virtual ranks, each of those is such a rank, and the process goes through its own; see
/// BatchTurns and fleet::stream_shards().
struct StreamShards {
  int num_replicas = 1;  ///< ranks that share the data
  int rank = 0;          ///< this one, 0 to num_replicas - 1
  /// Streams that the rank reads side by side. It helps when next() itself is slow, because this
  /// many threads can be inside next() at once. Each stream that ends has a short last batch of its
  /// own.
  int per_rank = 1;
  /// Batches of an epoch on every (virtual) rank, all of batch_size. A rank stops after this
  /// number: the rest of its streams is not used in this epoch, and a stream that ends sooner
  /// begins again. Unset: a rank stops when its own streams have ended; ranks that average
  /// gradients then need DistributedDataParallel::join().
  std::optional<int64_t> batches{};
  /// Virtual ranks that share the data; this process has a contiguous range of them. Another number
  /// than num_replicas needs `batches`. 0: the ranks themselves.
  int64_t virtual_ranks = 0;
  int64_t micro_batches = 1;  ///< batches of each virtual rank in an update
};

}  // namespace argosy::data
