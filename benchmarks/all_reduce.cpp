// Time of a blocking all-reduce (f32, sum) as a user calls it: comm::all_reduce on a tensor.
//
//     argosy launch --nproc_per_node 2 bench_all_reduce [--bytes 4096,1048576,33554432] [--samples
//     30]
//
// Per sample: the tensor is filled (not timed), reduced in place `operations` times in a row
// (timed), and checked element by element against the closed form (not timed). Each repetition
// multiplies by the number of ranks, which a binary float does without rounding for 2 or 4 ranks;
// other numbers of ranks run one operation per sample. The peer is peers/all_reduce.py.
#include <argosy/argosy.h>

#include <cmath>
#include <cstring>

#include <torch/torch.h>

#include "argosy/program/command_line.h"

#include "benchmarks/workload.h"

namespace {

using namespace argosy;

struct Options {
  std::vector<int64_t> bytes{4096, 1048576, 33554432};
  int samples = 30;
  int warmup = 5;
  bool copy = false;      ///< copies the tensor instead, on all ranks at once
  bool in_place = false;  ///< the tensors lie in memory that the ranks share
};

/// Small ones many times, so that a clock reading does not matter.
int operations(int64_t bytes, int ranks) {
  const bool exact = ranks == 2 || ranks == 4;
  return !exact ? 1 : bytes <= 65536 ? 40 : bytes <= 4194304 ? 8 : 1;
}

/// As DistributedDataParallel has its buckets.
at::Tensor shared_tensor(int64_t bytes, const comm::Group& group) {
  const auto size = static_cast<size_t>(bytes);
  const auto block = comm::share_memory(size * static_cast<size_t>(group.size()), group);
  if (block == nullptr) {
    throw UsageError("bench.all_reduce", "--in_place: the ranks share no memory");
  }
  return torch::from_blob(
      block->bytes().data() + size * static_cast<size_t>(group.rank()),
      {bytes / 4},
      [block](void*) {},
      torch::kFloat);
}

struct Result {
  std::vector<double> us;  // of one operation
  int64_t wrong = 0;
};

Result measure(int64_t bytes, const Options& options) {
  const comm::Group& group = fleet::group();
  const int ranks = group.size();
  const int repeats = operations(bytes, ranks);
  const at::Tensor base = torch::arange(bytes / 4, torch::kFloat).remainder(13);
  at::Tensor tensor = options.in_place ? shared_tensor(bytes, group) : torch::empty_like(base);
  at::Tensor other = torch::zeros_like(base);
  // Rank r starts with base + r.
  const at::Tensor expected =
      (base * ranks + ranks * (ranks - 1) / 2.0) * std::pow(ranks, repeats - 1);
  Result result;
  for (int sample = 0; sample < options.warmup + options.samples; ++sample) {
    tensor.copy_(base).add_(group.rank());
    comm::barrier(group);
    const bench::Stopwatch watch;
    for (int i = 0; i < repeats; ++i) {
      if (options.copy) {
        std::memcpy(other.data_ptr(), tensor.data_ptr(), static_cast<size_t>(bytes));
      } else {
        comm::all_reduce(tensor, group);
      }
    }
    const double us = watch.ms() * 1e3 / repeats;
    if (sample >= options.warmup) {
      result.us.push_back(us);
    }
    result.wrong += (options.copy ? tensor.ne(other) : tensor.ne(expected)).sum().item<int64_t>();
  }
  return result;
}

void run(const Options& options) {
  fleet::init();
  for (const int64_t bytes : options.bytes) {
    const Result result = measure(bytes, options);
    at::Tensor wrong = torch::tensor({result.wrong}, torch::kLong);
    comm::all_reduce(wrong, fleet::group());
    if (fleet::is_first_worker()) {
      bench::Report report("all_reduce");
      report.number("ranks", fleet::worker_num());
      report.number("bytes", static_cast<double>(bytes));
      report.text("type", "float");
      report.text("op", "sum");
      report.numbers("samples_us", result.us);
      report.number("wrong", wrong.item<double>());
      bench::add_versions(report);
      report.print();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  return argosy::program::run(
      {"Time of comm::all_reduce."},
      {{"--bytes", "LIST", "Sizes, multiples of 4", &o.bytes, {.least = 4, .most = 1 << 30}},
       {"--samples", "N", "Measured samples of each", &o.samples, {.least = 1, .most = 100000}},
       {"--warmup", "N", "Samples before them", &o.warmup, {.least = 0, .most = 100000}},
       {"--copy", "", "Copy the tensor instead: the bandwidth that there is", &o.copy},
       {"--in_place", "", "Tensors in memory that the ranks share", &o.in_place}},
      argc,
      argv,
      [&] { run(o); });
}
