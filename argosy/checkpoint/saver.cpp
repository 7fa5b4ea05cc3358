#include "argosy/checkpoint/saver.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/checkpoint/pending_folder.h"
#include "argosy/checkpoint/piece.h"
#include "argosy/checkpoint/save_job.h"
#include "argosy/comm/collectives.h"
#include "argosy/os/whole_file.h"

namespace argosy::checkpoint {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

bool has_divided(const Snapshot& snapshot) {
  try {
    return std::ranges::any_of(snapshot.parts, [](const auto& part) {
      return std::ranges::any_of(part.second,
                                 [](const auto& entry) { return is_divided(entry.second); });
    });
  } catch (const std::exception&) {  // a view of a divided one: the plan of the parts says so
    return true;
  }
}

}  // namespace

class Saver::Impl final {
 public:
  Impl(std::string directory, const SaverOptions& options, comm::Group group)
      : directory_(std::move(directory)), options_(options), group_(std::move(group)) {
    options_.keep.validate();
    const bool alone = !group_.valid() || group_.size() == 1;
    std::string error = alone || group_.rank() == 0 ? prepare_directory(directory_) : "";
    if (!alone) {
      error = comm::broadcast_object(error, group_);
      writers_ = group_.split({.color = 0, .key = group_.rank()});
    }
    if (!error.empty()) {
      throw CheckpointError("checkpoint.save", error);
    }
    thread_ = std::thread([this] { run(); });
  }

  ~Impl() {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !job_; });
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
    if (failure_) {
      log_failure();
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Saved save(const Snapshot& snapshot, const std::string& name) {
    const auto start = Clock::now();
    if (options_.when_busy == WhenBusy::kSkip && anybody_busy()) {
      const std::scoped_lock lock(mutex_);
      ++times_.skipped;
      times_.stalled += Clock::now() - start;
      return Saved::kSkipped;
    }
    wait_until_idle();
    const auto idle = Clock::now();
    SaveJob job = make_job(snapshot,
                           directory_,
                           name.empty() ? step_name(snapshot.step) : name,
                           options_.sharded         ? Writers::kAll
                           : writes_parts(snapshot) ? Writers::kOfParts
                                                    : Writers::kFirst,
                           group_,
                           pool_);
    if (group_.valid()) {
      group_.check();  // else a device's tensors may have been garbage when they were copied
    }
    {
      const std::scoped_lock lock(mutex_);
      job_ = std::move(job);
      ++times_.saves;
      times_.waited += idle - start;
    }
    changed_.notify_all();
    const bool sync = !options_.async;
    std::exception_ptr failure;
    if (sync) {
      failure = wait_for_failure();
    }
    {
      const std::scoped_lock lock(mutex_);
      times_.stalled += Clock::now() - start;
    }
    if (failure) {
      std::rethrow_exception(failure);
    }
    return Saved::kStarted;
  }

  void wait_until_idle() {
    if (const std::exception_ptr failure = wait_for_failure()) {
      std::rethrow_exception(failure);
    }
  }

  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] SaverTimes times() const {
    const std::scoped_lock lock(mutex_);
    return times_;
  }

 private:
  /// What the finished save came to; taken, so that it is told once.
  std::exception_ptr wait_for_failure() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !job_; });
    return std::exchange(failure_, nullptr);
  }

  /// Agreed: a rank may be done while another still writes.
  bool anybody_busy() {
    bool own = false;
    {
      const std::scoped_lock lock(mutex_);
      own = job_.has_value();
    }
    return !group_.valid() || group_.size() == 1 ? own : any(own);
  }

  /// Where ranks divide tensors, each writes its part if all see the folder. Collective.
  bool writes_parts(const Snapshot& snapshot) {
    if (!group_.valid() || group_.size() == 1 || !any(has_divided(snapshot))) {
      return false;
    }
    if (!is_shared_.has_value()) {
      is_shared_ = !any(!sees_folder_of_first());
      if (!*is_shared_ && group_.rank() == 0) {
        log::warn(
            "[checkpoint.save] {}: not all ranks see this folder, so rank 0 gathers what they "
            "divide, and needs memory for all of it. Give a folder that all of them see",
            directory_);
      }
    }
    return *is_shared_;
  }

  [[nodiscard]] bool any(bool own) const {
    const std::vector<std::string> all =
        comm::all_gather_object(std::string(own ? "1" : ""), group_);
    return std::ranges::any_of(all, [](const std::string& one) { return !one.empty(); });
  }

  /// Whether this rank finds what rank 0 makes there.
  [[nodiscard]] bool sees_folder_of_first() const {
    std::optional<PendingFolder> trial;
    std::string name;
    try {
      if (group_.rank() == 0) {
        name = fs::path(trial.emplace(directory_, "trial").path()).filename();
      }
    } catch (const CheckpointError&) {  // a folder that came to be unwritable: the save says so
    }
    name = comm::broadcast_object(name, group_);
    std::error_code error;
    const bool seen = name.empty() || fs::exists(fs::path(directory_) / name, error);
    comm::barrier(group_);  // it is there until all have looked
    return seen;
  }

  void run() {
    while (true) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return job_ || stop_; });
        if (!job_) {
          return;
        }
      }
      const auto start = Clock::now();
      std::exception_ptr failure;
      int64_t bytes = 0;
      try {
        bytes = write_job(*job_, writers_);  // nobody else touches job_ until it is reset
        prune_if_asked();
      } catch (...) {
        failure = std::current_exception();
      }
      {
        const std::scoped_lock lock(mutex_);
        failure_ = failure;
        times_.bytes += bytes;
        times_.writing += Clock::now() - start;
        job_.reset();
      }
      changed_.notify_all();
    }
  }

  /// What cannot be removed is a nuisance and no reason to end a training.
  void prune_if_asked() const {
    if (options_.keep.keep_last == 0 || (writers_.valid() && writers_.rank() != 0)) {
      return;
    }
    try {
      // That the newest is whole was just seen to; reading it again would cost as much as the save.
      prune(directory_,
            {.keep = options_.keep, .check = Check::kSizes, .prefix = options_.keep_prefix});
    } catch (const std::exception& error) {
      log::warn("{}", error.what());
    }
  }

  void log_failure() const {
    try {
      std::rethrow_exception(failure_);
    } catch (const std::exception& error) {
      log::error("the last checkpoint was not saved: {}", error.what());
    } catch (...) {
      log::error("the last checkpoint was not saved");
    }
  }

  std::string directory_;
  SaverOptions options_;
  comm::Group group_;
  comm::Group writers_;  // the threads' own: their operations come in no order with the loop's
  std::optional<bool> is_shared_;  // all ranks see the folder; nullopt: nobody needed to know
  // Of the loop's thread while there is no job, else of the writer.
  StagingPool pool_{options_.async};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<SaveJob> job_;
  std::exception_ptr failure_;
  SaverTimes times_;
  bool stop_ = false;
  std::thread thread_;
};

Saver::Saver(std::string directory, const SaverOptions& options, comm::Group group)
    : impl_(std::make_unique<Impl>(std::move(directory), options, std::move(group))) {}

Saver::~Saver() = default;

Saved Saver::save(const Snapshot& snapshot, const std::string& name) {
  return impl_->save(snapshot, name);
}

void Saver::wait() {
  impl_->wait_until_idle();
}

const std::string& Saver::directory() const {
  return impl_->directory();
}

SaverTimes Saver::times() const {
  return impl_->times();
}

}  // namespace argosy::checkpoint
