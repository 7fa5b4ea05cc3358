#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "argosy/launch/nodes/job_journal.h"
#include "argosy/launch/nodes/journal.h"
#include "argosy/launch/nodes/keep_alive.h"
#include "argosy/os/fd.h"
#include "argosy/rendezvous/store.h"

namespace argosy::launch {

/// Connects one launcher with those of the other nodes, once they have met. It tells them what
/// happens here, and tells the loop here what happens there.
///
///     poll(… plane.fd() …);
///     for (const JobEvent& event : plane.events()) state.add(event);
///
/// Threads: one waits for the journal; on node 0 it also watches for launchers that are gone or
/// silent. One writes to the journal, so that the loop never waits for the network. On all nodes
/// but node 0 a third one gives the signs of life. The destructor lets the writer finish, for 5 s
/// at most.
class ControlPlane final : public JobJournal {
 public:
  /// `store`: node 0's, shared by all launchers. `node_of_arrival`: as in JobPlan.
  ControlPlane(std::shared_ptr<rendezvous::Store> store,
               int node,
               std::vector<int> node_of_arrival,
               const KeepAlive& keep_alive);
  ~ControlPlane() override;
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;
  ControlPlane(ControlPlane&&) = delete;
  ControlPlane& operator=(ControlPlane&&) = delete;

  [[nodiscard]] int node() const override { return node_; }
  /// Returns the number of nodes. Those that left before the job began do not count.
  [[nodiscard]] int nodes() const { return 1 + *std::ranges::max_element(node_of_arrival_); }
  [[nodiscard]] int fd() const override { return wake_.get(); }
  /// Returns new events. If node 0's store cannot be reached any more, node 0 is lost, because
  /// nobody else could say so.
  [[nodiscard]] std::vector<JobEvent> events() override;
  void tell(JobEvent event) override;

 private:
  void read();
  void write();
  void beat();
  void append(const JobEvent& event);
  void watch_members();
  void watch_silence();
  void end_threads();
  /// `silent`: the longest time for which it may have been silent.
  void lose(int node, std::chrono::milliseconds silent);
  void put(JobEvent event);
  void lose_node_zero(const char* what);

  std::shared_ptr<rendezvous::Store> store_;
  int node_;
  std::vector<int> node_of_arrival_;
  os::UniqueFd wake_;
  std::mutex mutex_;
  std::deque<JobEvent> waiting_{};   ///< events for the loop
  std::deque<JobEvent> outgoing_{};  ///< events for the writer
  bool cut_off_ = false;             ///< node 0 is lost, so nobody hears our events
  bool closing_ = false;
  std::condition_variable changed_{};  ///< outgoing_ or closing_
  KeepAlive keep_alive_;
  Pulses pulses_;                      ///< this and the three below belong to the reader alone
  Pulses::Clock::time_point looked_;   ///< when it last looked for silence
  std::set<std::string> told_gone_{};  ///< members
  std::set<int> told_lost_{};          ///< nodes
  std::atomic<int64_t> entries_ = 0;   ///< entries that the reader has seen
  std::thread reader_;
  std::thread writer_;
  std::thread heart_{};
};

}  // namespace argosy::launch
