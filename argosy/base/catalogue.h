#pragma once

#include <string>
#include <string_view>

namespace argosy {

/// Returns the folder with an installed copy's docs/. It is $ARGOSY_DOCS, which the launcher sets.
/// Else it is share/doc/argosy beside the bin/ of this program, or beside the bin/ in which $PATH
/// finds `argosy`. Returns "" if there is none, as in the source tree.
[[nodiscard]] const std::string& docs_folder();

/// Returns where a page is read, below docs_folder(): docs_page("docs/guides/data.md").
[[nodiscard]] std::string docs_page(std::string_view page);

/// Returns the address of a section of the catalogue, below docs_folder():
/// "docs/guides/errors.md#rank-failed".
[[nodiscard]] std::string catalogue_section(std::string_view section);

/// Returns the section that explains a message: catalogue_section("vision.idx") for "[vision.idx]
/// …". "" when the message does not begin with a room. tests/house/check_catalogue.sh checks that
/// the anchor exists.
[[nodiscard]] std::string catalogue_entry(std::string_view message);

}  // namespace argosy
