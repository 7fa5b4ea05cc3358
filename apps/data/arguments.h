#pragma once

#include <string>
#include <string_view>

namespace argosy::datatool {

/// Checks that a command may write to `path`. Its output may replace an earlier one, but never a
/// file of another kind, because a forgotten word must not cost a data set. Files of `kind` ("a
/// record file") begin with `magic`.
/// Errors: UsageError when `path` is a file with another beginning or that cannot be read, a
/// folder, a pipe or a device.
void check_output(const char* where,
                  const std::string& path,
                  std::string_view magic,
                  const std::string& kind);

}  // namespace argosy::datatool
