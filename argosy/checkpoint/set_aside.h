#pragma once

#include <cstdint>
#include <string>

namespace argosy::checkpoint {

/// Moves checkpoints of later steps than `step`, at which a training begins, into a new folder
/// `earlier-<n>` in `folder`, and logs it. They belong to another training, or were damaged and
/// passed over. After the move they neither count among the newest nor are resumed from. Moves only
/// checkpoints that step_name() has named.
void set_aside_later(const std::string& folder, int64_t step);

}  // namespace argosy::checkpoint
