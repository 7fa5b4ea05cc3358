#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace argosy::ps {

/// How many pushes of each worker there are, and how far the slowest is. Not thread-safe.
class WorkerPace final {
 public:
  explicit WorkerPace(size_t workers) : workers_(workers) {}

  [[nodiscard]] size_t size() const { return workers_.size(); }
  /// 0 for a worker that there is not.
  [[nodiscard]] uint64_t pushes_of(size_t worker) const {
    return worker < workers_.size() ? workers_[worker].pushes : 0;
  }
  [[nodiscard]] bool none_has_pushed() const;
  void set(size_t worker, uint64_t pushes) { workers_[worker].pushes = pushes; }
  /// Counts a push. One that was excused is then no slower than the slowest of the others.
  void count(size_t worker);

  /// Counts so many pushes more than a worker has made, when its slowness is looked at.
  [[nodiscard]] uint64_t head_start_of(size_t worker) const { return workers_[worker].head_start; }
  /// Never lowers it.
  void give_head_start(size_t worker, uint64_t pushes);

  /// The worker is gone: nobody waits for it until it pushes again.
  void excuse(size_t worker) { workers_[worker].excused = true; }
  [[nodiscard]] bool is_excused(size_t worker) const { return workers_[worker].excused; }
  [[nodiscard]] bool is_slowest(size_t worker) const {
    return workers_[worker].place() == slowest();
  }
  /// Returns how many pushes the slowest has made that is not excused; the largest number where all
  /// are.
  [[nodiscard]] uint64_t slowest() const;
  /// Returns how many pushes the fastest is ahead of the slowest, of those that are not excused.
  [[nodiscard]] uint64_t apart() const;

 private:
  struct Worker {
    uint64_t pushes = 0;
    uint64_t head_start = 0;  ///< pushes that the others have made while it was gone
    bool excused = false;
    [[nodiscard]] uint64_t place() const { return pushes + head_start; }
  };
  std::vector<Worker> workers_;
};

}  // namespace argosy::ps
