#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace argosy::train::detail {

/// Prepares a log for a training that begins at `step`, so that each step stands there once.
///
/// From a beginning (step 0) the file that is there is another training's: it is renamed to
/// `path`.old, in the place of an older one. Otherwise lines beyond `step`, which a run that was
/// killed wrote after its last checkpoint, are taken out, and so is a last one without its end.
/// `step_of`: nullopt for lines that say no step; they stay, as lines that are no record do.
/// The file is whole at any time: what stays is written beside it, then renamed.
/// Errors: DataError "train.log" with path.
void keep_lines_until(const std::string& path,
                      int64_t step,
                      const std::function<std::optional<int64_t>(const std::string&)>& step_of);

}  // namespace argosy::train::detail
