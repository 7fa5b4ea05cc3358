#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace argosy::engine {

/// Which matrix library stands behind libtorch's CPU operators.
enum class Blas { kReference, kOpenBlas, kMkl, kBlis, kAtlas, kUnknown };

/// "reference", "OpenBLAS", …
[[nodiscard]] std::string_view to_string(Blas blas);

/// What setup_cpu() found and did.
struct CpuSetup {
  int intra_op_threads = 0;    ///< threads of one operator in this process
  bool threads_given = false;  ///< OMP_NUM_THREADS said so
  bool memory_kept = false;    ///< freed memory stays with the process (ARGOSY_MALLOC)
  Blas blas = Blas::kUnknown;
  std::string blas_library{};  ///< the file that sgemm comes from, links resolved
};

/// How setup_cpu() divides the machine.
struct CpuOptions {
  int local_world_size = 1;  ///< processes of the job on this machine: they share its cores
};

/// Makes this process ready for training on the CPU. The first call does it, later ones return what
/// the first one found. fleet::init() and
/// DistributedDataParallel call it; thread-safe.
///
/// - Threads of an operator: OMP_NUM_THREADS when set, else what libtorch has chosen (the physical
///   cores) or the program has set before, and at most its share of the cores that it may run on.
///   Hyperthreads are left out because two OpenMP threads that share a core wait for each other by
///   spinning: examples/03_fleet took 26 s instead of 2.7 s on a busy machine. See
///   docs/guides/threads.md.
/// - Memory: glibc returns large blocks to the kernel on every free and gets them back page by page
///   (10 % of a ResNet-18 step on two cores); it is told to keep those up to 32 MiB, the most that
///   it takes. ARGOSY_MALLOC=huge asks for huge pages too. ARGOSY_MALLOC=default leaves glibc
///   as it is. Another allocator (LD_PRELOAD of tcmalloc, jemalloc) is not touched.
/// - Matrix library: warns once when it is the reference BLAS, which is 10 to 40 times slower than
///   OpenBLAS and which libtorch-dev alone brings along.
///
/// Errors: ConfigError when ARGOSY_MALLOC is none of "keep", "huge" and "default", or
/// OMP_NUM_THREADS no number of threads.
const CpuSetup& setup_cpu(const CpuOptions& options = {});

/// Where freed memory is kept (ARGOSY_MALLOC): gives what is free now back to the system. For the
/// end of a preparation whose memory the steps have no use for. Cost: milliseconds.
void release_free_memory();

/// The threads that a value of OMP_NUM_THREADS asks for, the first number of a list; nullopt for an
/// empty one. Errors: ConfigError naming the value.
[[nodiscard]] std::optional<int> omp_num_threads(std::string_view value);

/// The matrix library that a file belongs to, by its path with links resolved.
[[nodiscard]] Blas classify_blas(std::string_view path);

/// What to do about a slow matrix library; empty when there is nothing to do.
[[nodiscard]] std::string blas_advice(const CpuSetup& setup);

}  // namespace argosy::engine
