#include "argosy/parallel/sync_batch_norm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <string>
#include <vector>

#include <ATen/Functions.h>

#include "argosy/base/check.h"
#include "argosy/comm/collectives.h"

namespace argosy::parallel {
namespace {

class Ranks final : public engine::NormPeers {
 public:
  explicit Ranks(comm::Group group) : group_(std::move(group)) {}

  at::Tensor gather(const at::Tensor& mine) override {
    return at::stack(comm::all_gather(mine, group_));
  }
  void sum(const at::Tensor& values) override { comm::all_reduce(values, group_); }

 private:
  comm::Group group_;
};

bool is_libtorchs_norm(const torch::nn::Module& module) {
  return module.as<torch::nn::BatchNorm1dImpl>() != nullptr ||
         module.as<torch::nn::BatchNorm2dImpl>() != nullptr ||
         module.as<torch::nn::BatchNorm3dImpl>() != nullptr;
}

/// A group for the norms alone: their order among DistributedDataParallel's reductions, which run
/// meanwhile, does not matter then.
comm::Group own_group(const comm::Group& group) {
  std::vector<int> ranks(static_cast<size_t>(group.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return group.new_group(ranks);
}

}  // namespace

void convert_sync_batchnorm(const torch::nn::Module& module, const comm::Group& group) {
  std::vector<const engine::SyncedNorm*> norms;
  std::vector<std::string> left;
  const auto look_at = [&](const std::string& name, const torch::nn::Module& one) {
    if (const auto* norm = dynamic_cast<const engine::SyncedNorm*>(&one)) {
      norms.push_back(norm);
    } else if (is_libtorchs_norm(one)) {
      left.push_back(name.empty() ? "the module itself" : name);
    }
  };
  look_at("", module);
  for (const auto& child : module.named_modules("", /*include_self=*/false)) {
    look_at(child.key(), *child.value());
  }
  ARGOSY_CHECK(left.empty(),
               "parallel.convert_sync_batchnorm",
               "expected norms that can take statistics over ranks, got libtorch's: {}. Write "
               "parallel::SyncBatchNorm2d (1d, 3d) in place of torch::nn::BatchNorm2d",
               fmt::join(left, ", "));
  ARGOSY_CHECK(!norms.empty(),
               "parallel.convert_sync_batchnorm",
               "expected a module with batch norms, got one without");
  if (group.size() == 1) {
    return;
  }
  const auto peers = c10::make_intrusive<Ranks>(own_group(group));
  for (const engine::SyncedNorm* norm : norms) {
    norm->set_peers(peers);
  }
}

}  // namespace argosy::parallel
