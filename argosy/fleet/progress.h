#pragma once

#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "argosy/base/even_part.h"
#include "argosy/events/progress_bar.h"
#include "argosy/fleet/fleet.h"

namespace argosy::fleet {

struct ProgressOptions {
  std::string label = "";  ///< text in front of the bar: "epoch 2/3"
  int64_t total = 0;       ///< samples of all ranks; 0: not known, so no remaining time
  std::string unit = "samples";
  events::ProgressStyle style = events::ProgressStyle::kAuto;
  std::FILE* out = stdout;
};

/// A loader with a progress bar on rank 0; progress() returns it. Use it in one loop.
/// Lifetime: refers to the loader.
template <typename Loader>
class ProgressLoader final {
 public:
  using Inner = decltype(std::declval<Loader&>().begin());

  ProgressLoader(Loader& loader, const ProgressOptions& options)
      : loader_(loader),
        bar_({.label = options.label,
              .total = options.total,
              .unit = options.unit,
              .style = is_first_worker() ? options.style : events::ProgressStyle::kOff,
              .out = options.out}) {}

  class Iterator final {
   public:
    using iterator_category = std::input_iterator_tag;
    Iterator(ProgressLoader& owner, Inner inner) : owner_(owner), inner_(std::move(inner)) {}
    decltype(auto) operator*() { return *inner_; }
    Iterator& operator++() {
      owner_.advance(std::get<0>(*inner_).size(0));
      ++inner_;
      owner_.show_waiting(kWorthShowing);
      return *this;
    }
    template <typename Sentinel>
    bool operator==(const Sentinel& end) const {
      return inner_ == end;
    }

   private:
    ProgressLoader& owner_;
    Inner inner_;
  };

  Iterator begin() { return Iterator(*this, loader_.begin()); }
  auto end() { return loader_.end(); }

  /// Shows a value of this rank beside the bar.
  void show(const std::string& name, double value) { bar_.show(name, value); }
  /// Draws the bar's last state. Call it after the loop.
  void finish() {
    show_waiting(0);
    bar_.finish();
  }
  /// Returns the seconds since construction.
  [[nodiscard]] double seconds() const { return bar_.seconds(); }

 private:
  static constexpr double kWorthShowing = 0.05;

  /// Shows how far all are when rank 0 has taken `samples` more. All virtual ranks have batches of
  /// one size.
  void advance(int64_t samples) {
    taken_ += samples;
    const int64_t own = even_part(virtual_ranks(), worker_num(), 0).size();
    const int64_t all = taken_ * virtual_ranks() / own;
    bar_.advance(all - std::exchange(shown_, all));
  }

  /// Shows the share of time that the loop waited for batches, if it is at least `least`.
  void show_waiting(double least) {
    if constexpr (requires { loader_.stats().input_bound(); }) {
      if (const double share = loader_.stats().input_bound(); share >= least) {
        bar_.show_share("input-bound", share);
      }
    }
  }

  Loader& loader_;
  events::ProgressBar bar_;
  int64_t taken_ = 0;  // by rank 0
  int64_t shown_ = 0;
};

/// Iterates over `loader` and shows on rank 0 the progress of the epoch, the samples per second of
/// all ranks, and the remaining time. For a data::DataLoader it also shows the share of time that
/// rank 0 waited for it ("input-bound 12 %"): from 5 % on while it runs, and always in the last
/// line.
///
///     auto batches = fleet::progress(loader, {.label = "epoch 1/3", .total = train.size()});
///     for (auto& [images, labels] : batches) { …; batches.show("loss", loss.item<double>()); }
///     batches.finish();
template <typename Loader>
[[nodiscard]] ProgressLoader<Loader> progress(Loader& loader, const ProgressOptions& options = {}) {
  return ProgressLoader<Loader>(loader, options);
}

}  // namespace argosy::fleet
