#include "argosy/parallel/recompute_blocks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/sequential.h>

#include "argosy/base/check.h"
#include "argosy/engine/block_calls.h"

namespace argosy::parallel {
namespace {

constexpr const char* kRecomputeBlocks = "parallel.recompute_blocks";

/// Stands in a Sequential's list for one of its children, which is still the one that it has
/// registered.
class RecomputedChild final : public torch::nn::Module {
 public:
  RecomputedChild(torch::nn::AnyModule child, RecomputeOptions options)
      : child_(std::move(child)), options_(std::move(options)) {}

  at::Tensor forward(const at::Tensor& x) {
    auto call = [child = child_](const at::Tensor& y) mutable { return child.forward(y); };
    return recompute(options_, call, x);
  }
  [[nodiscard]] std::shared_ptr<torch::nn::Module> clone(
      const c10::optional<torch::Device>& /*device*/) const override {
    throw UsageError(kRecomputeBlocks,
                     "a model whose blocks are computed again cannot be cloned. Clone it before");
  }

 private:
  torch::nn::AnyModule child_;
  RecomputeOptions options_;
};

/// What can be computed again, in a model.
class Blocks final {
 public:
  explicit Blocks(torch::nn::Module& model) {
    for (const auto& item : model.named_modules()) {
      names_[item.value().get()] = item.key();
    }
    for (const auto& item : model.named_modules()) {
      torch::nn::Module& module = *item.value();
      if (auto* const list = dynamic_cast<torch::nn::SequentialImpl*>(&module)) {
        add(*list, item.key());
      } else if (auto* const caller = dynamic_cast<engine::BlockCalls*>(&module)) {
        add(*caller);
      }
    }
  }

  [[nodiscard]] std::set<std::string> chosen(const std::vector<std::string>& names) const {
    std::set<std::string> found;
    for (const std::string& name : names) {
      const size_t before = found.size();
      for (const auto& [block, choose] : blocks_) {
        if (::fnmatch(name.c_str(), block.c_str(), 0) == 0) {
          found.insert(block);
        }
      }
      ARGOSY_CHECK(
          found.size() > before || is_there(name, found),
          kRecomputeBlocks,
          "\"{}\" is no block that can be computed again without a change of the model. {}",
          name,
          in_words());
    }
    return names.empty() ? outermost() : found;
  }
  void choose(const std::set<std::string>& names, const RecomputeOptions& options) const {
    for (const std::string& name : names) {
      blocks_.at(name)(options);
    }
  }

 private:
  void add(torch::nn::SequentialImpl& list, const std::string& prefix) {
    size_t place = 0;
    for (const auto& child : list.named_children()) {
      torch::nn::AnyModule& entry = *(list.begin() + static_cast<std::ptrdiff_t>(place++));
      blocks_[prefix.empty() ? child.key() : prefix + "." + child.key()] =
          [&entry](const RecomputeOptions& options) {
            if (dynamic_cast<RecomputedChild*>(entry.ptr().get()) == nullptr) {
              entry = torch::nn::AnyModule(std::make_shared<RecomputedChild>(entry, options));
            }
          };
    }
  }
  void add(engine::BlockCalls& caller) {
    const auto chosen = std::make_shared<std::set<const torch::nn::Module*>>();
    for (const auto& block : caller.called_blocks()) {
      blocks_[names_.at(block.get())] = [&caller, chosen, block](const RecomputeOptions& options) {
        chosen->insert(block.get());
        caller.run_blocks_by([chosen, options](const torch::nn::Module& each,
                                               const engine::BlockCalls::Call& call,
                                               const at::Tensor& x) {
          return chosen->contains(&each) ? recompute(options, call, x) : call(x);
        });
      };
    }
  }
  /// Those that are in no other.
  [[nodiscard]] std::set<std::string> outermost() const {
    std::set<std::string> found;
    std::string last = ".";
    for (const auto& [name, choose] : blocks_) {  // a block comes before those in it
      if (!name.starts_with(last + ".")) {
        found.insert(name);
        last = name;
      }
    }
    ARGOSY_CHECK(!found.empty(), kRecomputeBlocks, "the model has no blocks. {}", in_words());
    return found;
  }
  static bool is_there(const std::string& name, const std::set<std::string>& found) {
    return std::ranges::any_of(found, [&](const std::string& each) {
      return ::fnmatch(name.c_str(), each.c_str(), 0) == 0;
    });
  }
  [[nodiscard]] std::string in_words() const {
    std::vector<std::string> names;
    for (const auto& [name, choose] : blocks_) {
      names.push_back(name);
    }
    return fmt::format(
        "Blocks are the children of a torch::nn::Sequential and those of a module that is an "
        "engine::BlockCalls{}. Others, such as those of a ModuleList, are called by a forward of "
        "their own: write parallel::recompute(block, x) there",
        names.empty() ? std::string(": none are here")
                      : fmt::format("; here: {}", fmt::join(names, ", ")));
  }

  std::map<const torch::nn::Module*, std::string> names_{};
  std::map<std::string, std::function<void(const RecomputeOptions&)>> blocks_{};  // by name
};

}  // namespace

void recompute_blocks(torch::nn::Module& module,
                      const std::vector<std::string>& names,
                      const RecomputeOptions& options) {
  const Blocks blocks(module);
  blocks.choose(blocks.chosen(names), options);
}

}  // namespace argosy::parallel
