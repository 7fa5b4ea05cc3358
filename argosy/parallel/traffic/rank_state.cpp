#include "argosy/parallel/traffic/rank_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "argosy/base/error.h"
#include "argosy/base/text.h"
#include "argosy/comm/collectives.h"
#include "argosy/engine/parts.h"

namespace argosy::parallel::traffic {
namespace {

void check_shape(const at::Tensor& saved,
                 const std::vector<int64_t>& expected,
                 const std::string& what) {
  if (saved.sizes() != at::IntArrayRef(expected)) {
    throw CheckpointError(
        "parallel.traffic",
        fmt::format("{}: expected {}, got {}. State of a rank's own goes with its rank: resume "
                    "with as many processes as saved it, or begin a new training with its weights",
                    what,
                    text::shape(expected),
                    text::shape(saved.sizes())),
        {.key = what});
  }
}

}  // namespace

at::Tensor rows_of_ranks(const at::Tensor& own, const comm::Group& group) {
  const int64_t elements = own.numel();
  const at::Tensor like = at::empty({group.size(), elements}, own.options().device(at::kMeta));
  const IndexRange row{group.rank() * elements, (group.rank() + 1) * elements};
  const at::Tensor flat = own.detach().view({-1});
  return engine::divided_tensor(like, {.range = row, .elements = flat}, [flat, group] {
    return at::cat(comm::all_gather(flat, group)).view({group.size(), -1});
  });
}

void take_row(const at::Tensor& own,
              const at::Tensor& saved,
              const comm::Group& group,
              const std::string& what) {
  const at::NoGradGuard no_grad;
  const int64_t elements = own.numel();
  check_shape(saved, {group.size(), elements}, what);
  const IndexRange row{group.rank() * elements, (group.rank() + 1) * elements};
  own.detach().copy_(engine::elements_like(saved, saved, row).view(own.sizes()));
}

void take_whole(const at::Tensor& own, const at::Tensor& saved, const std::string& what) {
  const at::NoGradGuard no_grad;
  check_shape(saved, own.sizes().vec(), what);
  own.detach().copy_(engine::values_of(saved));
}

engine::StateDict& entries_of(optim::OptimizerState& state, std::string_view name) {
  const auto found =
      std::ranges::find(state.parameters, name, &std::pair<std::string, engine::StateDict>::first);
  if (found != state.parameters.end()) {
    return found->second;
  }
  return state.parameters.emplace_back(std::string(name), engine::StateDict()).second;
}

std::map<std::string, engine::StateDict> taken_out(optim::OptimizerState& state,
                                                   std::string_view prefix) {
  std::map<std::string, engine::StateDict> taken;
  for (auto& [parameter, entries] : state.parameters) {
    engine::StateDict rest;
    for (const auto& [name, tensor] : entries) {
      if (name.starts_with(prefix)) {
        taken[parameter].set(name.substr(prefix.size()), tensor);
      } else {
        rest.set(name, tensor);
      }
    }
    entries = std::move(rest);
  }
  std::erase_if(state.parameters, [&](const auto& each) {
    return each.second.empty() && taken.contains(each.first);
  });
  return taken;
}

at::Tensor count_tensor(int64_t count) {
  return at::full({}, count, at::kLong);
}

int64_t count_in(const engine::StateDict& entries, std::string_view name) {
  return entries.at(name).item<int64_t>();
}

}  // namespace argosy::parallel::traffic
