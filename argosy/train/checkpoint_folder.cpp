#include "argosy/train/checkpoint_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/checkpoint/load.h"
#include "argosy/checkpoint/newest_together.h"
#include "argosy/checkpoint/together.h"
#include "argosy/comm/json.h"
#include "argosy/engine/cpu.h"
#include "argosy/fleet/fleet.h"
#include "argosy/train/callbacks/model_checkpoint.h"
#include "argosy/train/training_state.h"

namespace argosy::train::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStep = "step-";

/// Whether it is of a training that began with this resume_from. Collective.
bool began_from(const std::string& checkpoint,
                const std::string& resume_from,
                const comm::Group& group) {
  bool same = false;
  checkpoint::together(
      group,
      "train.resume",
      checkpoint,
      [&] {
        const std::optional<Place> place =
            place_in({.values = checkpoint::Checkpoint(checkpoint).values()});
        same = place.has_value() && place->begun_from == resume_from;
      },
      checkpoint::Who::kFirst);
  return comm::broadcast_object(nlohmann::json(same), group).get<bool>();
}

/// Collective.
std::optional<std::string> choose(const FitOptions& options, const comm::Group& group) {
  const std::string own = checkpoint_folder(options);
  if (options.checkpoint.resume_from.empty()) {
    return checkpoint::newest_together(own, kStep, group);
  }
  if (options.resume != Resume::kNever && !own.empty()) {
    std::optional<std::string> newest = checkpoint::newest_together(own, kStep, group);
    if (newest.has_value() && began_from(*newest, options.checkpoint.resume_from, group)) {
      return newest;
    }
  }
  return checkpoint::newest_together(options.checkpoint.resume_from, kStep, group);
}

/// The place in a checkpoint, if it has one. What is wrong with it is said when it is read.
Place place_of(const std::string& path) {
  try {
    return place_in({.values = checkpoint::Checkpoint(path).values()})
        .value_or(Place{.virtual_ranks = 0});
  } catch (const Error&) {
    return {.virtual_ranks = 0};
  }
}

Share read_share(const std::string& path, const comm::Group& group) {
  const checkpoint::Checkpoint saved(path);
  const std::optional<Place> place = place_in({.values = saved.values()});
  const int64_t ranks = fleet::virtual_ranks();
  if (place.has_value() && place->virtual_ranks != ranks && group.rank() == 0) {
    log::warn(
        "[train.resume] {}: the training had {} virtual rank{}, and goes on with {}: its samples "
        "are dealt anew, and its bits are others than those of one that was not stopped",
        path,
        place->virtual_ranks,
        place->virtual_ranks == 1 ? "" : "s",
        ranks);
  }
  if (const std::string now = engine::kernels_in_use();
      place.has_value() && !place->kernels.empty() && place->kernels != now) {
    log::warn(
        "[train.resume] {}: operators were computed by {}, and rank {} has {}: they round in "
        "another way. To come to the same bits, start it by argosy launch as then, with the same "
        "--cpu_capability and OMP_NUM_THREADS",
        path,
        place->kernels,
        group.rank(),
        now);
  }
  Share share{.snapshot = saved.snapshot(group.rank(), checkpoint::Reading::kWhenUsed)};
  for (int64_t rank = group.rank() + group.size(); rank < saved.manifest().world_size;
       rank += group.size()) {
    share.gone.push_back(saved.rank_values(rank));
  }
  return share;
}

}  // namespace

std::string checkpoint_folder(const FitOptions& options) {
  if (!options.checkpoint.dir.empty()) {
    return options.checkpoint.dir;
  }
  if (!options.run_dir.empty()) {
    return options.run_dir + "/checkpoints";
  }
  for (const AnyCallback& callback : options.callbacks) {
    if (const auto* keeps = dynamic_cast<const ModelCheckpoint*>(&*callback)) {
      return keeps->options().dir;
    }
  }
  return {};
}

Keeps who_keeps(const FitOptions& options) {
  const bool asked = !options.checkpoint.dir.empty() || !options.run_dir.empty();
  const std::string folder = checkpoint_folder(options);
  Keeps keeps = asked ? Keeps::kOwn : Keeps::kNone;
  for (const AnyCallback& callback : options.callbacks) {
    if (const auto* theirs = dynamic_cast<const ModelCheckpoint*>(&*callback)) {
      const std::string& dir = theirs->options().dir;
      const bool same = dir == folder || (dir.empty() && options.checkpoint.dir.empty());
      keeps = same || !asked ? Keeps::kCallback : keeps;
    }
  }
  return keeps;
}

