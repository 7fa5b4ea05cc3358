#include "argosy/parallel/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <c10/core/ScalarType.h>
#include <torch/nn/module.h>

#include "argosy/base/check.h"
#include "argosy/optim/sharded_step.h"
#include "argosy/parallel/ddp/buckets.h"
#include "argosy/parallel/ddp/leaf_sums.h"
#include "argosy/parallel/ddp/parameter_table.h"
#include "argosy/parallel/ddp/shared_part.h"
#include "argosy/parallel/sharded/unit_plan.h"

namespace argosy::parallel {
namespace {

constexpr const char* kEstimate = "parallel.estimate_memory";

using engine::PartMemory;
using engine::StepMoment;

/// A sharded::MemoryPool by its rules: which wholes there are, and what it keeps of their memory.
class PoolOfSizes final {
 public:
  PoolOfSizes(std::vector<int64_t> sizes, std::size_t kept, bool ahead)
      : sizes_(std::move(sizes)), kept_(kept), ahead_(ahead) {}

  void begin_sequence() {
    last_ = std::exchange(now_, {});
    place_ = 0;
  }
  void use(std::size_t unit) {
    if (!whole_.empty() && whole_.back() == unit && coming_ != unit) {
      return;
    }
    take(unit);
    go_ahead(unit);
    coming_ = coming_ == unit ? std::nullopt : coming_;
    std::erase(whole_, unit);
    whole_.push_back(unit);
    shrink(unit);
  }
  void take(std::size_t unit) {
    if (std::ranges::find(whole_, unit) != whole_.end()) {
      return;
    }
    const auto fits = [&](int64_t bytes) {
      return bytes >= sizes_[unit] && bytes <= sizes_[unit] + sizes_[unit] / 2;
    };
    const auto found = std::ranges::find_if(spare_, fits);
    memory_[unit] = found == spare_.end() ? sizes_[unit] : *found;
    if (found != spare_.end()) {
      spare_.erase(found);
    }
    whole_.push_back(unit);
  }
  void drop(std::size_t unit) {
    if (std::erase(whole_, unit) == 0 || kept_ > 8) {
      return;
    }
    spare_.push_back(memory_[unit]);
    if (spare_.size() > kept_ + 2) {
      spare_.erase(spare_.begin());
    }
  }
  void drop_all() {
    for (const std::size_t unit : std::vector<std::size_t>(whole_)) {
      drop(unit);
    }
    coming_.reset();
  }
  [[nodiscard]] int64_t bytes() const {
    int64_t all = std::accumulate(spare_.begin(), spare_.end(), int64_t{0});
    for (const std::size_t unit : whole_) {
      all += memory_.at(unit);
    }
    return all;
  }

 private:
  void go_ahead(std::size_t unit) {
    if (!ahead_) {
      return;
    }
    now_.push_back(unit);
    const auto from = last_.begin() + static_cast<std::ptrdiff_t>(std::min(place_, last_.size()));
    const auto found = std::find(from, last_.end(), unit);
    if (found == last_.end()) {
      return;
    }
    place_ = static_cast<std::size_t>(found - last_.begin()) + 1;
    if (place_ < last_.size() && std::ranges::find(whole_, last_[place_]) == whole_.end()) {
      take(last_[place_]);
      coming_ = last_[place_];
    }
  }
  void shrink(std::size_t current) {
    const auto may_go = [&](std::size_t each) { return each != current && coming_ != each; };
    auto others = static_cast<std::size_t>(std::ranges::count_if(whole_, may_go));
    for (const std::size_t each : std::vector<std::size_t>(whole_)) {
      if (others > kept_ && may_go(each)) {
        drop(each);
        --others;
      }
    }
  }

  std::vector<int64_t> sizes_;
  std::size_t kept_;
  bool ahead_;
  std::vector<std::size_t> whole_{};  // the one used last is the last one
  std::optional<std::size_t> coming_{};
  std::unordered_map<std::size_t, int64_t> memory_{};  // of wholes, in bytes
  std::vector<int64_t> spare_{};
  std::vector<std::size_t> now_{}, last_{};
  std::size_t place_ = 0;
};

/// A plan of buckets or units, and their sizes.
struct PlannedUnits {
  std::vector<int64_t> elements{};
  std::vector<int64_t> sizes{};   // bytes, of the parameters' type
  std::vector<std::size_t> of{};  // each parameter's unit
  std::vector<int64_t> members{};

