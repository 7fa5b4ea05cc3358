#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

#include "argosy/data/batch_sampler.h"
#include "argosy/fleet/fleet.h"
#include "argosy/parallel/ddp/micro_batch.h"

namespace argosy::fleet {

namespace detail {

/// Returns rank 0's seed_everything(), or what the program seeded its generator with. Collective.
[[nodiscard]] uint64_t seed_of_job();

/// Where an epoch's updates are, and what follows from it for the job's models and generators.
class UpdatePlace final {
 public:
  /// Collective: the ranks take rank 0's seed.
  /// Errors: UsageError if the batches are dealt in another way than the job's virtual ranks.
  UpdatePlace(const data::BatchTurns& turns, int64_t epoch);

  /// The same for fit(), where the ranks share the seed, and another model may be stepped inside of
  /// its passes if each process makes one.
  UpdatePlace(const data::BatchTurns& turns, int64_t epoch, uint64_t seed);
  /// Models forget an update that was left amid its passes.
  ~UpdatePlace();
  UpdatePlace(const UpdatePlace&) = delete;
  UpdatePlace& operator=(const UpdatePlace&) = delete;
  UpdatePlace(UpdatePlace&&) = delete;
  UpdatePlace& operator=(UpdatePlace&&) = delete;

  /// Begins the update that has batch `first` of this process, of `batches` in the epoch.
  void begin_update(int64_t first, int64_t batches);
  /// Begins a pass on batch `number`: seeds libtorch's generators, and tells the models whose it
  /// is. Errors: UsageError for another number than is next.
  void begin_batch(int64_t number);
  /// Returns whose pass was begun last.
  [[nodiscard]] const parallel::MicroBatch& now() const { return now_; }
  /// True if the next pass is another virtual rank's.
  [[nodiscard]] bool ends_leaf() const { return done_ > 0 && now_.ends_leaf(); }
  /// True if it is the update's last, or no update has begun.
  [[nodiscard]] bool is_last() const { return done_ == size(); }
  [[nodiscard]] int64_t size() const { return turns_.leaves * micros_; }  ///< passes of the update
  void end_update();
  /// Errors: UsageError if the update is not done.
  void check_done() const;

  [[nodiscard]] int64_t micros() const { return micros_; }  ///< of the update
  [[nodiscard]] bool is_spare() const { return turns_.spare; }

 private:
  void seed_generators_for(std::initializer_list<int64_t> parts) const;

  data::BatchTurns turns_;
  int64_t epoch_;
  uint64_t seed_;
  bool strict_ = false;
  int64_t first_ = 0;  // batch of the update
  int64_t micros_ = 0;
  int64_t done_ = 0;  // batches of the update that were begun
  parallel::MicroBatch now_{};
  bool open_ = false;  // passes have begun, and the update has not ended
};

}  // namespace detail

/// An epoch of a loader as updates of the optimizer; see updates().
template <typename Loader>
class Updates final {
  using Inner = decltype(std::declval<Loader&>().begin());

  struct State {
    explicit State(Loader& loader_of)
        : loader(loader_of),
          turns(loader.turns()),
          at(loader.begin()),
          place(turns, loader.epoch_of_loop()) {}
    Loader& loader;
    data::BatchTurns turns;  // asked for before the loop begins
    Inner at;
    detail::UpdatePlace place;

    ~State() { loader.set_in_passes(false); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    State(State&&) = delete;
    State& operator=(State&&) = delete;

    [[nodiscard]] bool ended() { return at == loader.end(); }
  };

 public:
  /// The batches of one update that this process computes, each a pass; none on a spare. It can be
  /// iterated once.
  class Update final {
   public:
    class Iterator final {
     public:
      using iterator_category = std::input_iterator_tag;
      using difference_type = std::ptrdiff_t;
      using value_type = std::remove_cvref_t<decltype(*std::declval<Inner&>())>;

      explicit Iterator(State* state) : state_(state) {
        state_->loader.set_in_passes(true);
        begin_batch();
        while (state_ != nullptr && state_->place.is_spare()) {
          ++*this;
        }
      }
      auto& operator*() const { return *state_->at; }
      Iterator& operator++() {
        if (state_->place.is_last()) {  // the loader stays where a checkpoint is to go on
          state_->place.end_update();
          state_->loader.set_in_passes(false);
          state_ = nullptr;
        } else {
          ++state_->at;
          begin_batch();
        }
        return *this;
      }
      void operator++(int) { ++*this; }
      friend bool operator==(const Iterator& it, std::default_sentinel_t) {
        return it.state_ == nullptr;
      }

     private:
      void begin_batch() {
        state_->place.begin_batch(state_->ended() ? -1 : state_->loader.current());
      }
      State* state_;
    };

    explicit Update(State* state) : state_(state) {}
    [[nodiscard]] Iterator begin() const { return Iterator(state_); }
    [[nodiscard]] static std::default_sentinel_t end() { return {}; }
    /// Returns the number of batches of each virtual rank. Divide each loss by it if the gradient
    /// is to be that of their mean.
    [[nodiscard]] int64_t micro_batches() const { return state_->place.micros(); }

   private:
    State* state_;
  };

  class Iterator final {
   public:
    using iterator_category = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = Update;

    explicit Iterator(State* state) : state_(state), update_(state) { begin_update(); }
    Update& operator*() { return update_; }
    Iterator& operator++() {
      state_->place.check_done();
      ++state_->at;
      begin_update();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) {
      return it.state_->ended();
    }

   private:
    void begin_update() {
      if (!state_->ended()) {
        state_->place.begin_update(state_->loader.current(), state_->loader.size());
      }
    }
    State* state_;
    Update update_;
  };

  explicit Updates(Loader& loader) : loader_(loader) {}
  /// Returns the number of updates of an epoch, which is the same on any number of processes.
  /// Errors: UsageError for a stream of unknown length.
  [[nodiscard]] int64_t size() const { return loader_.turns().updates(loader_.size()); }
  [[nodiscard]] Iterator begin() {
    state_ = std::make_unique<State>(loader_);
    return Iterator(state_.get());
  }
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }

 private:
  Loader& loader_;
  std::unique_ptr<State> state_;
};

/// Iterates over an epoch of `loader` by updates of the optimizer, and over each update by passes.
/// With it a program has the same bits on any number of processes; see
/// DistributedStrategy::virtual_ranks.
///
///     for (auto& update : fleet::updates(loader)) {    // one update of the optimizer
///       for (auto& [images, labels] : update) {        // a batch of one virtual rank
///         cross_entropy(model(images), labels).backward();  // the last pass averages
///       }
///       optimizer.step();
///       optimizer.zero_grad();
///     }
///
/// Before each pass libtorch's generators are set from the seed of seed_everything(), the epoch,
/// the update, the virtual rank and the batch, so that dropout draws the same numbers wherever a
/// virtual rank is computed. Collective. The loader has the batches of
/// fleet::distributed_batch_sampler(), and must outlive the loop.
/// Errors: UsageError for a loader that is dealt otherwise, or a pass or update that was left out.
template <typename Loader>
[[nodiscard]] Updates<Loader> updates(Loader& loader) {
  return Updates<Loader>(loader);
}

}  // namespace argosy::fleet
