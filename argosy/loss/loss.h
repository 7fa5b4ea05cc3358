#pragma once

/// Everything of the room: losses with their checks, and what their means divide by.
#include "argosy/loss/any_loss.h"
#include "argosy/loss/cross_entropy.h"
#include "argosy/loss/embedding.h"
#include "argosy/loss/from_network.h"
#include "argosy/loss/probabilities.h"
#include "argosy/loss/reduction.h"
#include "argosy/loss/regression.h"
