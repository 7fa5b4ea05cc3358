#include "argosy/checkpoint/prune.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "argosy/base/check.h"
#include "argosy/checkpoint/pending_folder.h"

namespace argosy::checkpoint {
namespace {

/// The whole ones of the list, newest first; only the first is looked at to the last byte.
std::vector<const Inspected*> whole_ones(std::vector<Inspected>& all, Check check) {
  std::vector<const Inspected*> whole;
  for (Inspected& one : all) {
    if (one.state == State::kWhole && whole.empty() && check == Check::kChecksums) {
      one = inspect(one.path, check);
    }
    if (one.state == State::kWhole) {
      whole.push_back(&one);
    }
  }
  return whole;
}

std::set<const Inspected*> wanted(std::vector<const Inspected*> whole, const KeepOptions& keep) {
  const size_t last = keep.keep_last == 0
                          ? whole.size()
                          : std::min(whole.size(), static_cast<size_t>(keep.keep_last));
  std::set<const Inspected*> kept(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(last));
  std::erase_if(whole, [](const Inspected* one) { return !one->manifest->score; });
  std::ranges::stable_sort(whole, [&](const Inspected* a, const Inspected* b) {
    const double left = *a->manifest->score;
    const double right = *b->manifest->score;
    return keep.best == Best::kHighest ? left > right : left < right;
  });
  const size_t best = std::min(whole.size(), static_cast<size_t>(keep.keep_best));
  kept.insert(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(best));
  return kept;
}

}  // namespace

void KeepOptions::validate() const {
  ARGOSY_CHECK(
      keep_last >= 0, "checkpoint.prune", "keep_last: expected 0 (all) or more, got {}", keep_last);
  ARGOSY_CHECK(
      keep_best >= 0, "checkpoint.prune", "keep_best: expected 0 or more, got {}", keep_best);
}

Pruned prune(const std::string& directory, const PruneOptions& options) {
  options.keep.validate();
  if (!options.dry_run) {
    remove_leftovers(directory);
  }
  std::vector<Inspected> all = list(directory, Check::kSizes);
  std::erase_if(all, [&](const Inspected& one) {
    return !std::filesystem::path(one.path).filename().string().starts_with(options.prefix);
  });
  const std::vector<const Inspected*> whole = whole_ones(all, options.check);
  const std::set<const Inspected*> kept = wanted(whole, options.keep);
  Pruned result;
  for (const Inspected& one : all) {
    if (one.state != State::kWhole) {
      result.left.push_back(one);
    } else if (kept.contains(&one)) {
      result.kept.push_back(one.path);
    } else {
      if (!options.dry_run) {
        remove_checkpoint(one.path);
      }
      result.removed.push_back(one.path);
    }
  }
  return result;
}

}  // namespace argosy::checkpoint
