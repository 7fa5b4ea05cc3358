#pragma once

#include <argosy/rendezvous/hidden.h>
