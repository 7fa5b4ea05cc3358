#include "argosy/data/batch_scope.h"

#include <dlfcn.h>

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <torch/types.h>

namespace argosy::data {
namespace {

using SetThreads = void (*)(int);
using GetThreads = int (*)();

// The OpenMP library that libtorch runs on: the system's for Debian's libtorch, one of its own in
// the official binaries. Found by name, because linking one would bring a second, with settings of
// its own, into a program that has the other.
template <typename F>
F openmp(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_DEFAULT, name));
}

int use_threads(int threads) {
  static const auto set = openmp<SetThreads>("omp_set_num_threads");
  static const auto get = openmp<GetThreads>("omp_get_max_threads");
  if (set == nullptr || get == nullptr) {
    return threads;
  }
  const int before = get();
  set(threads);
  return before;
}

}  // namespace

BatchScope::BatchScope() : gradients_before_(at::GradMode::is_enabled()) {
  at::GradMode::set_enabled(false);
  // libtorch applies the process's number at a thread's first parallel operator; do that now, or it
  // would undo ours. Newer versions remember "first" twice, in the library and in the programs that
  // include its headers.
  at::internal::lazy_init_num_threads();
  (void)at::get_num_threads();
  threads_before_ = use_threads(1);
}

BatchScope::~BatchScope() {
  use_threads(threads_before_);
  at::GradMode::set_enabled(gradients_before_);
}

}  // namespace argosy::data
