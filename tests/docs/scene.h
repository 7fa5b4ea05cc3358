#pragma once

// What the pages' code has around it, see snippets.awk.
#include <argosy/argosy.h>

using namespace argosy;

/// The names that pages use.
struct Scene {
  vision::FashionMnist train;
  vision::FashionMnist valid;
  vision::FashionMnist test;
  vision::MnistCnn net;
  train::Model model;
};
