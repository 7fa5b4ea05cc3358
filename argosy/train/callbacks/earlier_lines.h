#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace argosy::train::detail {

/// Prepares a log for a training that begins at `step`, so that each step appears in it once.
///
/// At step 0 an existing file belongs to another training: it is renamed to `path`.old and replaces
/// an older one. At a later step, lines beyond `step`, which a killed run wrote after its last
/// checkpoint, are removed, and so is an incomplete last line.
/// `step_of` returns nullopt for a line without a step. Such lines stay, and so do lines that are
/// no record.
/// The file is whole at any time: the rest is written beside it, then renamed.
/// Errors: DataError "train.log" with path.
void keep_lines_until(const std::string& path,
                      int64_t step,
                      const std::function<std::optional<int64_t>(const std::string&)>& step_of);

}  // namespace argosy::train::detail
