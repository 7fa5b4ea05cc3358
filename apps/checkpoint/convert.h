#pragma once

#include <string>
#include <vector>

namespace argosy::apps {

/// `argosy checkpoint convert` and `hash` of what only libtorch's side reads; `args` follow the
/// word.
int checkpoint_convert(const std::vector<std::string>& args);
int checkpoint_hash(const std::vector<std::string>& args);

}  // namespace argosy::apps
