#include "argosy/transport/reduction.h"

#include "argosy/transport/bytes.h"
#include "argosy/transport/transport.h"

namespace argosy::transport {

void reduce_alone(const TreeBuffers& buffers, int64_t count, DType dtype, ReduceOp op) {
  Reduction reduction(buffers.deal, dtype, op);
  const bool divides = op == ReduceOp::kAvg && buffers.deal.leaves() > 1;
  for (size_t sum = 0; sum < buffers.sums.size(); ++sum) {
    const auto data_of = [&](const LeafDeal::Term& term) {
      return buffers.nodes[static_cast<size_t>(term.index)];
    };
    const std::vector<LeafDeal::Term>& terms = buffers.deal.sums()[sum].terms;
    if (terms.size() == 1 && !divides) {
      copy_bytes(buffers.sums[sum], data_of(terms.front()), count * reduction.element_bytes());
    } else {
      reduction.combine(sum, buffers.sums[sum], count, data_of);
    }
  }
}

}  // namespace argosy::transport
