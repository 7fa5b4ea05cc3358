#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/pimpl.h>

#include "argosy/ps/embedding.h"

namespace argosy::recommend {

enum class ClickNetwork : uint8_t {
  kDeepFm,    ///< multiplies the columns' factors pair by pair
  kWideDeep,  ///< does not
};

struct ClickModelOptions {
  ClickNetwork network = ClickNetwork::kDeepFm;
  int64_t dim = 16;                                      ///< factors of an id
  std::vector<int64_t> hidden{64, 32};                   ///< widths of the deep part's layers
  std::shared_ptr<const ps::RowRule> rule = ps::adam();  ///< of the rows
  double row_lr = 0.01;                                  ///< of the rows
  float initial_range = 0.01F;                           ///< of the first weights of a row
  ps::Entry entry{};                                     ///< when an id gets a row
  uint64_t seed = 0;                                     ///< of the rows
};

/// Says who clicks what: DeepFM or Wide & Deep over clicks in Criteo's form.
///
///     recommend::ClickModel model({.network = recommend::ClickNetwork::kWideDeep});
///     optim::Adam optimizer(*model, {.lr = 1e-3});
///     ps::ServedTraining training(*model, optimizer, {.roles = ps::Roles::alone()});
///     at::Tensor odds = model(recommend::click_inputs(batch).ids);
///
/// All columns are ids of one table, "columns". A row has a weight of its own (the wide part) and
/// `dim` factors. DeepFM adds half of the products of all pairs of columns' factors. Both give the
/// factors to a small network.
/// Source: Guo et al., "DeepFM: A Factorization-Machine based Neural Network for CTR Prediction",
/// 2017; Cheng et al., "Wide & Deep Learning for Recommender Systems", 2016.
class ClickModelImpl final : public torch::nn::Module {
 public:
  /// Errors: UsageError naming the option.
  explicit ClickModelImpl(const ClickModelOptions& options = {});

  /// Shape: ids i64 [n, kClickColumns] → log odds of a click, f32 [n]. Errors: those of Embedding.
  [[nodiscard]] at::Tensor forward(const at::Tensor& ids);
  /// See Embedding::prefetch().
  void prefetch(const at::Tensor& ids) { columns_->prefetch(ids); }

 private:
  const ClickModelOptions options_;
  ps::Embedding columns_;
  torch::nn::Sequential deep_;
};

/// Holder of a ClickModelImpl; copies refer to the same model.
class ClickModel : public torch::nn::ModuleHolder<ClickModelImpl> {
 public:
  using torch::nn::ModuleHolder<ClickModelImpl>::ModuleHolder;
  using Impl [[maybe_unused]] = ClickModelImpl;
  explicit ClickModel(const ClickModelOptions& options)
      : ModuleHolder<ClickModelImpl>(std::make_shared<ClickModelImpl>(options)) {}
};

}  // namespace argosy::recommend
