// A rank that reduces again and again with the others; rank 3 kills itself at $MOMENT: before it
// joins (start), while the others wait for it (middle), or when all is done (exit). With
// STOP=between or inside rank 1 stops itself after half of the operations, or within the next one;
// with STOP=child it has a child that is stopped, and rank 2 then ends with exit code 3.
#include <argosy/argosy.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
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

/// It dies with this process.
void stop_a_child() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    stop();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
}

bool chosen_to_stop(std::string_view place, std::string_view rank) {
  const char* chosen = std::getenv("STOP");
  const char* own = std::getenv("RANK");
  return chosen != nullptr && own != nullptr && place == chosen && rank == own;
}
bool stops(std::string_view place) {
  return chosen_to_stop(place, "1");
}
bool fails_beside_a_stopped_child() {
  return chosen_to_stop("child", "2");
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
      if (stops("child")) {
        stop_a_child();
      }
      if (stops("inside")) {
        comm::add_hook(fleet::group(), std::make_shared<StopInside>());
      }
    }
    comm::all_reduce(sum, fleet::group(), {.op = comm::ReduceOp::kAvg});
    if (step == 20 && fails_beside_a_stopped_child()) {  // by now that child is stopped
      ::_exit(3);
    }
  }
  die_at("exit");
  return sum.eq(1).all().item<bool>() ? 0 : 1;
}
