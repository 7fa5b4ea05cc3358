#include "argosy/parallel/traffic/gradient_compressor.h"

#include "argosy/base/check.h"

namespace argosy::parallel {

void GradientCompressor::deal_to(const std::shared_ptr<const comm::LeafDeal>& deal) {
  ARGOSY_CHECK(deal->leaves() == deal->ranks(),
               "parallel.compress",
               "{} needs as many processes as virtual ranks, for it does not say by deal_to() that "
               "it averages over several of a process: here are {} processes for {}",
               name(),
               deal->ranks(),
               deal->leaves());
}

}  // namespace argosy::parallel
