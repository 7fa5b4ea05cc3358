#include "argosy/parallel/traffic/rank_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "argosy/base/check.h"
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
        fmt::format("{}: expected {}, got {}. State of a virtual rank's own goes with it: resume "
                    "with as many virtual ranks as saved it, or begin a new training with its "
                    "weights",
                    what,
                    text::shape(expected),
                    text::shape(saved.sizes())),
        {.key = what});
  }
}

}  // namespace

Deal one_each(const comm::Group& group) {
  return std::make_shared<const comm::LeafDeal>(comm::LeafDeal::one_each(group.size()));
}

IndexRange leaves_of(const comm::LeafDeal& deal, int rank) {
  return even_part(deal.leaves(), deal.ranks(), rank);
}

void check_can_deal(const std::string& way,
                    const comm::LeafDeal& before,
                    const comm::LeafDeal& now,
                    bool remembers) {
  ARGOSY_CHECK(!remembers || before.leaves() == now.leaves(),
               "parallel.traffic",
               "{} remembers something of each of {} virtual ranks, and {} were asked for. Go on "
               "with as many, or begin a new training",
               way,
               before.leaves(),
               now.leaves());
}

at::Tensor rows_of_ranks(const at::Tensor& own, const Deal& deal, const comm::Group& group) {
  const IndexRange mine = leaves_of(*deal, group.rank());
  const int64_t elements = own.size(1);
  const at::Tensor like = at::empty({deal->leaves(), elements}, own.options().device(at::kMeta));
  const at::Tensor rows = own.detach();
  return engine::divided_tensor(
      like,
      {.range = {mine.begin * elements, mine.end * elements}, .elements = rows.view({-1})},
      [rows, group] { return comm::all_gather_uneven(rows, group); });
}

void take_rows(const at::Tensor& own,
               const at::Tensor& saved,
               const Deal& deal,
               const comm::Group& group,
               const std::string& what) {
  const at::NoGradGuard no_grad;
  const int64_t elements = own.size(1);
  check_shape(saved, {deal->leaves(), elements}, what);
  const IndexRange mine = leaves_of(*deal, group.rank());
  const IndexRange range{mine.begin * elements, mine.end * elements};
  own.detach().copy_(engine::elements_like(saved, saved, range).view(own.sizes()));
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
