#define ARGOSY_KERNELS avx2
#include "argosy/transport/reduce_kernels.h"
