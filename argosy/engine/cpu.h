#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace argosy::engine {

/// The matrix library behind libtorch's CPU operators.
enum class Blas { kReference, kOpenBlas, kMkl, kBlis, kAtlas, kUnknown };

/// "reference", "OpenBLAS", …
[[nodiscard]] std::string_view to_string(Blas blas);

/// The findings and settings of setup_cpu().
struct CpuSetup {
  int intra_op_threads = 0;    ///< threads per operator in this process
  bool threads_given = false;  ///< OMP_NUM_THREADS set them, and not the launcher
  bool memory_kept = false;    ///< freed memory stays with the process (ARGOSY_MALLOC)
  Blas blas = Blas::kUnknown;
  std::string blas_library{};  ///< the file that sgemm comes from, links resolved
  /// The processor for which OpenBLAS computes, "Prescott", where this one has AVX-512 and only
  /// its model was asked; else empty.
  std::string guessed_kernels{};
};

/// How setup_cpu() divides the machine.
struct CpuOptions {
  int local_world_size = 1;  ///< the job's processes on this machine, which share its cores
  int local_rank = 0;        ///< the first one warns of a slow matrix library
};

/// Prepares this process for training on the CPU. The first call does the work; later calls return
/// its result. fleet::init() and DistributedDataParallel call it. Thread-safe.
///
/// - Threads per operator: OMP_NUM_THREADS if set, else the number that libtorch chose (the
///   physical cores) or the program set before, but at most this process's share of the cores it
///   may run on. Hyperthreads are left out because two OpenMP threads on one core wait for each
///   other by spinning: examples/03_fleet took 26 s instead of 2.7 s on a busy machine. See
///   docs/guides/threads.md.
/// - Memory: glibc returns large blocks to the kernel on every free and gets them back page by
///   page, which costs 10 % of a ResNet-18 step on two cores. setup_cpu() makes it keep blocks up
///   to 32 MiB, its largest setting. ARGOSY_MALLOC=huge also asks for huge pages.
///   ARGOSY_MALLOC=default leaves glibc as it is. Another allocator (LD_PRELOAD of tcmalloc,
///   jemalloc) is not touched.
/// - Matrix library: warns once about the reference BLAS, which is 10 to 40 times slower than
///   OpenBLAS and the only one that libtorch-dev installs.
/// Errors: ConfigError if ARGOSY_MALLOC is not "keep", "huge" or "default", or if OMP_NUM_THREADS
/// is not a number of threads.
const CpuSetup& setup_cpu(const CpuOptions& options = {});

/// Computes each operator with so many threads, unless the user or the program has chosen a number:
/// with another number of processes on a machine it would otherwise be another, and so the bits. 0:
/// as setup_cpu() decided.
void use_threads(int threads);
/// Returns in words what decides how an operator rounds beside its inputs: the number of threads
/// and the instructions that libtorch chose. Machines that differ in it come to other bits.
[[nodiscard]] std::string kernels_in_use();
/// Whether products of matrices run on instructions that make them as fast as convolutions: AVX-512
/// for f32, in a library that uses it, and AMX for bf16. Instructions that the environment forbids
/// the libraries (argosy launch --cpu_capability) do not count. Each process finds it out once.
struct FastProducts {
  bool f32 = false;
  bool bf16 = false;
};
[[nodiscard]] const FastProducts& fast_products();
/// Whether a product of 16-bit matrices is summed in f32 memory of its result's size first: oneDNN
/// does so on processors with AVX-512 and no instructions for bf16.
[[nodiscard]] bool bf16_products_need_room();
/// Whether libtorch rounds to 16 bits at each addition of a product of 16-bit matrices: it does
/// where oneDNN has no such product, without AVX-512, and is slow too.
[[nodiscard]] bool bf16_products_lose_bits();
/// Whether OpenBLAS takes its kernels by the processor's model, of which it may know too little to
/// see AVX-512, although argosy launch would choose them (OPENBLAS_CORETYPE).
[[nodiscard]] bool openblas_chooses_by_model();

/// Returns free memory to the system if it is kept (ARGOSY_MALLOC). For the end of a preparation
/// whose memory the steps do not need. Cost: milliseconds.
void release_free_memory();

/// Returns the number of threads that a value of OMP_NUM_THREADS asks for: the first number of a
/// list, or nullopt for an empty value. Errors: ConfigError naming the value.
[[nodiscard]] std::optional<int> omp_num_threads(std::string_view value);

/// Returns the matrix library that a file belongs to, judged by its path with links resolved.
[[nodiscard]] Blas classify_blas(std::string_view path);

/// Returns advice about a slow matrix library, or "" if there is none to give.
[[nodiscard]] std::string blas_advice(const CpuSetup& setup);

}  // namespace argosy::engine
