#pragma once

#include <string>
#include <string_view>

namespace argosy::datatool {

/// A command's output may take the place of an earlier one, never of a file of another kind: a
/// forgotten word must not cost a data set. `magic`: what files of `kind` ("a record file") begin
/// with. Errors: UsageError when `path` is a file with another beginning or that cannot be
/// read, a folder, a pipe or a device.
void check_output(const char* where,
                  const std::string& path,
                  std::string_view magic,
                  const std::string& kind);

}  // namespace argosy::datatool
