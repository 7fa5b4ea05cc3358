#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "argosy/base/error.h"

// Internal to the room.
namespace argosy::checkpoint {

/// Converts an error of a file's format to one of the checkpoint in that file.
[[noreturn]] inline void throw_as_checkpoint(std::string_view where,
                                             const std::string& path,
                                             const DataError& error) {
  std::string_view text = error.what();  // "[formats.archive] path: what"
  text.remove_prefix(std::min(text.size(), text.find("] ") + 2));
  if (text.starts_with(path)) {
    text.remove_prefix(path.size());
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(": ")));
  }
  throw CheckpointError(where, text, {path, {}});
}

}  // namespace argosy::checkpoint
