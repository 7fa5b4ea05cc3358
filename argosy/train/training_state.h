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

/// The position of fit() between two updates.
struct Place {
  int64_t epoch = 0;
  int64_t batch = 0;    ///< finished batches of the epoch's last leg, per rank
  bool at_end = false;  ///< all batches are done; the end of the epoch is not
  int64_t ranks = 1;    ///< processes
  int64_t virtual_ranks = 1;
  bool asked = false;              ///< somebody asked for that number of virtual ranks
  std::optional<uint64_t> seed{};  ///< of the passes' random numbers; nullopt: not known
  int threads = 0;                 ///< of an operator; 0: not known
  std::string kernels{};           ///< engine::kernels_in_use(); empty: not known
  int64_t begun_step = 0;          ///< the model's updates when the training began
  std::vector<Leg> legs{};         ///< of the epoch; the last is open; none: the user's loader
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< of the last update
  int64_t samples = 0;                                     ///< of the last update
  bool stop_after_epoch = false;
  bool stopped = false;      ///< the training was ended early
  std::string reason{};      ///< why
  std::string begun_from{};  ///< its FitOptions::resume_from; empty: none

  [[nodiscard]] bool in_epoch() const { return batch > 0 || legs.size() > 1; }
};

/// The sources of a training's state outside the model.
struct Surroundings {
  const std::vector<AnyCallback>& callbacks;
  const EpochFigures& figures;
  Feed& feed;
};

/// Returns the whole state of a training. Collective.
[[nodiscard]] checkpoint::Snapshot capture(const Core& core,
                                           const Place& place,
                                           const Surroundings& around);
/// Returns the state of model, optimizer, schedule, scaler and average and the number of updates,
/// without a position in an epoch.
[[nodiscard]] checkpoint::Snapshot capture(const Core& core);

/// Checks a training that will resume. Errors: CheckpointError if it had a schedule and has none
/// now.
void check_schedule(const Core& core,
                    const checkpoint::Snapshot& snapshot,
                    const std::string& path);
/// Restores model, optimizer, schedule, scaler, average and the number of updates. Collective.
/// Errors: CheckpointError on all ranks if the snapshot is of another model, optimizer or schedule,
/// or cannot be read.
void restore(Core& core, const checkpoint::Snapshot& snapshot, const std::string& path);
/// Returns the position in the epoch, or nullopt if Model::save() wrote the checkpoint, which has
/// none.
[[nodiscard]] std::optional<Place> place_in(const checkpoint::Snapshot& snapshot);
/// Restores the callbacks' states, which are equal on all ranks.
/// Errors: CheckpointError for a callback with tensors that the checkpoint does not know.
void restore_callbacks(const checkpoint::Snapshot& snapshot,
                       const std::string& path,
                       std::span<const AnyCallback> callbacks);
/// Restores what each rank has of its own: generators and, if as many processes saved it as there
/// are now, buffers; else they are virtual rank 0's, or what the optimizer has of each.
/// restore_sums() restores its sums within an epoch.
void restore_rank(Core& core, const checkpoint::Snapshot& snapshot, const Place& place);
/// Returns what this rank, or one that no longer exists, was asked for and the ranks have not
/// agreed on yet.
/// Errors: CheckpointError.
[[nodiscard]] Requests requests_in(const checkpoint::Snapshot& snapshot,
                                   std::span<const nlohmann::ordered_json> gone);
/// Returns the position of this rank's loader, or of rank 0's where the rank was not there.
[[nodiscard]] data::LoaderState loader_state_in(const checkpoint::Snapshot& snapshot);

}  // namespace argosy::train::detail
