#include "argosy/optim/assign_groups.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include "argosy/base/check.h"

namespace argosy::optim {
namespace {

/// Does the group want this parameter? Notes which of its wishes were met.
bool claims(const ParamGroup& group,
            const std::string& name,
            const at::Tensor& parameter,
            std::vector<bool>& used) {
  bool claimed = false;
  for (std::size_t i = 0; i < group.names.size(); ++i) {
    if (::fnmatch(group.names[i].c_str(), name.c_str(), 0) == 0) {
      used[i] = claimed = true;
    }
  }
  for (std::size_t i = 0; i < group.params.size(); ++i) {
    if (group.params[i].is_same(parameter)) {
      used[group.names.size() + i] = claimed = true;
    }
  }
  return claimed;
}

}  // namespace

std::vector<std::size_t> assign_groups(const std::string& where,
                                       const engine::NamedTensors& parameters,
                                       const std::vector<ParamGroup>& groups) {
  std::vector<std::size_t> result;
  std::vector<std::vector<bool>> used(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    used[g].assign(groups[g].names.size() + groups[g].params.size(), false);
    ARGOSY_CHECK(!used[g].empty(), where, "group {} names no parameters", g + 1);
  }
  for (const auto& [name, parameter] : parameters) {
    ARGOSY_CHECK(parameter.defined(), where, "{}: the parameter is undefined", name);
    std::size_t& chosen = result.emplace_back(0);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (claims(groups[g], name, parameter, used[g])) {
        ARGOSY_CHECK(chosen == 0 || chosen == g + 1,
                     where,
                     "{}: groups {} and {} both claim this parameter",
                     name,
                     chosen,
                     g + 1);
        chosen = g + 1;
      }
    }
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < used[g].size(); ++i) {
      ARGOSY_CHECK(used[g][i],
                   where,
                   "group {}: no parameter {}. The first of {} is \"{}\".",
                   g + 1,
                   i < groups[g].names.size()
                       ? fmt::format("matches \"{}\"", groups[g].names[i])
                       : fmt::format("is params[{}]", i - groups[g].names.size()),
                   parameters.size(),
                   parameters.front().first);
    }
  }
  return result;
}

}  // namespace argosy::optim
