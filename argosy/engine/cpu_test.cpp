#include "argosy/engine/cpu.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/env.h"
#include "argosy/base/error.h"

namespace argosy::engine {
namespace {

using ::testing::HasSubstr;

TEST(Cpu, TellsMatrixLibrariesApart) {
  const std::string lib = "/usr/lib/x86_64-linux-gnu/";
  EXPECT_EQ(classify_blas(lib + "blas/libblas.so.3.11.0"), Blas::kReference);
  EXPECT_EQ(classify_blas(lib + "openblas-openmp/libblas.so.3"), Blas::kOpenBlas);
  EXPECT_EQ(classify_blas(lib + "openblas-pthread/libopenblasp-r0.3.21.so"), Blas::kOpenBlas);
  EXPECT_EQ(classify_blas(lib + "libmkl_rt.so"), Blas::kMkl);
  EXPECT_EQ(classify_blas(lib + "blis-openmp/libblas.so.3"), Blas::kBlis);
  EXPECT_EQ(classify_blas(lib + "atlas/libblas.so.3.10.3"), Blas::kAtlas);
  EXPECT_EQ(classify_blas("/opt/torch/lib/libtorch_cpu.so"), Blas::kUnknown);
  EXPECT_EQ(classify_blas(""), Blas::kUnknown);
}

TEST(Cpu, ReadsTheNumberOfThreadsAsOpenMpDoes) {
  EXPECT_EQ(omp_num_threads(""), std::nullopt);
  EXPECT_EQ(omp_num_threads("4"), 4);
  EXPECT_EQ(omp_num_threads(" 4 , 2"), 4);
  for (const char* wrong : {"0", "-1", "four", ",2", "99999"}) {
    EXPECT_THROW((void)omp_num_threads(wrong), ConfigError) << wrong;
  }
}

TEST(Cpu, AdvisesAgainstSlowProducts) {
  CpuSetup setup;
  setup.blas = Blas::kOpenBlas;
  EXPECT_EQ(blas_advice(setup), "");
  setup.guessed_kernels = "SkylakeX";
  EXPECT_EQ(blas_advice(setup), "");
  setup.guessed_kernels = "Prescott";
  EXPECT_THAT(blas_advice(setup), HasSubstr("as for Prescott, and this processor has AVX-512"));
  setup.blas = Blas::kReference;
  setup.blas_library = "/usr/lib/blas/libblas.so.3";
  EXPECT_THAT(blas_advice(setup), HasSubstr("/usr/lib/blas/libblas.so.3"));
  EXPECT_THAT(blas_advice(setup), HasSubstr("apt-get install libopenblas0-openmp"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose malloc is its own
// Page faults that rounds of allocating, touching and freeing 20 MiB cost.
long faults_of_large_tensors(int rounds) {
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  for (int round = 0; round < rounds; ++round) {
    torch::ones({5 << 20});
  }
  ::getrusage(RUSAGE_SELF, &after);
  return after.ru_minflt - before.ru_minflt;
}

TEST(Cpu, KeepsMemory) {
  ASSERT_TRUE(setup_cpu({.local_world_size = 1}).memory_kept);
  (void)faults_of_large_tensors(20);  // the heap grows here
  EXPECT_LT(faults_of_large_tensors(5), 1000) << "expected no new pages; 5 x 20 MiB have 25,600";
}
#endif

TEST(Cpu, SetsThreadsOnce) {
  at::set_num_threads(1);  // the program's own choice: never raised
  const CpuSetup& setup = setup_cpu({.local_world_size = 1});
  EXPECT_EQ(&setup, &setup_cpu({.local_world_size = 64}));  // the first call counts
  EXPECT_EQ(at::get_num_threads(), setup.intra_op_threads);
  if (const auto given = omp_num_threads(env::get("OMP_NUM_THREADS").value_or(""))) {
    EXPECT_TRUE(setup.threads_given);
    EXPECT_EQ(setup.intra_op_threads, *given);
  } else {
    EXPECT_EQ(setup.intra_op_threads, 1);
  }
}

TEST(Cpu, UsesOtherThreadsWhereNobodyHasChosen) {
  const CpuSetup& setup = setup_cpu();
  at::set_num_threads(setup.intra_op_threads);
  use_threads(setup.intra_op_threads + 1);
  EXPECT_EQ(at::get_num_threads(), setup.intra_op_threads + (setup.threads_given ? 0 : 1));
  use_threads(0);
  EXPECT_EQ(at::get_num_threads(), setup.intra_op_threads);
  at::set_num_threads(setup.intra_op_threads + 2);  // the program's choice
  use_threads(1);
  EXPECT_EQ(at::get_num_threads(), setup.intra_op_threads + 2);
  EXPECT_THAT(
      kernels_in_use(),
      testing::MatchesRegex(fmt::format("{} threads, [A-Z0-9]+.*", setup.intra_op_threads + 2)));
  at::set_num_threads(setup.intra_op_threads);
}

}  // namespace
}  // namespace argosy::engine