Share read_together(const std::string& path, const comm::Group& group) {
  Share share;
  checkpoint::together(group, "train.resume", path, [&] { share = read_share(path, group); });
  return share;
}

namespace {

/// Collective.
std::optional<std::string> checkpoint_to_resume(const FitOptions& options,
                                                const comm::Group& group) {
  if (options.resume == Resume::kNever && options.checkpoint.resume_from.empty()) {
    return std::nullopt;
  }
  const std::string from = options.checkpoint.resume_from.empty() ? checkpoint_folder(options)
                                                                  : options.checkpoint.resume_from;
  ARGOSY_CHECK(!from.empty(),
               "train.fit",
               "there is no folder of checkpoints to resume from: set run_dir, checkpoint.dir "
               "or checkpoint.resume_from");
  if (std::optional<std::string> found = choose(options, group)) {
    return found;
  }
  if (options.resume == Resume::kMust || !options.checkpoint.resume_from.empty()) {
    throw CheckpointError("train.resume",
                          "there is no whole checkpoint to resume from. With resume \"auto\" the "
                          "training begins anew then",
                          {.path = from});
  }
  return std::nullopt;
}

/// What a checkpoint says of the recipe by which it was trained.
struct TrainedBy {
  int64_t ranks = 0;   // virtual ones
  bool asked = false;  // for so many
  int threads = 0;     // of an operator

  /// Whether a training on so many processes keeps the virtual ranks unless another number is
  /// given. Spares are for those who asked for a number, and norms over all ranks compute side by
  /// side.
  [[nodiscard]] bool fits(int processes) const {
    return asked || ranks == processes || (ranks > processes && !fleet::strategy().sync_batch_norm);
  }
};

/// nullopt: there is none to resume from, or it is of a version that knew no virtual ranks.
/// Collective.
std::optional<TrainedBy> recipe_of(const std::optional<std::string>& path,
                                   const comm::Group& group) {
  if (!path.has_value()) {
    return std::nullopt;
  }
  const Place place = group.rank() == 0 ? place_of(*path) : Place();
  const nlohmann::json said = comm::broadcast_object(
      nlohmann::json{place.virtual_ranks, place.asked, place.threads}, group);
  const TrainedBy recipe{said[0].get<int64_t>(), said[1].get<bool>(), said[2].get<int>()};
  return recipe.threads > 0 ? std::optional(recipe) : std::nullopt;
}

}  // namespace

namespace {

/// On rank 0. Where there is no folder yet, none is made before all options are checked.
/// Collective.
bool exists(const std::string& folder, const comm::Group& group) {
  std::error_code unreadable;  // the search says so
  const bool there = group.rank() == 0 && fs::exists(folder, unreadable);
  return comm::broadcast_object(nlohmann::json(there), group).get<bool>();
}

}  // namespace

void lock_folders(FitStart& start, const FitOptions& options, const comm::Group& group) {
  if (!start.lock.has_value()) {
    start.lock.emplace(
        std::vector{options.run_dir, checkpoint_folder(options)},
        group,
        options.resume != Resume::kNever ? FolderLock::kPatience : FolderLock::kPatience.zero());
  }
}

FitStart start(const FitOptions& options,
               std::optional<int64_t> dealt_to,
               const comm::Group& group) {
  FitStart found;
  if (options.resume != Resume::kNever && exists(checkpoint_folder(options), group)) {
    lock_folders(found, options, group);
  }
  found.checkpoint = checkpoint_to_resume(options, group);
  const bool given = options.virtual_ranks > 0 || fleet::strategy().virtual_ranks > 0;
  const std::optional<TrainedBy> saved = recipe_of(found.checkpoint, group);
  const bool follows = !given && saved.has_value() && saved->fits(group.size()) &&
                       dealt_to.value_or(saved->ranks) == saved->ranks;
  const bool keeps_threads = saved.has_value() && (given || follows);
  engine::use_threads(keeps_threads ? saved->threads : given ? 1 : 0);
  found.asked = given || (follows && saved->asked);
  fleet::detail::deal_to(follows ? saved->ranks : options.virtual_ranks, found.asked);
  return found;
}

}  // namespace argosy::train::detail

namespace argosy::train {

std::optional<int64_t> virtual_ranks_to_resume(const FitOptions& options) {
  const auto saved =
      detail::recipe_of(detail::checkpoint_to_resume(options, fleet::group()), fleet::group());
  return saved.has_value() && saved->fits(fleet::worker_num()) ? std::optional(saved->ranks)
                                                               : std::nullopt;
}

}  // namespace argosy::train
