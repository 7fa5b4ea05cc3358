#pragma once

#include <vector>

#include "argosy/ps/embedding_rows.h"
#include "argosy/ps/id_deal.h"
#include "argosy/ps/served_model.h"
#include "argosy/ps/table_client.h"
#include "argosy/ps/worker_steps.h"

namespace argosy::ps {

/// The gradients of a model's rows since the last step, as they are pushed. Internal to the room.
class RowGradients final {
 public:
  /// Takes them from the embeddings. Lifetime: the model stays.
  RowGradients(const TableClient& client, const ServedModel& model);
  [[nodiscard]] const std::vector<TableClient::Gradients>& all() const { return all_; }

 private:
  std::vector<EmbeddingRows::Pending> pending_{};
  std::vector<IdDeal> deals_{};
  std::vector<TableClient::Gradients> all_{};
};

/// Steps that the servers make of pushed gradients. Internal to the room.
class PushedSteps final : public WorkerSteps {
 public:
  enum class Read { kKept, kForgotten };
  /// `read`: whether pushes say what parameters the worker had read. Lifetime: client and model
  /// stay.
  PushedSteps(TableClient& client, const ServedModel& model, Read read)
      : client_(client), model_(model), read_(read) {}

  void step() override;
  void pull() override;

 private:
  TableClient& client_;
  const ServedModel& model_;
  const Read read_;
  TableClient::Seen seen_{};  ///< by the last read of the parameters
};

}  // namespace argosy::ps
