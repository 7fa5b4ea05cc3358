#pragma once

#include <memory>

namespace argosy::fleet::detail {

/// A job with servers, as the functions of fleet.h see it. served.h makes it.
class ServedJob {
 public:
  virtual ~ServedJob() = default;
  ServedJob() = default;
  ServedJob(const ServedJob&) = delete;
  ServedJob& operator=(const ServedJob&) = delete;
  ServedJob(ServedJob&&) = delete;
  ServedJob& operator=(ServedJob&&) = delete;

  [[nodiscard]] virtual int worker_index() const = 0;
  [[nodiscard]] virtual int worker_num() const = 0;
  virtual void barrier_worker() = 0;
  virtual void stop_worker() = 0;
};

/// The job of this process; nullptr: it has no servers.
[[nodiscard]] std::unique_ptr<ServedJob>& served_job();

}  // namespace argosy::fleet::detail
