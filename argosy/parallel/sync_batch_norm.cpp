#include "argosy/parallel/sync_batch_norm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <numeric>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <torch/nn/modules/container/sequential.h>

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
  /// Few numbers: the bits of all transports cost nothing.
  void sum(const at::Tensor& values) override { comm::all_reduce(values, group_, {.exact = true}); }

 private:
  comm::Group group_;
};

/// In the place of one of libtorch's norms, with its very parameters: an optimizer that has them
/// already goes on updating them.
template <size_t D>
class Replacement final : public engine::detail::BatchNormBase<D, Replacement<D>> {
 public:
  template <typename Norm>
  explicit Replacement(const Norm& norm)
      : engine::detail::BatchNormBase<D, Replacement<D>>(norm.options) {
    take("weight", this->weight, norm.weight);
    take("bias", this->bias, norm.bias);
    share(this->running_mean, norm.running_mean);
    share(this->running_var, norm.running_var);
    share(this->num_batches_tracked, norm.num_batches_tracked);
    this->train(norm.is_training());
  }

 private:
  void take(const char* name, at::Tensor& member, const at::Tensor& theirs) {
    member = theirs;
    this->parameters_[name] = theirs;
  }
  /// Libtorch lets nobody exchange a buffer: it is another tensor in the same memory.
  static void share(at::Tensor& member, const at::Tensor& theirs) {
    if (member.defined()) {
      member.set_data(theirs);
    }
  }
};

/// One of libtorch's norms among the modules of a Sequential.
struct Item {
  torch::nn::SequentialImpl* holder = nullptr;
  size_t index = 0;
  std::string key{};
};

struct Found {
  std::vector<const engine::SyncedNorm*> norms{};
  std::vector<Item> items{};
  std::vector<std::string> fixed{};  // names of norms that their module calls by its own holder
};

bool is_libtorchs_norm(const torch::nn::Module& module) {
  return module.as<torch::nn::BatchNorm1dImpl>() != nullptr ||
         module.as<torch::nn::BatchNorm2dImpl>() != nullptr ||
         module.as<torch::nn::BatchNorm3dImpl>() != nullptr;
}

/// A class of the user's own that derives from one may do something else.
bool is_replaceable(const torch::nn::Module& norm) {
  return typeid(norm) == typeid(torch::nn::BatchNorm1dImpl) ||
         typeid(norm) == typeid(torch::nn::BatchNorm2dImpl) ||
         typeid(norm) == typeid(torch::nn::BatchNorm3dImpl);
}

void find_norms(torch::nn::Module& module, const std::string& name, Found& found) {
  if (const auto* norm = dynamic_cast<const engine::SyncedNorm*>(&module)) {
    found.norms.push_back(norm);
  }
  auto* const holder = module.as<torch::nn::SequentialImpl>();
  size_t index = 0;
  for (const auto& child : module.named_children()) {
    const std::string path = name.empty() ? child.key() : name + "." + child.key();
    if (!is_libtorchs_norm(*child.value())) {
      find_norms(*child.value(), path, found);
    } else if (holder != nullptr && is_replaceable(*child.value()) && index < holder->size() &&
               holder->ptr(index) == child.value()) {
      found.items.push_back({holder, index, child.key()});
    } else {
      found.fixed.push_back(path);
    }
    ++index;
  }
}

template <size_t D, typename Norm>
torch::nn::AnyModule replacement_of(const Norm& norm, Found& found) {
  auto made = std::make_shared<Replacement<D>>(norm);
  found.norms.push_back(made.get());
  return torch::nn::AnyModule(std::move(made));
}

void replace(Found& found) {
  std::unordered_map<const torch::nn::Module*, torch::nn::AnyModule> made;  // one may stand twice
  std::vector<std::shared_ptr<torch::nn::Module>> replaced;  // no address comes again meanwhile
  for (const Item& item : found.items) {
    const std::shared_ptr<torch::nn::Module> norm = item.holder->ptr(item.index);
    if (!is_libtorchs_norm(*norm)) {
      continue;  // its Sequential stands twice
    }
    replaced.push_back(norm);
    torch::nn::AnyModule& one = made[norm.get()];
    if (!one.is_empty()) {
      // made for another place
    } else if (const auto* d1 = norm->as<torch::nn::BatchNorm1dImpl>()) {
      one = replacement_of<1>(*d1, found);
    } else if (const auto* d2 = norm->as<torch::nn::BatchNorm2dImpl>()) {
      one = replacement_of<2>(*d2, found);
    } else {
      one = replacement_of<3>(*norm->as<torch::nn::BatchNorm3dImpl>(), found);
    }
    *(item.holder->begin() + static_cast<ptrdiff_t>(item.index)) = one;
    (void)item.holder->replace_module(item.key, one.ptr());
  }
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
  ARGOSY_CHECK(!is_libtorchs_norm(module),
               "parallel.convert_sync_batchnorm",
               "the module itself is libtorch's norm, which cannot be changed from outside. Use "
               "parallel::SyncBatchNorm2d (1d, 3d) in its place");
  Found found;
  // Const as libtorch's modules are, whose const holders give them to be changed.
  find_norms(const_cast<torch::nn::Module&>(module), "", found);
  ARGOSY_CHECK(found.fixed.empty(),
               "parallel.convert_sync_batchnorm",
               "libtorch's norms can be replaced inside a Sequential, but these are called by "
               "members of their modules: {}. Declare those members as parallel::SyncBatchNorm2d "
               "(1d, 3d) instead of torch::nn::BatchNorm2d; names and weights stay the same",
               fmt::join(found.fixed, ", "));
  ARGOSY_CHECK(!found.norms.empty() || !found.items.empty(),
               "parallel.convert_sync_batchnorm",
               "expected a module with batch norms, got one without");
  if (group.size() == 1) {
    return;
  }
  replace(found);
  const auto peers = c10::make_intrusive<Ranks>(own_group(group));
  for (const engine::SyncedNorm* norm : found.norms) {
    norm->set_peers(peers);
  }
}

}  // namespace argosy::parallel
