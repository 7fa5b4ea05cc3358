#include "argosy/parallel/ddp/drift_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/hash.h>

#include "argosy/base/check.h"
#include "argosy/base/even_part.h"
#include "argosy/base/fingerprint.h"
#include "argosy/comm/collectives.h"
#include "argosy/engine/cpu.h"
#include "argosy/optim/grad_scaler.h"
#include "argosy/parallel/ddp/elements.h"
#include "argosy/parallel/ddp/verify.h"

namespace argosy::parallel::ddp {
namespace {

constexpr size_t kNamed = 5;  // parameters in an error
constexpr const char* kAdvice =
    "All ranks must do the same between two backward passes: set the same rates, clip alike, "
    "change weights alike. Ranks that are to differ need .check_drift = false";

}  // namespace

DriftCheck::DriftCheck(const ParameterTable& table,
                       const comm::Group& group,
                       std::chrono::milliseconds timeout)
    : table_(table), group_(group), timeout_(timeout), bounds_(at::zeros({3}, at::kLong)) {}

void DriftCheck::watch(const std::shared_ptr<optim::OptimizerImpl>& optimizer) {
  std::erase_if(optimizers_, [&](const std::weak_ptr<optim::OptimizerImpl>& each) {
    const std::shared_ptr<optim::OptimizerImpl> known = each.lock();
    return known == nullptr || optim::have_parameters_in_common(*known, *optimizer);
  });
  optimizers_.push_back(optimizer);
}

comm::Work DriftCheck::start(const transport::TrainingPlace& place,
                             const MicroBatch& micro_batch,
                             bool flag) {
  micro_batch_ = micro_batch;
  const uint64_t all =
      c10::hash_combine(digest_of_options(), digest_of_parameters(place.update % kParts));
  update_ = place.update;
  auto* const bounds = bounds_.data_ptr<int64_t>();
  bounds[0] = static_cast<int64_t>(all);
  bounds[1] = ~bounds[0];
  bounds[2] = flag ? 1 : 0;
  return comm::all_reduce_async(
      bounds_, group_, {.op = comm::ReduceOp::kMax, .timeout = timeout_, .place = place});
}

void DriftCheck::finish() const {
  const auto* const bounds = bounds_.data_ptr<int64_t>();
  if (bounds[0] == ~bounds[1]) {
    return;
  }
  compare_options();
  compare_parameters();
  throw UsageError(
      "parallel.ddp",
      fmt::format("before update {} the ranks differ in their parameters. {}", update_, kAdvice));
}

uint64_t DriftCheck::digest_of_options() const {
  Fingerprint all;
  all.add(micro_batch_.epoch);
  all.add(micro_batch_.update);
  all.add(optim::loss_scale_of_thread().value_or(0));
  for (const std::weak_ptr<optim::OptimizerImpl>& each : optimizers_) {
    if (const std::shared_ptr<optim::OptimizerImpl> optimizer = each.lock()) {
      for (const optim::GroupInfo& group : optimizer->groups()) {
        all.add(static_cast<float>(group.lr));  // libraries of mathematics differ beyond
        all.add(group.weight_decay.kind);
        all.add(group.weight_decay.coeff);
      }
    }
  }
  return all.value();
}

uint64_t DriftCheck::digest_of_parameters(int64_t part) const {
  uint64_t all = 0;
  for (const at::Tensor& parameter : table_.tensors()) {
    all = c10::hash_combine(all, bits_of_samples(parameter).value_or(0));
    const IndexRange range = even_part(parameter.numel(), kParts, part);
    if (range.size() > 0) {
      all = c10::hash_combine(all, bits_of(parameter, range));
    }
  }
  return all;
}

void DriftCheck::compare_options() const {
  Signature mine;
  if (micro_batch_.update >= 0) {
    mine.lines.push_back(
        {"batch", fmt::format("{} of epoch {}", micro_batch_.update, micro_batch_.epoch)});
  }
  if (const std::optional<double> scale = optim::loss_scale_of_thread()) {
    mine.lines.push_back({"scale of the loss", fmt::format("{}", *scale)});
  }
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    const std::shared_ptr<optim::OptimizerImpl> optimizer = optimizers_[i].lock();
    if (optimizer == nullptr) {
      continue;
    }
    const std::string whose = optimizers_.size() > 1 ? fmt::format(" of optimizer {}", i) : "";
    for (const auto& [name, value] : optim::rates_in_words(optimizer->groups())) {
      mine.lines.push_back({name + whose, value});
    }
    for (const auto& [name, value] : optimizer->choices()) {
      mine.lines.push_back({name + whose, value});
    }
  }
  verify_equal(mine,
               group_,
               timeout_,
               {.what = fmt::format("before update {} options differ", update_),
                .advice = std::string(kAdvice) + "."});
}

void DriftCheck::compare_parameters() const {
  const at::NoGradGuard no_grad;
  std::string hashes;
  for (const at::Tensor& parameter : table_.tensors()) {
    hashes += fmt::format("{:016x}", bits_of(parameter));
  }
  const auto all = comm::all_gather_object(hashes, group_, {.timeout = timeout_});
  std::vector<size_t> odd;
  for (size_t i = 0; i < table_.size(); ++i) {
    const auto differs = [&](const std::string& theirs) {
      return theirs.compare(i * 16, 16, all.front(), i * 16, 16) != 0;
    };
    if (std::ranges::any_of(all, differs)) {
      odd.push_back(i);
    }
  }
  Signature mine;
  for (size_t k = 0; k < std::min(kNamed, odd.size()); ++k) {
    const at::Tensor& parameter = table_.tensors()[odd[k]];
    const at::Tensor first = parameter.detach().clone();
    comm::broadcast(first, group_, {.timeout = timeout_});
    constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
    const at::Tensor place =
        at::tensor({first_difference(first, parameter).value_or(kNone)}, at::kLong);
    comm::all_reduce(place, group_, {.op = comm::ReduceOp::kMin, .timeout = timeout_});
    if (const auto at = place.item<int64_t>(); at != kNone) {
      mine.lines.push_back(
          {element_name(table_.name(odd[k]), parameter, at), element_value(parameter, at)});
    }
  }
  mine.lines.push_back({"operators", engine::kernels_in_use()});  // a frequent cause
  verify_equal(
      mine,
      group_,
      timeout_,
      {.what = fmt::format(
           "before update {} {} of {} parameters differ", update_, odd.size(), table_.size()),
       .advice = std::string(kAdvice) + "."});
}

}  // namespace argosy::parallel::ddp
