// Breaks the rule of names on purpose: no header has this name, and a list of another room is not
// this room's.
#include "argosy/comm/collectives.h"
