#pragma once

/// ARGOSY_KERNEL: compiles a function once per instruction set and picks one when the program is
/// loaded. The bodies hold plain loops; fused multiply-add is off (-ffp-contract=off, see
/// CMakeLists.txt), so that every variant, and every split of a range, gives the same bits.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(ARGOSY_NO_TARGET_CLONES)
#define ARGOSY_KERNEL __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ARGOSY_KERNEL
#endif

/// Marks templates inside such a function, because they must become part of each variant.
#define ARGOSY_KERNEL_INLINE __attribute__((always_inline)) inline
/// Marks lambdas inside such a function. It stands after their parameters.
#define ARGOSY_KERNEL_LAMBDA __attribute__((always_inline))
