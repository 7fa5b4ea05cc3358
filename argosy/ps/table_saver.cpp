#include "argosy/ps/table_saver.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/text.h"
#include "argosy/checkpoint/inspect.h"
#include "argosy/checkpoint/pending_folder.h"
#include "argosy/checkpoint/set_aside.h"
#include "argosy/ps/replica.h"
#include "argosy/ps/table_files.h"
#include "argosy/rpc/errors.h"

namespace argosy::ps {
namespace {

constexpr const char* kPrefix = "step-";

/// Waits for the servers' files and makes a checkpoint of them.
void finish(checkpoint::PendingFolder& folder,
            const TableSet& tables,
            const TableClient::Saving& saving,
            int64_t step,
            const std::string& place) {
  std::vector<ShardFile> shards = saving.wait();
  std::ranges::sort(shards, {}, &ShardFile::shard);
  for (uint32_t shard = 0; shard < kShards; ++shard) {
    ARGOSY_CHECK(shards.size() == kShards && shards[shard].shard == shard,
                 "ps.save",
                 "expected each of {} shards once, got {}",
                 kShards,
                 shards.size());
  }
  checkpoint::Manifest manifest = describe(folder.path(), tables, shards);
  if (!place.empty()) {
    write_place(folder.path(), place, manifest);
  }
  manifest.step = step;
  manifest.time = text::utc(std::chrono::system_clock::now());
  folder.commit(manifest);
}

void prune(const std::string& directory, const checkpoint::KeepOptions& keep) {
  checkpoint::prune(directory,
                    {.keep = keep, .check = checkpoint::Check::kSizes, .prefix = kPrefix});
}

/// Returns false when a server's death ends `write`, which must not end a training.
template <typename Write>
bool survived(const std::string& directory, Write write) {
  try {
    write();
    return true;
  } catch (const rpc::CallError& error) {
    const auto* const remote = dynamic_cast<const rpc::RemoteError*>(&error);
    if (remote != nullptr && remote->thrown().type != NotPrimaryError::kType) {
      throw CheckpointError("ps.save", error.what(), {directory, {}});
    }
    log::warn("[ps.save] a server died while it saved, so this checkpoint is missing: {}",
              error.what());
    return false;
  }
}

}  // namespace

TableSaver::TableSaver(TableClient& client,
                       const std::string& directory,
                       const checkpoint::KeepOptions& keep)
    : client_(client), directory_(std::filesystem::absolute(directory).string()), keep_(keep) {
  keep_.validate();
  if (const std::string why = checkpoint::prepare_directory(directory_); !why.empty()) {
    throw CheckpointError("ps.save", why);  // which begins with the path
  }
}

TableSaver::~TableSaver() {
  try {
    (void)wait();
  } catch (const std::exception& error) {
    log::error("[ps.save] {}", error.what());
  }
}

bool TableSaver::has_any() const {
  return checkpoint::find_newest(directory_, kPrefix).path.has_value();
}

int64_t TableSaver::resume() {
  const checkpoint::Newest newest = checkpoint::find_newest(directory_, kPrefix);
  for (const std::string& remark : newest.remarks()) {
    log::warn("[ps.load] {}", remark);
  }
  if (!newest.path) {
    client_.begin();
    return 0;
  }
  client_.load(*newest.path);
  resumed_from_ = *newest.path;
  begun_ = newest.manifest->step;
  log::info("[ps.load] resumed from {}", *newest.path);
  return begun_;
}

void TableSaver::save(int64_t step,
                      const std::vector<SavedDense>& dense,
                      const std::string& place) {
  (void)wait();
  if (!std::exchange(saves_, true)) {
    checkpoint::set_aside_later(directory_, begun_);
  }
  auto folder =
      std::make_shared<checkpoint::PendingFolder>(directory_, checkpoint::step_name(step));
  missed_ = !survived(directory_, [&] {
    writing_ =
        std::async(std::launch::async,
                   [this, folder, step, place, saving = client_.begin_save(folder->path(), dense)] {
                     finish(*folder, client_.tables(), saving, step, place);
                     prune(directory_, keep_);
                   });
  });
}

bool TableSaver::wait() {
  if (writing_.valid()) {
    missed_ = !survived(directory_, [&] { writing_.get(); });
  }
  return !missed_;
}

}  // namespace argosy::ps
