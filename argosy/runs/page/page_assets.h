#pragma once

#include <string_view>

namespace argosy::runs {

extern const std::string_view kPageCss;
extern const std::string_view kPageJs;

}  // namespace argosy::runs
