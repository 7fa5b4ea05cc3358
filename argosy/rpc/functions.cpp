#include "argosy/rpc/functions.h"

#include "argosy/base/check.h"

namespace argosy::rpc {

void Functions::add(const std::string& name, Served function) {
  ARGOSY_CHECK(!name.empty(), "rpc.serve", "a function needs a name");
  ARGOSY_CHECK(!function.options.quick || function.sends != Sends::kStream,
               "rpc.serve",
               "function \"{}\" sends a stream, so it cannot be quick: it waits for its reader",
               name);
  auto served = std::make_shared<const Served>(std::move(function));
  const std::lock_guard lock(state_->mutex);
  const bool added = state_->all.try_emplace(name, std::move(served)).second;
  ARGOSY_CHECK(added, "rpc.serve", "a function \"{}\" is served already", name);
}

std::shared_ptr<const Functions::Served> Functions::find(const std::string& name) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->all.find(name);
  return found == state_->all.end() ? nullptr : found->second;
}

std::vector<std::string> Functions::names() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<std::string> names;
  for (const auto& [name, served] : state_->all) {
    names.push_back(name);
  }
  return names;
}

}  // namespace argosy::rpc
