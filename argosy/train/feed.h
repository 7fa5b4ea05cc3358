#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "argosy/data/data_loader.h"
#include "argosy/data/dataset.h"
#include "argosy/data/fields.h"
#include "argosy/train/dealing.h"

namespace argosy::train {

using Tensors = std::vector<at::Tensor>;

/// A data loader as the training loop sees it, for any type of batch. Like a loader, it belongs to
/// one thread.
class Feed {
 public:
  Feed() = default;
  virtual ~Feed() = default;
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;
  Feed(Feed&&) = delete;
  Feed& operator=(Feed&&) = delete;

  /// Gets the next batch, and begins an epoch if none is running. Returns false at the epoch's end.
  virtual bool next(Tensors& batch) = 0;
  /// Leaves the epoch at this place, which state() then returns.
  virtual void leave() = 0;
  /// Chooses where the batches of the next epoch are. Those of a type whose tensors a loader cannot
  /// find stay on the CPU.
  virtual void set_device(at::Device device) = 0;

  /// Returns the batches per epoch, or nullopt for a stream of unknown length.
  [[nodiscard]] virtual std::optional<int64_t> batches() const = 0;
  /// Returns the number of samples that all ranks share, or -1 for a stream.
  [[nodiscard]] virtual int64_t samples() const = 0;
  /// Returns whose turn the batches are, and which of this process's batches next() gave last.
  [[nodiscard]] virtual data::BatchTurns turns() const = 0;
  [[nodiscard]] virtual int64_t current() const = 0;
  virtual void set_epoch(int64_t epoch) = 0;
  [[nodiscard]] virtual data::LoaderState state() const = 0;
  virtual void load_state(const data::LoaderState& state) = 0;
  [[nodiscard]] virtual data::LoaderStats stats() const = 0;
  /// Returns the data set's names of classes, or nothing if it has none.
  [[nodiscard]] virtual std::vector<std::string> class_names() const { return {}; }

  /// Returns how fit() divides the samples among the ranks, or nullopt with a sampler of your own.
  [[nodiscard]] virtual std::optional<Dealing> dealing() const { return std::nullopt; }
  /// Returns the same data in other batches, or nullptr unless fit() divides the samples.
  [[nodiscard]] virtual std::unique_ptr<Feed> with_batches(
      const data::BatchSampler& /*batches*/) const {
    return nullptr;
  }
};

namespace detail {

/// Returns the tensors of a batch: a tensor, or a vector, tuple, pair or struct of tensors.
template <typename Batch>
Tensors tensors_of(const Batch& batch) {
  if constexpr (data::detail::Tensor<Batch>) {
    return {batch};
  } else if constexpr (std::is_convertible_v<const Batch&, Tensors>) {
    return batch;
  } else if constexpr (data::detail::TupleLike<Batch>) {
    return std::apply(
        [](const auto&... fields) {
          static_assert((data::detail::Tensor<decltype(fields)> && ...),
                        "the trainer's batches are made of tensors: leave the other fields of a "
                        "sample out, or make tensors of them");
          return Tensors{fields...};
        },
        batch);
  } else {
    return tensors_of(data::detail::fields_of(batch));
  }
}

/// Returns the names of a data set with a classes() that returns a range of names, as in vision.
template <typename D>
std::vector<std::string> class_names_of(const D& dataset) {
  std::vector<std::string> names;
  if constexpr (data::HasClasses<D>) {
    for (const auto& name : dataset.classes()) {
      names.emplace_back(name);
    }
  }
  return names;
}

template <typename Loader>
class LoaderFeed : public Feed {
 public:
  /// Refers to a loader of the caller.
  explicit LoaderFeed(Loader& loader) : loader_(&loader) {}
  /// Owns the loader.
  explicit LoaderFeed(Loader&& loader)
      : own_(std::make_unique<Loader>(std::move(loader))), loader_(own_.get()) {}

  bool next(Tensors& batch) override {
    batch.clear();  // first, so that its memory can serve the next one
    if (at_.has_value()) {
      ++*at_;
    } else {
      at_.emplace(begin());
    }
    if (*at_ == loader_->end()) {
      at_.reset();
      return false;
    }
    batch = tensors_of(**at_);
    return true;
  }
  void leave() override { at_.reset(); }
  void set_device(at::Device device) override { device_ = device; }

  [[nodiscard]] std::optional<int64_t> batches() const override {
    const int64_t known = loader_->state().batches;
    return known < 0 ? std::nullopt : std::optional(known);
  }
  [[nodiscard]] int64_t samples() const override { return loader_->state().samples; }
  [[nodiscard]] data::BatchTurns turns() const override { return loader_->turns(); }
  [[nodiscard]] int64_t current() const override { return loader_->current(); }
  void set_epoch(int64_t epoch) override { loader_->set_epoch(epoch); }
  [[nodiscard]] data::LoaderState state() const override { return loader_->state(); }
  void load_state(const data::LoaderState& state) override {
    at_.reset();
    loader_->load_state(state);
  }
  [[nodiscard]] data::LoaderStats stats() const override { return loader_->stats(); }
  [[nodiscard]] std::vector<std::string> class_names() const override {
    if constexpr (requires { loader_->dataset(); }) {
      return class_names_of(loader_->dataset());
    } else {
      return {};
    }
  }

 protected:
  [[nodiscard]] const Loader& loader() const { return *loader_; }

 private:
  typename Loader::Iterator begin() {
    if constexpr (requires { loader_->begin(device_); }) {
      return loader_->begin(device_);
    } else {
      return loader_->begin();
    }
  }

  std::unique_ptr<Loader> own_;
  Loader* loader_;
  at::Device device_ = at::kCPU;
  std::optional<typename Loader::Iterator> at_;
};

/// A feed over a data set that fit() divides among the ranks.
template <typename Loader>
class DatasetFeed final : public LoaderFeed<Loader> {
 public:
  DatasetFeed(Loader&& loader, const Dealing& dealing)
      : LoaderFeed<Loader>(std::move(loader)), dealing_(dealing) {}

  [[nodiscard]] std::optional<Dealing> dealing() const override { return dealing_; }
  [[nodiscard]] std::unique_ptr<Feed> with_batches(
      const data::BatchSampler& batches) const override {
    const Loader& now = this->loader();
    return std::make_unique<DatasetFeed>(Loader(now.dataset(), batches, now.options()), dealing_);
  }

 private:
  Dealing dealing_;
};

template <typename T>
concept IsLoader = requires(T& loader) {
  typename T::Iterator;
  loader.state();
  loader.stats();
  loader.begin();
};

}  // namespace detail

}  // namespace argosy::train
