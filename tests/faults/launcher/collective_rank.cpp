// A rank that reduces again and again with the others; rank 3 kills itself at $MOMENT: before it
// joins (start), while the others wait for it (middle), or when all is done (exit). With
// STOP=between or inside rank 1 stops itself after half of the operations, or within the next one.
#include <argosy/argosy.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

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

/// Of all threads of this process, until somebody lets it go on.
void stop() {
  ::kill(::getpid(), SIGSTOP);
}

bool stops(std::string_view place) {
  const char* chosen = std::getenv("STOP");
  const char* rank = std::getenv("RANK");
  return chosen != nullptr && rank != nullptr && place == chosen && std::string_view(rank) == "1";
}

/// Stops this process in the thread that runs the operation, which then has begun and cannot end.
class StopInside final : public comm::Hook {
 public:
  void on_started(const comm::OperationEvent& /*event*/) override { stop(); }
};

}  // namespace

int main() {
  die_at("start");
  fleet::init();
  at::Tensor sum = torch::ones(1 << 16);
  for (int step = 0; step < 40; ++step) {
    if (step == 20) {
      die_at("middle");
      if (stops("between")) {
        stop();
      }
      if (stops("inside")) {
        comm::add_hook(fleet::group(), std::make_shared<StopInside>());
      }
    }
    comm::all_reduce(sum, fleet::group(), {.op = comm::ReduceOp::kAvg});
  }
  die_at("exit");
  return sum.eq(1).all().item<bool>() ? 0 : 1;
}