  PlannedUnits(const ddp::BucketPlan& plan, const ddp::ParameterTable& table, int parts)
      : of(table.size()) {
    constexpr int64_t kUnit = optim::ShardedStep::kUnit;
    const auto rounded = [](int64_t count, int64_t step) {
      return (count + step - 1) / step * step;
    };
    for (std::size_t unit = 0; unit < plan.size(); ++unit) {
      int64_t count = 0;
      for (const std::size_t parameter : plan[unit]) {
        count += rounded(table.tensors()[parameter].numel(), kUnit);
        of[parameter] = unit;
      }
      const auto item = static_cast<int64_t>(table.tensors()[plan[unit].front()].element_size());
      elements.push_back(rounded(count, kUnit * parts));
      sizes.push_back(elements.back() * item);
      members.push_back(static_cast<int64_t>(plan[unit].size()));
    }
  }
  [[nodiscard]] int64_t all() const {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  }
  /// Bytes of wholes of this type; unset: the parameters'.
  [[nodiscard]] std::vector<int64_t> sizes_in(std::optional<at::ScalarType> type) const {
    std::vector<int64_t> bytes = sizes;
    for (std::size_t unit = 0; type && unit < bytes.size(); ++unit) {
      bytes[unit] = elements[unit] * static_cast<int64_t>(c10::elementSize(*type));
    }
    return bytes;
  }
};

/// A step, moment by moment.
class Timeline final {
 public:
  Timeline(const torch::nn::Module& module,
           const engine::StepMemory& step,
           const EstimateOptions& options)
      : module_(module), table_(module), step_(step), options_(options) {
    for (const auto& buffer : module.buffers()) {
      estimate_.buffers += static_cast<int64_t>(buffer.nbytes());
    }
    for (const auto& parameter : module.parameters()) {
      if (!parameter.requires_grad()) {
        const bool halved = types() != nullptr && parameter.scalar_type() == at::kFloat;
        estimate_.parameters += static_cast<int64_t>(parameter.nbytes()) / (halved ? 2 : 1);
      }
    }
  }

  MemoryEstimate run() {
    keep();
    constexpr int kSteps = 3;  // from the third on they are alike
    for (int i = 0; i < kSteps; ++i) {
      most_ = 0;
      for (int64_t pass = 0; pass < options_.micro_batches; ++pass) {
        passed_ = pass > 0;
        reduces_ = pass + 1 == options_.micro_batches;
        forward();
        backward();
      }
      end_step();
    }
    estimate_.to_come = is_alone() ? made_ - there_ : 0;
    return estimate_;
  }

