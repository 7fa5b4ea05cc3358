#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <c10/core/Device.h>

#include "argosy/data/arrivals.h"
#include "argosy/data/batch_scope.h"
#include "argosy/data/batch_tensors.h"
#include "argosy/data/dataset.h"
#include "argosy/data/device_copies.h"
#include "argosy/data/epoch_cursor.h"
#include "argosy/data/loader_options.h"
#include "argosy/data/loader_stats.h"
#include "argosy/data/made.h"
#include "argosy/data/ordered_prefetch.h"
#include "argosy/data/tensor_pool.h"

namespace argosy::data::detail {

template <typename Source>
class LoaderSession;

/// The state that a loader and a running loop share. It owns the loader threads.
template <typename Source>
struct LoaderCore {
  using Batch = typename Source::Batch;

  template <typename... Args>
  explicit LoaderCore(const DataLoaderOptions& opts, Args&&... of_source)
      : options(opts),
        source(std::forward<Args>(of_source)...),
        // Four tensors to a batch for all that can be in flight, in the loop's hand and just freed.
        keep(4 * (2 + static_cast<size_t>(prefetch_options(opts).depth))),
        pool({.keep = keep}),
        prefetch(prefetch_options(opts)) {}

  [[nodiscard]] LoaderState state_of(const SamplerState& at) {
    if (order.epoch != at.epoch && at.epoch >= 0) {
      order = {at.epoch, source.order_digest(at.epoch)};
    }
    return {.epoch = at.epoch,
            .position = at.position,
            .seed = options.seed,
            .batches = source.batches(),
            .samples = source.samples(),
            .order = order.digest};
  }

  /// Returns what brings batches to the device; nullptr for the CPU, where they are made, and for
  /// batches whose tensors nobody finds.
  std::shared_ptr<DeviceCopies> copies_to(at::Device device) {
    if (device.is_cpu() || !holds_tensors<Batch>()) {
      return nullptr;
    }
    if (copies == nullptr || !copies->goes_to(device)) {
      copies = std::make_shared<DeviceCopies>(device, keep);
    }
    return copies;
  }

  /// Makes a result, on a loader thread or, without threads, on the loop's.
  Made<Batch> make(const typename Source::Pass& pass,
                   int64_t epoch,
                   int64_t number,
                   const Making& making,
                   DeviceCopies* leaving_by) {
    const BatchScope scope;
    // The program may copy hidden tensors itself, and give their memory back meanwhile.
    const bool pins = leaving_by != nullptr && hides_no_tensors<Batch>();
    const BatchContext context{.seed = options.seed,
                               .epoch = epoch,
                               .pool = pins ? &leaving_by->pool() : &pool,
                               .stop = &making.stop,
                               .memory_format = options.memory_format,
                               .current = &making.sample};
    Made<Batch> made = pass.make(number, context);
    if (leaving_by != nullptr && made.batch.has_value()) {
      for (at::Tensor* const tensor : tensors_in(*made.batch)) {
        *tensor = leaving_by->pinned(std::move(*tensor));
      }
    }
    return made;
  }

  [[nodiscard]] TensorPool::Stats memory() const {
    TensorPool::Stats all = pool.stats();
    if (copies != nullptr) {
      all.add(copies->pool().stats());
    }
    return all;
  }

  const DataLoaderOptions options;
  bool in_passes = false;    // the loop is in the middle of an update
  bool knows_turns = false;  // the program has asked, or was told
  Source source;
  const size_t keep;  // unused blocks of memory
  TensorPool pool;
  std::shared_ptr<DeviceCopies> copies;  // of the last loop on a device
  LoaderStats stats;
  struct {
    int64_t epoch = -1;
    uint64_t digest = 0;
  } order;  // the order of the epoch for which state() was called last
  std::weak_ptr<LoaderSession<Source>> running;
  int64_t sessions = 0;  // begun so far
  bool has_reported_bad = false;
  OrderedPrefetch<Made<Batch>> prefetch;  // last: its threads use what stands above
};

/// One pass over one epoch. If it is destroyed early, it ends the work ahead of it.
template <typename Source>
class LoaderSession final {
 public:
  using Batch = typename Source::Batch;

