#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "argosy/checkpoint/snapshot.h"
#include "argosy/train/callback.h"
#include "argosy/train/core.h"
#include "argosy/train/dealing.h"
#include "argosy/train/step_figures.h"

namespace argosy::train::detail {

/// Where fit() is, between two updates.
struct Place {
  int64_t epoch = 0;
  int64_t batch = 0;    ///< batches of the epoch's last leg that are done, on each rank
  bool at_end = false;  ///< these are all of the epoch; what follows it is still to come
  int64_t ranks = 1;
  int64_t begun_step = 0;   ///< updates that the model had when the training began
  std::vector<Leg> legs{};  ///< of the epoch, the last one is going on; none: a loader of one's own
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< of the last update
  int64_t samples = 0;                                     ///< of the last update
  bool stop_after_epoch = false;
  bool stopped = false;      ///< somebody has ended the training
  std::string reason{};      ///< why
  std::string begun_from{};  ///< FitOptions::resume_from of the training; empty: none

  [[nodiscard]] bool in_epoch() const { return batch > 0 || legs.size() > 1; }
};

/// What a place is made of beside the model.
struct Surroundings {
  const std::vector<AnyCallback>& callbacks;
  const EpochFigures& figures;
  Feed& feed;
};

/// All of a training's state. Collective.
[[nodiscard]] checkpoint::Snapshot capture(const Core& core,
                                           const Place& place,
                                           const Surroundings& around);
/// Model, optimizer, schedule, scaler, average and the number of updates, without a place in an
/// epoch.
[[nodiscard]] checkpoint::Snapshot capture(const Core& core);

/// For a training that is to go on. Errors: CheckpointError: it had a schedule and has none now.
void check_schedule(const Core& core,
                    const checkpoint::Snapshot& snapshot,
                    const std::string& path);
/// Puts model, optimizer, schedule, scaler, average and number of updates back.
/// Errors: CheckpointError: of another model, optimizer or schedule.
void restore(Core& core, const checkpoint::Snapshot& snapshot, const std::string& path);
/// The place in the epoch; nullopt when the checkpoint has none: Model::save() wrote it.
[[nodiscard]] std::optional<Place> place_in(const checkpoint::Snapshot& snapshot);
/// States of the callbacks, which are on all ranks the same.
void restore_callbacks(const checkpoint::Snapshot& snapshot,
                       std::span<const AnyCallback> callbacks);
/// What each rank has of its own: generators, buffers. Its sums in mid-epoch: restore_sums().
void restore_rank(Core& core, const checkpoint::Snapshot& snapshot);
/// What this rank has asked for and the ranks have not agreed on yet, or one that is gone.
/// Errors: CheckpointError.
[[nodiscard]] Requests requests_in(const checkpoint::Snapshot& snapshot,
                                   std::span<const nlohmann::ordered_json> gone);
/// Where this rank's loader was.
[[nodiscard]] data::LoaderState loader_state_in(const checkpoint::Snapshot& snapshot);

}  // namespace argosy::train::detail
