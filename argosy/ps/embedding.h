#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "argosy/ps/row_table.h"

namespace argosy::ps {

class EmbeddingRows;

struct EmbeddingOptions {
  int64_t dim = 0;
  /// Of the table. Empty: the module's name in the model. Modules of one name share the table.
  std::string table{};
  /// How its rows are updated. nullptr: by the model's optimizer, each row as a parameter.
  std::shared_ptr<const RowRule> rule{};
  /// Empty: the optimizer's rate, whatever a schedule makes of it.
  std::optional<double> lr{};
  float initial_range = 1e-4F;  ///< Paddle's `sparse_initial_range`
  uint64_t seed = 0;
  Entry entry{};
  /// Keeps shows, clicks and days of each row, for ServedTraining::shrink().
  bool statistics = false;
  ShrinkOptions shrink{};
  /// An id whose row is zeros and never changes. Source: torch.nn.Embedding.
  std::optional<int64_t> padding_idx{};
};

/// How often the things behind the ids of a batch were shown and clicked: what
/// Entry::show_click() and tables with statistics go by.
struct ClickCounts {
  at::Tensor shows{};   ///< f32, of the shape of the ids; undefined: 1 each
  at::Tensor clicks{};  ///< the same; undefined: 0 each
};

/// A table of rows by 64-bit ids, as a layer of any network. The rows lie on the servers of a job:
/// forward reads those of the batch, backward keeps their gradients, and ServedTraining::step()
/// sends them. It has no parameters. Before ServedTraining has begun, forward is an error.
///
///     struct Net : torch::nn::Module {
///       ps::Embedding words{ps::EmbeddingOptions{.dim = 16}};     // registered as "words"
///       …
///       at::Tensor forward(at::Tensor ids) { return head(words(ids).sum(1)); }
///     };
class EmbeddingImpl : public torch::nn::Module {
 public:
  explicit EmbeddingImpl(EmbeddingOptions options);

  /// Shape: ids i64 [...] → f32 [..., dim]. Ids are any numbers, negative ones too.
  /// Blocks: until the servers have answered.
  /// Errors: UsageError before ServedTraining has begun; CallError naming a server that is gone.
  [[nodiscard]] at::Tensor forward(const at::Tensor& ids);

  /// The same, and the step sends these counts beside the gradients. (No overload of forward(),
  /// which torch::nn::Sequential could not choose from.)
  /// Errors: UsageError for counts of another shape or type, and in kGeo, which sends none.
  [[nodiscard]] at::Tensor look_up(const at::Tensor& ids, const ClickCounts& counts);

  /// Begins to read the rows of the next forward, which takes the same ids, while the caller
  /// computes: call it after this batch's forward. The rows may then lack this batch's step. In
  /// kSync it does nothing, for there a step reads what the last one made; nor in kGeo, where most
  /// rows are here.
  /// Errors: as forward().
  void prefetch(const at::Tensor& ids);

  [[nodiscard]] const EmbeddingOptions& options() const { return options_; }
  /// Lets it read and write by `rows`. Called by ServedTraining.
  void bind(std::shared_ptr<EmbeddingRows> rows) { rows_ = std::move(rows); }

 private:
  void check(const at::Tensor& ids) const;

  EmbeddingOptions options_;
  std::shared_ptr<EmbeddingRows> rows_{};
};
TORCH_MODULE(Embedding);

}  // namespace argosy::ps
