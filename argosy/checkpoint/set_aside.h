#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

namespace argosy::checkpoint {

/// Moves checkpoints of later steps than `step`, at which a training begins, into a new folder
/// `earlier-<n>` in `folder`, and logs it. They belong to another training, or were damaged and
/// passed over. After the move they neither count among the newest nor are resumed from. Moves only
/// checkpoints that step_name() has named.
void set_aside_later(const std::string& folder, int64_t step);

/// Makes the folder `earlier-<n>` in `folder`, with the lowest n that is free, for what another
/// training has left there. Sets `error` if it cannot.
[[nodiscard]] std::filesystem::path make_earlier_folder(const std::filesystem::path& folder,
                                                        std::error_code& error);

}  // namespace argosy::checkpoint
