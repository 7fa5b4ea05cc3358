#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/data/random.h"
#include "argosy/data/tensor_pool.h"

namespace argosy::data {

/// What get_batch() needs to make a batch: the samples, their random streams, and memory to write
/// into, in the model's memory format.
struct BatchContext {
  std::span<const int64_t> indices{};  ///< samples of the batch
  uint64_t seed = 0;
  int64_t epoch = 0;
  TensorPool* pool = nullptr;  ///< none: each tensor has memory of its own
  const std::atomic<bool>* stop = nullptr;
  /// The format of batches of images, which are tensors with four dimensions and a floating type.
  at::MemoryFormat memory_format = at::MemoryFormat::Contiguous;
  /// The number that a set of sets adds to the indices of the part that it asks; see key_of().
  int64_t key_offset = 0;
  std::atomic<int64_t>* current = nullptr;  ///< see begin_sample()

  /// Returns the random stream of sample `index` in this epoch.
  [[nodiscard]] Random random(int64_t index) const { return {seed, epoch, index + key_offset}; }
  /// Returns an uninitialised tensor in recycled memory, row-major.
  [[nodiscard]] at::Tensor empty(at::IntArrayRef sizes, at::ScalarType dtype) const {
    return pool == nullptr ? TensorPool().empty(sizes, dtype) : pool->empty(sizes, dtype);
  }
  /// Returns the same in memory_format if that applies. Code that writes through a pointer must use
  /// the strides: a batch of images [n, C, H, W] may lie as [n, H, W, C].
  [[nodiscard]] at::Tensor empty_batch(at::IntArrayRef sizes, at::ScalarType dtype) const {
    const at::MemoryFormat format = format_of(sizes.size(), dtype);
    return pool == nullptr ? TensorPool().empty(sizes, dtype, format)
                           : pool->empty(sizes, dtype, format);
  }
  [[nodiscard]] at::MemoryFormat format_of(size_t dims, at::ScalarType dtype) const {
    return dims == 4 && c10::isFloatingType(dtype) ? memory_format : at::MemoryFormat::Contiguous;
  }
  /// Says that get_batch() works on `index` now, so that a loader whose batch is late can name it.
  /// Call it if samples take long.
  void begin_sample(int64_t index) const {
    if (current != nullptr) {
      current->store(index + key_offset, std::memory_order_relaxed);
    }
  }
  /// True if nobody needs the batch any more. Long work may then return early with anything.
  [[nodiscard]] bool stopped() const { return stop != nullptr && stop->load(); }
};

// A data set is any type with size() and one of the three below, all const and safe to call from
// several threads at once. No base class.
//
//     struct Squares {
//       int64_t size() const { return 100; }
//       std::pair<at::Tensor, int64_t> get(int64_t i) const { return {at::full({}, i * i), i}; }
//     };

template <typename D>
concept Sized = requires(const D& dataset) {
  { dataset.size() } -> std::convertible_to<int64_t>;
};

/// It has get(index), which returns the same sample in every epoch.
template <typename D>
concept GetsSample = requires(const D& dataset, int64_t index) {
  dataset.get(index);
};

/// It has get(index, random), which augments and draws from the stream of (seed, epoch, index).
template <typename D>
concept GetsRandomSample = requires(const D& dataset, int64_t index, Random& random) {
  dataset.get(index, random);
};

/// It has get_batch(indices, context), the fast path, which returns a whole batch at once, best in
/// memory from context.empty(). Data in memory needs one gather instead of a tensor per sample, and
/// a decoder can write each image straight into its row.
template <typename D>
concept GetsBatch = requires(const D& dataset, const BatchContext& context) {
  dataset.get_batch(context.indices, context);
};

/// It has classes(), a range of names for labels 0, 1, …
template <typename D>
concept HasClasses = requires(const D& dataset) {
  std::string(*std::begin(dataset.classes()));
};

/// It has collate(samples) or collate(samples, context), which makes a batch of a std::vector of
/// its samples. A DataLoader uses it unless it gets a collate function of its own.
template <typename D, typename Sample>
concept HasCollate = requires(const D& dataset, const std::vector<Sample>& samples) {
  dataset.collate(samples);
}
|| requires(const D& dataset, const std::vector<Sample>& samples, const BatchContext& context) {
  dataset.collate(samples, context);
};

template <typename D>
concept Dataset = Sized<D> &&(GetsSample<D> || GetsRandomSample<D> || GetsBatch<D>);

/// Returns the key of sample `index`, which decides its random stream and its name in errors. It is
/// `index` itself unless the set is a view of another and has sample_key(index). Then it is the key
/// in the set that holds the data, for get() and get_batch() alike. Several sets count one after
/// another.
template <typename D>
int64_t key_of(const D& dataset, int64_t index) {
  if constexpr (requires { dataset.sample_key(index); }) {
    return dataset.sample_key(index);
  } else {
    return index;
  }
}

/// Returns an upper bound of the keys: size(), or for a view the size of the sets that hold the
/// data.
template <typename D>
int64_t key_space_of(const D& dataset) {
  if constexpr (requires { dataset.key_space(); }) {
    return dataset.key_space();
  } else {
    return dataset.size();
  }
}

/// Calls dataset.get() in either form.
template <typename D>
requires GetsSample<D> || GetsRandomSample<D>
decltype(auto) get_sample(const D& dataset, int64_t index, const BatchContext& context) {
  if constexpr (GetsRandomSample<D>) {
    Random random = context.random(key_of(dataset, index));
    return dataset.get(index, random);
  } else {
    return dataset.get(index);
  }
}

/// The type of a sample that get() returns, as a value.
template <typename D>
requires GetsSample<D> || GetsRandomSample<D>
using SampleOf = std::remove_cvref_t<decltype(get_sample(
    std::declval<const D&>(), int64_t{0}, std::declval<const BatchContext&>()))>;

/// Holds a data set for a loader or a Subset. A temporary is moved in. A named one is referred to
/// and not copied (it may have gigabytes), so it must outlive the holder. A shared_ptr is shared.
template <typename D>
class DatasetRef final {
 public:
  DatasetRef(const D& dataset) : pointer_(std::shared_ptr<void>(), &dataset) {}         // NOLINT
  DatasetRef(D&& dataset) : pointer_(std::make_shared<const D>(std::move(dataset))) {}  // NOLINT
  DatasetRef(std::shared_ptr<const D> dataset) : pointer_(std::move(dataset)) {}        // NOLINT
  DatasetRef(std::shared_ptr<D> dataset) : pointer_(std::move(dataset)) {}              // NOLINT

  const D& operator*() const { return *pointer_; }
  const D* operator->() const { return pointer_.get(); }

 private:
  std::shared_ptr<const D> pointer_;
};

namespace detail {
template <typename T>
struct HeldBy {
  using Type = T;
};
template <typename T>
struct HeldBy<std::shared_ptr<T>> {
  using Type = std::remove_const_t<T>;
};
}  // namespace detail

/// The data set to which a DatasetRef made of a T refers, for deduction guides.
template <typename T>
using DatasetOf = typename detail::HeldBy<std::remove_cvref_t<T>>::Type;

}  // namespace argosy::data
