#pragma once

/// Everything of the room: data sets of images, transforms, models.
#include "argosy/vision/datasets/sets.h"
#include "argosy/vision/models/cifar_net.h"
#include "argosy/vision/models/digit_net.h"
#include "argosy/vision/models/face_net.h"
#include "argosy/vision/models/lenet.h"
#include "argosy/vision/models/mnist_cnn.h"
#include "argosy/vision/models/resnet.h"
#include "argosy/vision/ops/convolution.h"
#include "argosy/vision/ops/norm_pool_relu.h"
#include "argosy/vision/ops/norm_relu.h"
#include "argosy/vision/split.h"
#include "argosy/vision/transforms/fused.h"
#include "argosy/vision/transforms/transforms.h"
