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

/// What making a batch needs to know: which samples, whose random streams, and memory to write
/// into, in the order that the model wants.
struct BatchContext {
  std::span<const int64_t> indices{};  ///< samples of the batch
  uint64_t seed = 0;
  int64_t epoch = 0;
  TensorPool* pool = nullptr;
  const std::atomic<bool>* stop = nullptr;
  /// Of batches of images: of tensors with four dimensions and a floating type.
  at::MemoryFormat memory_format = at::MemoryFormat::Contiguous;
  /// What a set of sets adds to the indices of the part that is asked; see key_of().
  int64_t key_offset = 0;
  std::atomic<int64_t>* current = nullptr;  ///< see begin_sample()

  /// The random stream of sample `index` in this epoch.
  [[nodiscard]] Random random(int64_t index) const { return {seed, epoch, index + key_offset}; }
  /// An uninitialised tensor in recycled memory, row-major.
  [[nodiscard]] at::Tensor empty(at::IntArrayRef sizes, at::ScalarType dtype) const {
    return pool->empty(sizes, dtype);
  }
  /// The same in memory_format where that applies. Who writes through a pointer minds the strides:
  /// a batch of images [n, C, H, W] may lie as [n, H, W, C].
  [[nodiscard]] at::Tensor empty_batch(at::IntArrayRef sizes, at::ScalarType dtype) const {
    return pool->empty(sizes, dtype, format_of(sizes.size(), dtype));
  }
  [[nodiscard]] at::MemoryFormat format_of(size_t dims, at::ScalarType dtype) const {
    return dims == 4 && c10::isFloatingType(dtype) ? memory_format : at::MemoryFormat::Contiguous;
  }
  /// For a get_batch() whose samples take long: says that `index` is worked on now, so that a
  /// loader whose batch is late can name it.
  void begin_sample(int64_t index) const {
    if (current != nullptr) {
      current->store(index + key_offset, std::memory_order_relaxed);
    }
  }
  /// Nobody wants the batch any more; long work may return early with anything.
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

/// get(index): the same sample in every epoch.
template <typename D>
concept GetsSample = requires(const D& dataset, int64_t index) {
  dataset.get(index);
};

/// get(index, random): augmented; draws from the stream of (seed, epoch, index).
template <typename D>
concept GetsRandomSample = requires(const D& dataset, int64_t index, Random& random) {
  dataset.get(index, random);
};

/// get_batch(indices, context): the fast path. Returns a whole batch at once, best in memory from
/// context.empty(): data in memory needs one gather instead of a tensor per sample, and a decoder
/// can write each image straight into its row.
template <typename D>
concept GetsBatch = requires(const D& dataset, const BatchContext& context) {
  dataset.get_batch(context.indices, context);
};

/// Knows what its classes are called: a range of names for labels 0, 1, …
template <typename D>
concept HasClasses = requires(const D& dataset) {
  std::string(*std::begin(dataset.classes()));
};

/// collate(samples) or collate(samples, context): makes a batch of a std::vector of this data set's
/// samples. A DataLoader uses it unless it is given a collate function of its own.
template <typename D, typename Sample>
concept HasCollate = requires(const D& dataset, const std::vector<Sample>& samples) {
  dataset.collate(samples);
}
|| requires(const D& dataset, const std::vector<Sample>& samples, const BatchContext& context) {
  dataset.collate(samples, context);
};

template <typename D>
concept Dataset = Sized<D> &&(GetsSample<D> || GetsRandomSample<D> || GetsBatch<D>);

/// Which sample `index` is: whose random stream it draws from, and what errors call it. Itself,
/// unless the set is a view of another and says so by sample_key(index): then that of the set which
/// holds the data, by get() and by get_batch() alike. Several sets count one after another.
template <typename D>
int64_t key_of(const D& dataset, int64_t index) {
  if constexpr (requires { dataset.sample_key(index); }) {
    return dataset.sample_key(index);
  } else {
    return index;
  }
}

/// Keys are below this number: size(), or that of the sets which hold the data.
template <typename D>
int64_t key_space_of(const D& dataset) {
  if constexpr (requires { dataset.key_space(); }) {
    return dataset.key_space();
  } else {
    return dataset.size();
  }
}

/// dataset.get() of either form.
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

/// What get() of a data set gives, as a value.
template <typename D>
requires GetsSample<D> || GetsRandomSample<D>
using SampleOf = std::remove_cvref_t<decltype(get_sample(
    std::declval<const D&>(), int64_t{0}, std::declval<const BatchContext&>()))>;

/// Holds a data set for a loader or a Subset: a temporary is moved in; a named one is referred to,
/// not copied (it may be gigabytes), and must outlive the holder. A shared_ptr is shared.
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

/// The data set that a DatasetRef made of a T refers to: for deduction guides.
template <typename T>
using DatasetOf = typename detail::HeldBy<std::remove_cvref_t<T>>::Type;

}  // namespace argosy::data
