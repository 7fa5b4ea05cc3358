/// ending_program <way> <rank> <size> <folder>: joins a job over file://, works, and ends as told.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include <torch/torch.h>

#include "argosy/comm/comm.h"

namespace {

namespace comm = argosy::comm;
using namespace std::chrono_literals;

comm::Group global;  // destroyed after main, when libraries end too
comm::Work pending;

void work(const comm::Group& world) {
  at::Tensor t = at::ones({1000});
  comm::Work first = comm::all_reduce_async(t, world);
  comm::broadcast_async(t, world).wait();
  first.wait();
  if (t[0].item<float>() != static_cast<float>(world.size())) {
    throw std::logic_error("wrong sum");
  }
}

/// A group that is never destroyed. LeakSanitizer is told that this is on purpose.
void leak(const comm::Group& world) {
  auto* leaked = new comm::Group(world);
#if defined(__SANITIZE_ADDRESS__)
  __lsan_ignore_object(leaked);
#endif
  (void)leaked;
}

/// An operation that the other ranks never call.
void leave_one_queued(const comm::Group& world) {
  if (world.rank() == 0) {
    pending = comm::all_reduce_async(at::ones({10}), world);
  }
}

int end(std::string_view way, const comm::Group& world) {
  work(world);
  if (way == "destroy") {
    comm::Group copy = world;
    copy.destroy();
    copy.destroy();
  } else if (way == "global") {
    global = world;
  } else if (way == "leaked") {
    leak(world);
  } else if (way == "leaked_and_missed") {
    leak(world);
    if (world.rank() == 1) {
      comm::barrier(world);  // rank 0 has gone home
    }
  } else if (way == "child") {
    global = world.split({.color = 0});
  } else if (way == "queued") {
    leave_one_queued(world);
  } else if (way == "global_queued") {
    global = world;
    leave_one_queued(world);
  } else if (way == "exit") {
    leave_one_queued(world);
    std::exit(3);  // NOLINT(concurrency-mt-unsafe)
  } else if (way == "throws" || way == "throws_uncaught") {
    leave_one_queued(world);
    throw std::runtime_error("the user's own trouble");
  } else if (way != "return") {
    return 2;
  }
  return 0;
}

int run(std::string_view way, char** argv) {
  const comm::Group world = comm::init({.init_method = std::string("file://") + argv[4],
                                        .timeout = 60s,
                                        .rank = std::atoi(argv[2]),
                                        .world_size = std::atoi(argv[3])});
  return end(way, world);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    return 2;
  }
  const std::string_view way = argv[1];
  if (way == "throws_uncaught") {
    return run(way, argv);
  }
  try {
    return run(way, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "caught: %s\n", e.what());
    return 1;
  }
}
