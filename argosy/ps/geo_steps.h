#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "argosy/ps/local_dense.h"
#include "argosy/ps/served_model.h"
#include "argosy/ps/table_client.h"
#include "argosy/ps/worker_steps.h"

namespace argosy::ps {

struct GeoOptions {
  int workers = 1;
  int64_t steps = 100;  ///< of a round
};

/// Steps that a worker makes by itself, in rounds. At the end of a round it sends what they have
/// changed since it read, divided by the number of workers, and reads what the servers have then:
/// the parameters, and the rows that the round used. Source: Paddle's GEO mode (GeoCommunicator of
/// Paddle 3.3.1). The state of rules stays in this worker. Internal to the room.
class GeoSteps final : public WorkerSteps {
 public:
  /// Lifetime: client and model stay, whose EmbeddingRows are local.
  /// Errors: UsageError for tables whose ids wait for a row: nobody would have trained it.
  GeoSteps(TableClient& client, const ServedModel& model, const GeoOptions& options);
  /// Errors: as above.
  static void check(const TableSet& tables);

  void begin(const std::string& /*checkpoint*/) override { read(); }
  void step() override;
  /// Ends the round early.
  void pull() override;
  void send_rest() override { pull(); }

 private:
  void send_difference();
  void read();

  TableClient& client_;
  const ServedModel& model_;
  const GeoOptions options_;
  LocalDense dense_;
  std::vector<std::vector<float>> begun_{};  ///< the parameters at the beginning of the round
  uint64_t made_ = 0;                        ///< steps of this round
};

}  // namespace argosy::ps
