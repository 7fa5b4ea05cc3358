// A rank that reduces again and again with the others; rank 3 kills itself at $MOMENT: before it
// joins (start), while the others wait for it (middle), or when all is done (exit).
#include <argosy/argosy.h>
#include <signal.h>

#include <cstdlib>
#include <string>

#include <torch/torch.h>

using namespace argosy;

namespace {

void die_at(const std::string& moment) {
  const char* chosen = std::getenv("MOMENT");
  const char* rank = std::getenv("RANK");
  if (chosen != nullptr && rank != nullptr && moment == chosen && std::string(rank) == "3") {
    ::raise(SIGKILL);
  }
}

}  // namespace

int main() {
  die_at("start");
  fleet::init();
  at::Tensor sum = torch::ones(1 << 16);
  for (int step = 0; step < 40; ++step) {
    if (step == 20) {
      die_at("middle");
    }
    comm::all_reduce(sum, fleet::group(), {.op = comm::ReduceOp::kAvg});
  }
  die_at("exit");
  return sum.eq(1).all().item<bool>() ? 0 : 1;
}
