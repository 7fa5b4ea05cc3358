// Breaks the layering on purpose: comm.core, to which this file belongs, must not see libtorch.
#include <ATen/ATen.h>

#include "argosy/comm/collectives.h"
