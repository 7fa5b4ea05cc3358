#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "argosy/checkpoint/saver.h"
#include "argosy/checkpoint/snapshot.h"
#include "argosy/checkpoint/states.h"
#include "argosy/data/loader_options.h"
#include "argosy/engine/memory_format.h"
#include "argosy/engine/named.h"

namespace argosy::checkpoint {

namespace detail {

[[nodiscard]] constexpr const char* usual_name(const optim::OptimizerState* /*kind*/) {
  return "optimizer";
}
[[nodiscard]] constexpr const char* usual_name(const optim::LRSchedulerState* /*kind*/) {
  return "schedule";
}
[[nodiscard]] constexpr const char* usual_name(const optim::GradScalerState* /*kind*/) {
  return "scaler";
}
[[nodiscard]] constexpr const char* usual_name(const optim::EmaState* /*kind*/) {
  return "ema";
}

}  // namespace detail

/// The position of a loop of your own.
struct TrainingProgress {
  int64_t step = 0;   ///< updates in the whole training
  int64_t epoch = 0;  ///< the running epoch, from 0
  /// Other values that the loop must remember, equal on all ranks: {{"best", 0.71}}.
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  /// What keep_best compares. Without a score, the checkpoint is not among the best.
  std::optional<double> score{};

  /// The position after an epoch, for a save after the loop over its batches.
  [[nodiscard]] TrainingProgress next_epoch() const {
    TrainingProgress next = *this;
    ++next.epoch;
    return next;
  }
};

/// Saves and resumes a loop of your own with all its parts.
///
///     checkpoint::TrainingSaver training("runs/a/checkpoints", {.keep = {.keep_last = 2}}, world);
///     training.add(model).add(optimizer).add(scheduler).add(loader);
///     checkpoint::TrainingProgress at = training.resume();  // zeros without a checkpoint
///     for (; at.epoch < epochs; ++at.epoch) {
///       for (auto& [images, labels] : loader) {             // the rest of a resumed epoch
///         …
///         if (++at.step % 100 == 0) training.save(at);      // copies and returns; a thread writes
///       }
///     }
///     training.wait();                                      // returns when all is on the disk
///
/// A resumed loop runs the rest of its epoch and what comes after the loop over batches. Where all
/// of an epoch is done (a schedule's step per epoch, an evaluation), save the beginning of the
/// next: training.save(at.next_epoch()).
///
/// It also saves the random generators and the buffers of each rank. With the same number of ranks
/// and threads, a resumed loop reaches the same bits as one that was never stopped. A loop over
/// fleet::updates() may go on with another number of processes if the virtual ranks stay the same:
/// fleet::init({.virtual_ranks = …}). The checkpoints have the form of fit()'s, so Model::load()
/// and `argosy checkpoint` read them.
///
/// Collective over `group`: the constructor, resume(), save() and wait(). Not thread-safe.
/// Lifetime: everything that was added must outlive the TrainingSaver.
class TrainingSaver final {
 public:
  /// Errors: see Saver.
  explicit TrainingSaver(std::string directory,
                         const SaverOptions& options = {},
                         comm::Group group = {});

  /// Adds a module (or a wrapper of one), an optimizer, a learning-rate schedule, a GradScaler, an
  /// ExponentialMovingAverage or a DataLoader. The first of a kind is called "model", "optimizer",
  /// "schedule", "scaler", "ema" or "loader"; the second needs a `name`. A GAN has add(generator,
  /// "generator") and add(discriminator, "discriminator").
  /// Errors: UsageError if the name is taken.
  template <typename T>
  TrainingSaver& add(T& object, std::string name = {});

  /// Restores everything that was added, from the newest whole checkpoint of the folder or from the
  /// checkpoint at `from`, and returns the position of that training. Without a checkpoint in the
  /// folder it changes nothing and returns zeros.
  /// Errors: CheckpointError on all ranks if the checkpoint does not fit what was added, if another
  /// number of ranks saved it and the loaders' batches are not dealt to the same virtual ranks, or
  /// if there is no checkpoint at `from`.
  [[nodiscard]] TrainingProgress resume(const std::string& from = {});

  /// Saves a checkpoint named after `at.step`. The first save of a training moves checkpoints of
  /// later steps than that at which it began into a folder `earlier-<n>`: they are of another
  /// training, and would count as newer. Errors: as Saver::save().
  Saved save(const TrainingProgress& at);
  /// Returns when everything is on the disk, on all ranks.
  void wait() { saver_.wait(); }

  [[nodiscard]] const Saver& saver() const { return saver_; }

 private:
  struct Piece {
    std::function<void(Snapshot& now)> save{};
    std::function<void(const Snapshot& saved)> load{};
  };
  struct Module {
    std::string name{};
    const torch::nn::Module* module = nullptr;
    /// For a wrapper, which may choose the memory format of its weights: returns and restores it.
    std::function<engine::MemoryFormat()> format{};
    std::function<void(engine::MemoryFormat)> decide_format{};
  };

  [[nodiscard]] std::string take_name(std::string name, const char* usual);
  [[nodiscard]] int64_t virtual_ranks() const;
  [[nodiscard]] Snapshot read(const std::string& path) const;
  void add_module(const torch::nn::Module& module, std::string name);
  void add_loader(const std::function<data::LoaderState()>& state,
                  const std::function<void(const data::LoaderState&)>& load,
                  const std::function<void(int64_t)>& set_epoch,
                  std::string name);

  comm::Group group_;
  Saver saver_;
  std::set<std::string> names_;
  std::vector<Module> modules_;
  std::vector<Piece> pieces_;
  std::set<int64_t> dealt_to_;  ///< virtual ranks of the loaders' batches; 0: none
  int64_t begun_ = 0;           ///< the step at which this training began
  bool saved_ = false;
};

template <typename T>
TrainingSaver& TrainingSaver::add(T& object, std::string name) {
  if constexpr (requires { object.load_state(data::LoaderState()); }) {
    dealt_to_.insert(object.turns().virtual_ranks);
    add_loader([&object] { return object.state(); },
               [&object](const data::LoaderState& state) { object.load_state(state); },
               [&object](int64_t epoch) { object.set_epoch(epoch); },
               std::move(name));
  } else if constexpr (requires { object.load_state_dict(object.state_dict()); }) {
    using State = std::remove_cvref_t<decltype(object.state_dict())>;
    name = take_name(std::move(name), detail::usual_name(static_cast<const State*>(nullptr)));
    pieces_.push_back(
        {.save = [&object, name](Snapshot& now) { put_state(now, name, object.state_dict()); },
         .load =
             [&object, name](const Snapshot& saved) {
               object.load_state_dict(get_state<State>(saved, name));
             }});
  } else {
    static_assert(engine::HasModule<T>,
                  "add() takes a module, or an optimizer, schedule, scaler, average or loader of "
                  "argosy; torch::save saves torch::optim's: see docs/reference/libtorch.md");
    add_module(engine::module_of(object), std::move(name));
    if constexpr (requires { object.decide_memory_format(object.memory_format()); }) {
      modules_.back().format = [&object] { return object.memory_format(); };
      modules_.back().decide_format = [&object](engine::MemoryFormat format) {
        object.decide_memory_format(format);
      };
    }
  }
  return *this;
}

}  // namespace argosy::checkpoint
