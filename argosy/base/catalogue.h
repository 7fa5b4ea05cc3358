#pragma once

#include <string>
#include <string_view>

namespace argosy {

/// Where a message of ours is explained: "docs/guides/errors.md#vision" for "[vision.idx] …"; "":
/// it does not begin with a room.
[[nodiscard]] std::string catalogue_entry(std::string_view message);

}  // namespace argosy
