#define ARGOSY_KERNELS avx512
#include "argosy/transport/reduce_kernels.h"