 private:
  /// Types where parameters have masters; else nullptr.
  [[nodiscard]] const MixedPrecision* types() const {
    const std::optional<ShardOptions>& shard = options_.wrapping.shard;
    return shard && shard->mixed_precision ? &*shard->mixed_precision : nullptr;
  }
  /// Whether gradients come and go with each step, for nothing is reduced.
  [[nodiscard]] bool is_alone() const {
    return options_.ranks == 1 && types() == nullptr && options_.virtual_ranks < 2;
  }
  [[nodiscard]] bool divides() const {
    return options_.wrapping.shard.has_value() && (options_.ranks > 1 || types() != nullptr);
  }
  /// What is held always.
  void keep() {
    const auto ranks = static_cast<int64_t>(options_.ranks);
    const int64_t whole = ddp::aligned_bytes(table_.tensors());
    if (divides()) {
      const ShardOptions& shard = *options_.wrapping.shard;
      const int64_t degree = shard.degree_of(options_.ranks);
      const ddp::BucketPlan plan = sharded::plan_units(module_, table_, shard);
      units_.emplace(plan, table_, options_.ranks);
      const bool in_files = shard.offload.has_value();
      const std::vector<int64_t> wholes =
          units_->sizes_in(types() == nullptr ? std::nullopt : std::optional(types()->param_dtype));
      estimate_.parameters += in_files && types() != nullptr ? 0 : units_->all() / degree;
      if (!options_.wrapping.shared_memory) {
        values_.emplace(wholes,
                        shard.reshard_after_forward ? static_cast<std::size_t>(shard.kept)
                                                    : std::numeric_limits<std::size_t>::max(),
                        true);
      } else if (types() != nullptr) {  // beside the masters
        estimate_.parameters += std::accumulate(wholes.begin(), wholes.end(), int64_t{0}) / degree;
      }
      scatter();
      estimate_.state = in_files ? 0 : estimate_.state;
      has_copies_ = degree < ranks;
    } else if (ranks > 1 && (options_.scatter_gradients || options_.divide_state)) {
      std::vector<std::size_t> order(table_.size());
      std::iota(order.rbegin(), order.rend(), std::size_t{0});
      units_.emplace(ddp::plan_buckets(table_.tensors(),
                                       order,
                                       {.first_bytes = options_.wrapping.first_bucket_bytes,
                                        .bytes = options_.wrapping.bucket_cap_bytes}),
                     table_,
                     options_.ranks);
      estimate_.parameters += units_->all();
      if (options_.scatter_gradients) {
        scatter();
      } else {
        estimate_.gradients = units_->all();
        estimate_.state = options_.states * units_->all() / ranks;
      }
    } else {
      estimate_.parameters += whole;
      estimate_.gradients = is_alone() ? 0 : whole;  // alone they come one by one
      estimate_.state =
          options_.states * whole / (ranks > 1 && options_.wrapping.shared_memory ? ranks : 1);
    }
    estimate_.waiting = (units_ ? units_->all() : whole) * nodes_in_memory();
  }
  /// Of the process that has most of them.
  [[nodiscard]] int64_t nodes_in_memory() const {
    const int64_t leaves = options_.virtual_ranks > 0 ? options_.virtual_ranks : options_.ranks;
    const auto deal = comm::LeafDeal::in_ranges(leaves, options_.ranks);
    int64_t most = 0;
    for (int rank = 0; rank < options_.ranks; ++rank) {
      most = std::max(most, ddp::LeafSums::nodes_in_memory(deal, rank, types() != nullptr));
    }
    return most;
  }
  void scatter() {
    reduced_ =
        units_->sizes_in(types() == nullptr ? std::nullopt : std::optional(types()->reduces_in()));
    gradients_.emplace(reduced_, 1, false);
    estimate_.gradients = units_->all() / options_.ranks;
    estimate_.state = options_.states * units_->all() / options_.ranks;
  }

  void forward() {
    if (values_) {
      values_->begin_sequence();
    }
    kept_ = 0;
    made_ = 0;
    for (const PartMemory& part : step_) {
      use(part.parameters);
      for (const StepMoment& moment : part.forward) {
        look(part, moment, "forward");
      }
      kept_ += part.kept;
    }
  }

  void backward() {
    missing_ = units_ ? units_->members : std::vector<int64_t>();
    next_ = settled_ = 0;
    for (auto part = step_.rbegin(); part != step_.rend(); ++part) {
      kept_ -= part->kept;
      use_reversed(part->used_again);
      for (std::size_t i = 0; i < part->backward.size(); ++i) {
        if (i == 1) {
          open(part->learning);
        }
        look(*part, part->backward[i], "backward");
      }
      open(part->learning);
      complete(part->learning);
    }
  }

  void end_step() {
    const int64_t before = pools();
    settled_ = next_;
    if (gradients_) {
      gradients_->drop_all();
    }
    if (values_) {
      values_->drop_all();
    }
    const bool alone = is_alone();
    if (alone) {
      estimate_.gradients = made_;
      estimate_.state = options_.states * made_;
    }
    estimate_.room = pools();
    if (const int64_t then = alone ? made_ : before; then > most_) {
      note(0, alone ? made_ : 0, "the optimizer's step");
    }
  }

  void look(const PartMemory& part, const StepMoment& moment, const char* where) {
    const int64_t whole = passed_ ? ddp::aligned_bytes(table_.tensors()) : made_ + moment.gradients;
    const int64_t gradients = is_alone() ? whole : 0;
    const int64_t now = kept_ + moment.bytes + pools() + gradients + of_passes();
    if (now > most_) {
      most_ = now;
      note(kept_ + moment.bytes, gradients, fmt::format("{} of {}", where, part.name));
    }
  }
  void note(int64_t activations, int64_t gradients, std::string moment) {
    estimate_.gathered = values_ ? values_->bytes() : 0;
    estimate_.reduced = (gradients_ ? gradients_->bytes() + copies() : 0) + of_passes();
    estimate_.activations = activations;
    estimate_.moment = std::move(moment);
    there_ = gradients;
  }

