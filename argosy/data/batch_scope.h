#pragma once

namespace argosy::data {

/// While it lives, this thread makes batches: no gradients are recorded, and an operator of
/// libtorch uses this thread only.
///
/// One thread per operator because the loader threads are the parallelism (eight of them with eight
/// threads each would fight over eight cores), and because a sum over threads depends on how many
/// they are: the same batch must have the same bits with any number of loader threads, zero
/// included. Only this thread is affected; at::set_num_threads() would change the whole process.
class BatchScope final {
 public:
  BatchScope();
  ~BatchScope();
  BatchScope(const BatchScope&) = delete;
  BatchScope& operator=(const BatchScope&) = delete;

 private:
  int threads_before_;
  bool gradients_before_;
};

}  // namespace argosy::data
