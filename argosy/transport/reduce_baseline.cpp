#define ARGOSY_KERNELS baseline
#include "argosy/transport/reduce_kernels.h"
