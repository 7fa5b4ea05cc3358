#include "argosy/os/twice.h"
