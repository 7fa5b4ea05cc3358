#include "argosy/checkpoint/newest_together.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/even_part.h"
#include "argosy/base/log.h"
#include "argosy/checkpoint/block_reader.h"
#include "argosy/checkpoint/checksum.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/together.h"
#include "argosy/comm/json.h"

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;

void check_range(BlockReader& file, const IndexRange& bytes) {
  std::vector<std::byte> block(static_cast<size_t>(kBlockBytes));
  for (int64_t at = bytes.begin; at < bytes.end; at += kBlockBytes) {
    file.read(at,
              std::span(block).first(
                  static_cast<size_t>(std::min<int64_t>(kBlockBytes, bytes.end - at))));
  }
}

/// This rank's share of a checkpoint's bytes. Errors: CheckpointError for one that changed.
void check_share(const std::string& folder, const comm::Group& group) {
  const Manifest manifest = read_manifest(folder);
  int64_t turn = 0;
  for (const ManifestFile& known : manifest.files) {
    const std::string path = (fs::path(folder) / known.name).string();
    if (!known.blocks.empty()) {
      const auto blocks = static_cast<int64_t>(known.blocks.size() / kBlockDigits);
      const IndexRange own = even_part(blocks, group.size(), group.rank());
      BlockReader file(path, known);
      check_range(file, {own.begin * kBlockBytes, std::min(own.end * kBlockBytes, known.bytes)});
    } else if (turn++ % group.size() == group.rank()) {
      const BlockReader checks_all(path, known);
    }
  }
}

/// What is wrong with a checkpoint, as the first rank that found something says it; empty: nothing.
std::string damage_in(const std::string& folder, const comm::Group& group) {
  try {
    together(group, "checkpoint.inspect", folder, [&] { check_share(folder, group); });
    return "";
  } catch (const CheckpointError& error) {
    std::string what = error.what();
    if (what.find("Take another checkpoint") == std::string::npos) {
      throw;  // a rank cannot read it, which says nothing of the checkpoint
    }
    return what;
  }
}

nlohmann::json to_json(const Inspected& one) {
  return {one.path, one.state == State::kWhole, std::string(to_string(one.state)), one.reason};
}

/// Those of the folder with this prefix, the newest first, as rank 0 sees them.
nlohmann::json candidates_in(const std::string& folder,
                             std::string_view prefix,
                             const comm::Group& group) {
  nlohmann::json all = nlohmann::json::array();
  together(
      group,
      "checkpoint.inspect",
      folder,
      [&] {
        std::error_code error;
        if (!fs::exists(folder, error) && !error) {
          return;
        }
        for (const Inspected& one : list(folder, Check::kSizes)) {
          if (fs::path(one.path).filename().string().starts_with(prefix)) {
            all.push_back(to_json(one));
          }
        }
      },
      Who::kFirst);
  return comm::broadcast_object(all, group);
}

std::optional<std::string> newest_alone(const std::string& from, std::string_view prefix) {
  if (is_checkpoint(from)) {
    return from;
  }
  const Newest found = find_newest(from, prefix);
  for (const std::string& remark : found.remarks()) {
    log::warn("{}", remark);
  }
  return found.path;
}

}  // namespace

std::optional<std::string> newest_together(const std::string& from,
                                           std::string_view prefix,
                                           const comm::Group& group) {
  if (!group.valid() || group.size() == 1) {
    return newest_alone(from, prefix);
  }
  const bool itself =
      comm::broadcast_object(nlohmann::json(group.rank() == 0 && is_checkpoint(from)), group)
          .get<bool>();
  if (itself) {
    return from;
  }
  std::optional<std::string> newest;
  for (const nlohmann::json& one : candidates_in(from, prefix, group)) {
    const auto path = one[0].get<std::string>();
    std::string why = one[1].get<bool>() ? "" : one[3].get<std::string>();
    if (why.empty() && newest.has_value()) {
      continue;  // older
    }
    std::string state = one[2].get<std::string>();
    if (why.empty()) {
      why = damage_in(path, group);
      state = to_string(State::kDamaged);
    }
    if (why.empty()) {
      newest = path;
    } else if (group.rank() == 0) {
      log::warn("passed over {}, which is {}: {}", path, state, why);
    }
  }
  return newest;
}

}  // namespace argosy::checkpoint
