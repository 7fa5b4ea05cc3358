#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "argosy/launch/nodes/job_log.h"
#include "argosy/launch/nodes/journal.h"
#include "argosy/os/fd.h"
#include "argosy/rendezvous/store.h"

namespace argosy::launch {

/// One launcher's connection to those of the other nodes, once they have met: tells them what
/// happens here, and the loop here what happens there.
///
///     poll(… plane.fd() …);
///     for (const JobEvent& event : plane.events()) state.add(event);
///
/// Threads: one, which waits for the journal; node 0's also watches for launchers that are gone.
/// It ends within a second of the destructor.
class ControlPlane final {
 public:
  /// `store`: node 0's, shared by all launchers. `node_of_arrival`: as in JobPlan.
  ControlPlane(std::shared_ptr<rendezvous::Store> store,
               int node,
               std::vector<int> node_of_arrival);
  ~ControlPlane();
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;
  ControlPlane(ControlPlane&&) = delete;
  ControlPlane& operator=(ControlPlane&&) = delete;

  [[nodiscard]] int node() const { return node_; }
  [[nodiscard]] int nodes() const { return static_cast<int>(node_of_arrival_.size()); }
  /// Readable when events() has something to tell.
  [[nodiscard]] int fd() const { return wake_.get(); }
  /// What happened since the last call, in the journal's order. Where node 0's store cannot be
  /// reached any more, that node is lost: there is nobody else who could say so.
  [[nodiscard]] std::vector<JobEvent> events();
  /// Tells all launchers, this one included. Waits a few seconds at most.
  void tell(const JobEvent& event);

 private:
  void read();
  void watch_members();
  void put(JobEvent event);

  std::shared_ptr<rendezvous::Store> store_;
  int node_;
  std::vector<int> node_of_arrival_;
  os::UniqueFd wake_;
  std::mutex mutex_;
  std::deque<JobEvent> waiting_{};
  std::set<std::string> told_lost_{};  ///< of the thread alone
  Journal to_write_;                   ///< of the loop alone
  std::atomic<bool> over_ = false;
  std::thread reader_;
};

}  // namespace argosy::launch
