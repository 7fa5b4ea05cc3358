#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "argosy/optim/optimizer.h"
#include "argosy/ps/embedding_rows.h"
#include "argosy/ps/table_client.h"
#include "argosy/ps/tables.h"

namespace torch::nn {
class Module;
}

namespace argosy::ps {

class EmbeddingImpl;

/// A model and its optimizer, as tables: a sparse one for each Embedding, a dense one for each
/// parameter. Internal to the room.
class ServedModel final {
 public:
  /// Lifetime: the model's embeddings stay.
  /// Errors: UsageError for an optimizer that cannot run on servers, or parameters that are not f32
  /// on the CPU.
  ServedModel(torch::nn::Module& model, const optim::Optimizer& optimizer);
  ~ServedModel();  ///< the embeddings are then without rows
  ServedModel(const ServedModel&) = delete;
  ServedModel& operator=(const ServedModel&) = delete;
  ServedModel(ServedModel&&) = delete;
  ServedModel& operator=(ServedModel&&) = delete;

  [[nodiscard]] const TableSet& tables() const { return tables_; }
  [[nodiscard]] const optim::Optimizer& optimizer() const { return optimizer_; }

  /// Lets the embeddings read and write by the client. Lifetime: the client stays.
  void bind(TableClient& client, const EmbeddingRows::Options& options);
  /// Returns what embeddings read and keep, by sparse table; empty before bind().
  [[nodiscard]] const std::vector<std::shared_ptr<EmbeddingRows>>& rows() const { return rows_; }
  /// Returns the rate of a sparse table: its own, or the optimizer's as it is now.
  [[nodiscard]] double rate_of(uint32_t table) const {
    return rates_[table].value_or(optimizer_.lr());
  }

  /// Returns the memory of the parameters. Whoever writes there calls note_change().
  [[nodiscard]] std::vector<std::span<float>> values() const;
  void note_change() const;
  /// The gradients of the parameters, zeros for one that has none, and their rates.
  struct Gradients {
    std::vector<at::Tensor> kept{};
    std::vector<std::span<const float>> gradients{};
    std::vector<double> lr{};
  };
  [[nodiscard]] Gradients gradients() const;

 private:
  void add_table(EmbeddingImpl& embedding, const std::string& table);

  const optim::Optimizer optimizer_;
  TableSet tables_;
  const std::vector<size_t> groups_;            ///< of each parameter
  std::vector<std::optional<double>> rates_{};  ///< of each sparse table; empty: the optimizer's
  std::vector<std::pair<EmbeddingImpl*, uint32_t>> embeddings_{};  ///< and their tables
  std::vector<std::shared_ptr<EmbeddingRows>> rows_{};
};

}  // namespace argosy::ps