  LoaderSession(std::shared_ptr<LoaderCore<Source>> core, at::Device device)
      : core_(std::move(core)),
        pass_(
            std::make_shared<typename Source::Pass>(core_->source, core_->source.cursor().epoch())),
        start_(core_->source.cursor().next()),
        copies_(core_->copies_to(device)),
        arrivals_(core_->prefetch, copies_) {
    clock_.begin(core_->stats, start_.epoch);
    pass_->begin_at(start_.position);
    core_->prefetch.start(
        start_.position,
        pass_->end(),
        [core = core_.get(), pass = pass_, epoch = start_.epoch, copies = copies_](
            int64_t number, const Making& making) {
          return core->make(*pass, epoch, number, making, copies.get());
        });
    // The epoch counts as begun only when nothing can fail any more.
    (void)core_->source.cursor().begin();
    number_ = ++core_->sessions;
  }
  ~LoaderSession() {
    if (number_ == core_->sessions) {  // else the work in flight belongs to a later loop
      core_->prefetch.cancel();
    }
  }
  LoaderSession(const LoaderSession&) = delete;
  LoaderSession& operator=(const LoaderSession&) = delete;

  [[nodiscard]] bool has_batch() const { return batch_.has_value(); }
  /// The number of the batch in its epoch. Batches that were left out count.
  [[nodiscard]] int64_t number_of_batch() const { return start_.position + taken_ - 1; }
  [[nodiscard]] int64_t epoch() const { return start_.epoch; }
  Batch& batch() { return *batch_; }

  void advance() {
    batch_.reset();  // first, so that its memory can serve the next one
    if (finished_) {
      return;
    }
    finished_ = true;  // unless a batch comes
    clock_.asks(core_->stats);
    try {
      receive();
    } catch (...) {
      core_->prefetch.cancel();
      throw;
    }
    clock_.has(core_->stats);
    if (has_batch()) {
      arrivals_.look_ahead();
    } else {
      end_epoch();
    }
    finished_ = !has_batch();
  }

 private:
  /// Returns the next batch that has samples.
  void receive() {
    while (std::optional<Made<Batch>> made = arrivals_.next()) {
      if (pass_->is_last(*made)) {
        return;
      }
      ++taken_;
      count(*made);
      if (made->batch.has_value()) {
        batch_ = std::move(made->batch);
        core_->source.cursor().consumed(start_.epoch, start_.position + taken_, pass_->end());
        return;
      }
    }
  }

  void count(const Made<Batch>& made) {
    LoaderStats& stats = core_->stats;
    stats.batches += made.batch.has_value() ? 1 : 0;
    stats.samples += made.samples;
    if (made.bad.count() > 0) {
      stats.bad.add(made.bad);
      if (!std::exchange(core_->has_reported_bad, true)) {
        report_first_bad(made.bad);
      }
    }
  }

  void end_epoch() {
    const int64_t done = start_.position + taken_;
    core_->source.cursor().consumed(start_.epoch, done, done);
    core_->prefetch.cancel();  // a stream's end comes before the last of the work ahead
    report_bad(core_->stats);
    check_some_good(core_->stats);
  }

  const std::shared_ptr<LoaderCore<Source>> core_;
  const std::shared_ptr<typename Source::Pass> pass_;
  const SamplerState start_;
  const std::shared_ptr<DeviceCopies> copies_;
  Arrivals<Batch> arrivals_;
  LoopClock clock_;
  int64_t number_ = 0;
  int64_t taken_ = 0;  // results so far, batches without samples included
  bool finished_ = false;
  std::optional<Batch> batch_;
};

}  // namespace argosy::data::detail
