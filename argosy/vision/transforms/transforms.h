#pragma once

/// All transforms of images, and Compose, which joins them.
#include "argosy/vision/transforms/choose.h"
#include "argosy/vision/transforms/color.h"
#include "argosy/vision/transforms/compose.h"
#include "argosy/vision/transforms/crop.h"
#include "argosy/vision/transforms/erasing.h"
#include "argosy/vision/transforms/flip.h"
#include "argosy/vision/transforms/functional.h"
#include "argosy/vision/transforms/picture.h"
#include "argosy/vision/transforms/random_tone.h"
#include "argosy/vision/transforms/tensor.h"
#include "argosy/vision/transforms/warp.h"