  /// Gradients that passes have summed, outside of buckets until the last pass brings them in.
  [[nodiscard]] int64_t of_passes() const {
    if (options_.micro_batches == 1 || is_alone()) {
      return 0;
    }
    const int64_t before = passed_ ? ddp::aligned_bytes(table_.tensors()) : 0;
    const int64_t now = reduces_ ? before - made_ : std::max(before, made_);
    return types() == nullptr ? now : now / 2;  // as the parameters, of 16 bits
  }
  /// Bytes of wholes and of memory for them, with copies of those that are reduced in another
  /// order.
  [[nodiscard]] int64_t pools() const {
    return (values_ ? values_->bytes() : 0) + (gradients_ ? gradients_->bytes() + copies() : 0);
  }
  [[nodiscard]] int64_t copies() const {
    int64_t all = 0;
    for (std::size_t unit = settled_; has_copies_ && unit < next_; ++unit) {
      all += reduced_[unit];
    }
    return all;
  }

  /// Parameters whose names are among these, in their order.
  [[nodiscard]] std::vector<std::size_t> named(const std::vector<std::string>& names) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < table_.size(); ++i) {
      const std::string& name = table_.name(i);
      if (std::ranges::any_of(names, [&](const std::string& each) {
            return each.empty() || name == each || (each.ends_with(".") && name.starts_with(each));
          })) {
        found.push_back(i);
      }
    }
    return found;
  }
  void use(const std::vector<std::string>& names) {
    for (const std::size_t parameter : named(names)) {
      if (values_) {
        values_->use(units_->of[parameter]);
      }
    }
  }
  void use_reversed(const std::vector<std::string>& names) {
    const std::vector<std::size_t> parameters = named(names);
    for (auto each = parameters.rbegin(); values_ && each != parameters.rend(); ++each) {
      values_->use(units_->of[*each]);
    }
  }
  void open(const std::vector<std::string>& names) {
    for (const std::size_t parameter : named(names)) {
      if (gradients_ && reduces_) {
        gradients_->take(units_->of[parameter]);
      }
    }
  }
  /// Reduces what is complete, in the order of the plan. What was begun before has ended by then.
  void complete(const std::vector<std::string>& names) {
    for (const std::size_t parameter : named(names)) {
      made_ += ddp::aligned_bytes(table_.tensors()[parameter]);
      if (gradients_ && reduces_) {
        --missing_[units_->of[parameter]];
      }
    }
    while (gradients_ && next_ < missing_.size() && missing_[next_] == 0) {
      ++next_;
      for (; settled_ + 1 < next_; ++settled_) {
        gradients_->drop(settled_);
      }
    }
  }

  const torch::nn::Module& module_;
  const ddp::ParameterTable table_;
  const engine::StepMemory& step_;
  const EstimateOptions& options_;
  std::optional<PlannedUnits> units_{};
  std::optional<PoolOfSizes> values_{}, gradients_{};
  std::vector<int64_t> reduced_{};  // bytes of whole gradients
  bool has_copies_ = false;
  MemoryEstimate estimate_{};
  int64_t kept_ = 0;      // for backward, by the parts before
  int64_t made_ = 0;      // gradients in this step
  bool passed_ = false;   // a pass of the update is over, and its gradients are there
  bool reduces_ = false;  // in this pass
  int64_t most_ = 0;
  int64_t there_ = 0;                   // gradients at that moment, of a process alone
  std::vector<int64_t> missing_{};      // gradients of each bucket
  std::size_t next_ = 0, settled_ = 0;  // buckets: to be sent, reduced
};

}  // namespace

MemoryEstimate estimate_memory(const torch::nn::Module& module,
                               const engine::StepMemory& step,
                               const EstimateOptions& options) {
  options.wrapping.validate();
  ARGOSY_CHECK(options.ranks > 0 && options.states >= 0 && options.virtual_ranks >= 0 &&
                   options.micro_batches > 0,
               kEstimate,
               "expected ranks and micro_batches of 1 or more, virtual_ranks and states of 0 or "
               "more, got {}, {}, {} and {}",
               options.ranks,
               options.micro_batches,
               options.virtual_ranks,
               options.states);
  return Timeline(module, step, options).run();
}

}  // namespace argosy::parallel
