#pragma once

#include <cstdint>
#include <cstdio>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "argosy/events/progress_bar.h"
#include "argosy/fleet/fleet.h"

namespace argosy::fleet {

struct ProgressOptions {
  std::string label = "";  ///< in front of the bar: "epoch 2/3"
  int64_t total = 0;       ///< samples of all ranks; 0: not known, no time left
  std::string unit = "samples";
  events::ProgressStyle style = events::ProgressStyle::kAuto;
  std::FILE* out = stdout;
};

/// A loader with a progress bar on rank 0; what progress() returns.
/// Lifetime: refers to the loader. Use in one loop.
template <typename Loader>
class Progress final {
 public:
  using Inner = decltype(std::declval<Loader&>().begin());

  Progress(Loader& loader, const ProgressOptions& options)
      : loader_(loader),
        bar_({.label = options.label,
              .total = options.total,
              .unit = options.unit,
              .style = is_first_worker() ? options.style : events::ProgressStyle::kOff,
              .out = options.out}) {}

  class Iterator final {
   public:
    using iterator_category = std::input_iterator_tag;
    Iterator(Progress& owner, Inner inner) : owner_(owner), inner_(std::move(inner)) {}
    decltype(auto) operator*() { return *inner_; }
    Iterator& operator++() {
      // Ranks have equal batches, so rank 0's stand for all.
      owner_.bar_.advance(std::get<0>(*inner_).size(0) * worker_num());
      ++inner_;
      owner_.show_waiting(kWorthShowing);
      return *this;
    }
    template <typename Sentinel>
    bool operator==(const Sentinel& end) const {
      return inner_ == end;
    }

   private:
    Progress& owner_;
    Inner inner_;
  };

  Iterator begin() { return Iterator(*this, loader_.begin()); }
  auto end() { return loader_.end(); }

  /// A value of this rank to show beside the bar.
  void show(const std::string& name, double value) { bar_.show(name, value); }
  /// Draws the bar's last state; call it after the loop.
  void finish() {
    show_waiting(0);
    bar_.finish();
  }
  /// Since construction.
  [[nodiscard]] double seconds() const { return bar_.seconds(); }

 private:
  static constexpr double kWorthShowing = 0.05;

  /// The share of the loop's time that it waited for batches, from `least` on.
  void show_waiting(double least) {
    if constexpr (requires { loader_.stats().input_bound(); }) {
      if (const double share = loader_.stats().input_bound(); share >= least) {
        bar_.show_share("input-bound", share);
      }
    }
  }

  Loader& loader_;
  events::ProgressBar bar_;
};

/// Iterates over `loader` and shows on rank 0 how far the epoch is, samples per second over all
/// ranks, and the time left; of a data::DataLoader also for which share of the time rank 0 waited
/// for it ("input-bound 12 %"): from 5 % on while it runs, in any case in the last line.
///
///     auto batches = fleet::progress(loader, {.label = "epoch 1/3", .total = train.size()});
///     for (auto& [images, labels] : batches) { …; batches.show("loss", loss.item<double>()); }
///     batches.finish();
template <typename Loader>
[[nodiscard]] Progress<Loader> progress(Loader& loader, const ProgressOptions& options = {}) {
  return Progress<Loader>(loader, options);
}

}  // namespace argosy::fleet
