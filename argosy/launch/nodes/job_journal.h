#pragma once

#include <utility>
#include <vector>

#include "argosy/launch/nodes/job_log.h"

namespace argosy::launch {

/// The launchers of a job tell here what happens on their nodes, and all read it in one order.
class JobJournal {
 public:
  virtual ~JobJournal() = default;
  JobJournal() = default;
  JobJournal(const JobJournal&) = delete;
  JobJournal& operator=(const JobJournal&) = delete;
  JobJournal(JobJournal&&) = delete;
  JobJournal& operator=(JobJournal&&) = delete;

  /// Returns the node of this launcher.
  [[nodiscard]] virtual int node() const = 0;
  /// Returns a descriptor that is readable when events() has news of others. -1: there are no
  /// others.
  [[nodiscard]] virtual int fd() const = 0;
  /// Returns what was told since the last call.
  [[nodiscard]] virtual std::vector<JobEvent> events() = 0;
  /// Tells all launchers, this one included. Does not wait.
  virtual void tell(JobEvent event) = 0;
};

/// The journal of a job of one node. events() returns what tell() was given.
class OwnJournal final : public JobJournal {
 public:
  [[nodiscard]] int node() const override { return 0; }
  [[nodiscard]] int fd() const override { return -1; }
  [[nodiscard]] std::vector<JobEvent> events() override { return std::exchange(events_, {}); }
  void tell(JobEvent event) override { events_.push_back(std::move(event)); }

 private:
  std::vector<JobEvent> events_{};
};

}  // namespace argosy::launch
