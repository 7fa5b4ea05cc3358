#pragma once

#include <string>
#include <string_view>

namespace argosy {

/// The folder with an installed copy's docs/: $ARGOSY_DOCS, which the launcher sets, else
/// share/doc/argosy beside the bin/ that this program is in, else beside the one where $PATH has
/// `argosy`. "": there is none, as in the source tree.
[[nodiscard]] const std::string& docs_folder();

/// The address of a section of the catalogue: "docs/guides/errors.md#rank-failed", below
/// docs_folder().
[[nodiscard]] std::string catalogue_section(std::string_view section);

/// Where a message of ours is explained: catalogue_section("vision.idx") for "[vision.idx] …"; "":
/// it does not begin with a room. tests/house/check_catalogue.sh sees that the anchor is there.
[[nodiscard]] std::string catalogue_entry(std::string_view message);

}  // namespace argosy
