#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/data/dataset.h"
#include "argosy/image/image.h"

namespace argosy::recipes {

/// What stands behind Examples: pictures with labels, or with points.
class ExampleSource {
 public:
  ExampleSource() = default;
  virtual ~ExampleSource() = default;
  ExampleSource(const ExampleSource&) = delete;
  ExampleSource& operator=(const ExampleSource&) = delete;
  ExampleSource(ExampleSource&&) = delete;
  ExampleSource& operator=(ExampleSource&&) = delete;

  [[nodiscard]] virtual int64_t size() const = 0;
  [[nodiscard]] virtual std::tuple<at::Tensor, at::Tensor> batch(
      std::span<const int64_t> indices, const data::BatchContext& context) const = 0;
  /// As stored.
  [[nodiscard]] virtual image::Image picture(int64_t index) const = 0;
  /// A class, or -1: none.
  [[nodiscard]] virtual int64_t label(int64_t index) const = 0;
  /// Points x, y, x, y … in pixels of picture(); empty: none.
  [[nodiscard]] virtual std::vector<float> points(int64_t /*index*/) const { return {}; }
  /// The file that it came from, or what names it; may be empty.
  [[nodiscard]] virtual std::string name(int64_t /*index*/) const { return {}; }
};

/// Some samples of a data set of pictures, whatever its kind, as the trainer takes them: batches of
/// images f32 [n, C, H, W] and targets, i64 [n] classes or f32 [n, 2 K] coordinates as parts of the
/// picture's side.
///
/// A data::Dataset; random streams are those of the samples in the whole set. A value: copies share
/// everything. Thread-safe.
class Examples final {
 public:
  Examples(std::shared_ptr<const ExampleSource> source, std::vector<int64_t> indices);

  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(indices_->size()); }
  [[nodiscard]] std::tuple<at::Tensor, at::Tensor> get_batch(
      std::span<const int64_t> indices, const data::BatchContext& context) const;
  [[nodiscard]] int64_t sample_key(int64_t index) const { return in_whole(index); }
  [[nodiscard]] int64_t key_space() const { return source_->size(); }

  [[nodiscard]] image::Image picture(int64_t index) const {
    return source_->picture(in_whole(index));
  }
  [[nodiscard]] int64_t label(int64_t index) const { return source_->label(in_whole(index)); }
  [[nodiscard]] std::vector<float> points(int64_t index) const {
    return source_->points(in_whole(index));
  }
  [[nodiscard]] std::string name(int64_t index) const { return source_->name(in_whole(index)); }

 private:
  /// Errors: UsageError when the index is outside [0, size()).
  [[nodiscard]] int64_t in_whole(int64_t index) const;

  std::shared_ptr<const ExampleSource> source_;
  std::shared_ptr<const std::vector<int64_t>> indices_;
};

}  // namespace argosy::recipes
