#include "process_group.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "argosy/abi/interpreter.h"

#include "memory.h"
#include "sparse.h"

namespace argosy_torch {
namespace {

template <typename Options>
bool waits(const Options& options) {
  if constexpr (requires { options.asyncOp; }) {
    return !options.asyncOp;
  } else {
    return false;  // before PyTorch 2.8 a backend does not hear of it
  }
}

int set_in(void* store, const char* key, const char* value, ArgosyText* why) {
  return argosy::abi::set_in(*static_cast<c10d::Store*>(store), key, value, why);
}

int get_from(void* store, const char* key, int64_t timeout_ms, ArgosyText* value, ArgosyText* why) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  try {
    auto& other = *static_cast<c10d::Store*>(store);
    other.wait({key}, std::chrono::milliseconds(timeout_ms));
    const std::vector<uint8_t> found = other.get(key);
    tell(value, std::string(found.begin(), found.end()));
    return ARGOSY_OK;
  } catch (const std::exception& e) {
    tell(why, e.what());
    return std::chrono::steady_clock::now() >= until ? ARGOSY_TIMED_OUT : ARGOSY_FAILED;
  }
}

constexpr Title kBroadcast{c10d::OpType::BROADCAST, "broadcast", "argosy:broadcast"};
constexpr Title kAllReduce{c10d::OpType::ALLREDUCE, "all_reduce", "argosy:all_reduce"};
constexpr Title kAllReduces{
    c10d::OpType::ALLREDUCE_COALESCED, "all_reduce_coalesced", "argosy:all_reduce"};
constexpr Title kSparse{c10d::OpType::ALLREDUCE, "all_reduce_sparse", "argosy:sparse_all_reduce"};
constexpr Title kReduce{c10d::OpType::REDUCE, "reduce", "argosy:reduce"};
constexpr Title kAllGather{c10d::OpType::ALLGATHER, "all_gather", "argosy:all_gather"};
constexpr Title kAllGatherBase{
    c10d::OpType::_ALLGATHER_BASE, "all_gather_into_tensor", "argosy:all_gather_into_tensor"};
constexpr Title kAllGathers{
    c10d::OpType::ALLGATHER_COALESCED, "all_gather_coalesced", "argosy:all_gather"};
constexpr Title kGather{c10d::OpType::GATHER, "gather", "argosy:gather"};
constexpr Title kScatter{c10d::OpType::SCATTER, "scatter", "argosy:scatter"};
constexpr Title kReduceScatter{
    c10d::OpType::REDUCE_SCATTER, "reduce_scatter", "argosy:reduce_scatter"};
constexpr Title kReduceScatterBase{
    c10d::OpType::REDUCE_SCATTER, "reduce_scatter_tensor", "argosy:reduce_scatter_tensor"};
constexpr Title kReduceScatters{
    c10d::OpType::REDUCE_SCATTER, "reduce_scatter_coalesced", "argosy:reduce_scatter_coalesced"};
constexpr Title kAllToAll{c10d::OpType::ALLTOALL, "all_to_all", "argosy:all_to_all"};
constexpr Title kAllToAllBase{
    c10d::OpType::ALLTOALL_BASE, "all_to_all_single", "argosy:all_to_all"};
constexpr Title kSend{c10d::OpType::SEND, "send", "argosy:send"};
constexpr Title kRecv{c10d::OpType::RECV, "recv", "argosy:recv"};
constexpr Title kRecvAny{c10d::OpType::RECVANYSOURCE, "recv_any_source", "argosy:recvAnySource"};
constexpr Title kAllocate{c10d::OpType::UNKNOWN, "allocate_tensor", "argosy:allocate_tensor"};
constexpr Title kBarrier{c10d::OpType::BARRIER, "barrier", "argosy:barrier"};

}  // namespace

ProcessGroup::ProcessGroup(const c10::intrusive_ptr<c10d::Store>& store,
                           int rank,
                           int size,
                           const GroupOptions& options)
    : Base(rank, size), made_by_(options), timeout_ms_(options.timeout.count()) {
  const std::vector<int>& ranks = options.world_ranks;
  TORCH_CHECK(ranks.empty() || ranks.size() == static_cast<size_t>(size),
              "argosy: ",
              ranks.size(),
              " world ranks were given for a group of ",
              size);
  const ArgosyMeeting meeting{options.name.c_str(),
                              rank,
                              size,
                              timeout_ms_,
                              options.towards.c_str(),
                              store.get(),
                              set_in,
                              get_from,
                              ranks.empty() ? nullptr : ranks.data()};
  ArgosyCode code = ARGOSY_OK;
  Text why;
  group_ = library().argosy_group_make(&meeting, &code, why.get());
  if (group_ == nullptr) {
    std::rethrow_exception(error_of(why.str()));
  }
}

ProcessGroup::~ProcessGroup() {
  argosy::abi::free_group(group_);
}

int64_t ProcessGroup::milliseconds(std::chrono::milliseconds timeout) const {
  return timeout.count() < 0 ? timeout_ms_.load() : std::max<int64_t>(timeout.count(), 1);
}

namespace {

// An operation from its call to its end.
struct Job {
  c10::intrusive_ptr<Work> work;
  std::function<void(const Steps&)> body;
};

// What copies in a thread of the group's: it is nothing that autograd or inference mode hear of.
struct InGroupsThread {
  at::NoGradGuard no_grad{};
  at::AutoDispatchBelowADInplaceOrView below{};
};

int run_job(void* context, ArgosyHere* here) {
  const InGroupsThread guards;
  return run_steps(here, static_cast<Job*>(context)->body);
}

void end_job(void* context, const ArgosyEnd* end) {
  const std::unique_ptr<Job> job(static_cast<Job*>(context));
  job->body = nullptr;  // lets go of its tensors before anybody learns that it ended
  job->work->end(*end);
}

}  // namespace

ProcessGroup::WorkPtr ProcessGroup::submit(const Call& call, Body body) {
  const int64_t number = next_.fetch_add(1);
  auto work = c10::make_intrusive<Work>(getRank(),
                                        call.title.type,
                                        call.title.profile,
                                        call.inputs,
                                        call.outputs,
                                        number,
                                        call.lists);
  auto job = std::make_unique<Job>(Job{work, std::move(body)});
  int64_t elements = 0;
  int64_t bytes = 0;
  for (const at::Tensor& input : call.inputs) {
    elements += input.numel();
    bytes += input.numel() * static_cast<int64_t>(input.element_size());
  }
  const ArgosyOperation operation{
      call.title.name,
      call.inputs.empty() ? "" : c10::toString(call.inputs[0].scalar_type()),
      elements,
      bytes,
      milliseconds(call.timeout),
      call.waits ? 1 : 0,
      run_job,
      end_job,
      job.get()};
  Text why;
  const int code = library().argosy_submit(group_, &operation, why.get());
  if (code != ARGOSY_OK) {
    // What is refused here may have no number on other ranks.
    int64_t newest = number + 1;
    next_.compare_exchange_strong(newest, number);
    std::rethrow_exception(error_of(why.str()));
  }
  (void)job.release();  // end_job() has it, or had it
  return work;
}

ProcessGroup::WorkPtr ProcessGroup::broadcast(Tensors& tensors,
                                              const c10d::BroadcastOptions& opts) {
  const int root = checked_root("broadcast", opts.rootRank, getSize());
  const at::Tensor& tensor = checked_root_tensor("broadcast", opts.rootTensor, tensors);
  check_alike("broadcast", tensors);
  const Written data = Written::with_contents("broadcast", tensor);
  const Tensors copies = others("broadcast", tensors, tensor);
  return submit({kBroadcast, opts.timeout, waits(opts), tensors, tensors}, [=](const Steps& run) {
    run(moves(ARGOSY_BROADCAST, nullptr, data.data(), bytes_of(data.memory()), root));
    data.finish();
    copy_to(copies, data.memory());
  });
}

ProcessGroup::WorkPtr ProcessGroup::allreduce(Tensors& tensors,
                                              const c10d::AllreduceOptions& opts) {
  check_alike("all_reduce", tensors);
  if (tensors[0].layout() == at::kSparse) {
    return allreduce_sparse(tensors, opts);
  }
  const Written data = Written::with_contents(
      "all_reduce",
      tensors[0],
      tensors.size() > 1 ? type_of_sums(tensors[0]) : tensors[0].scalar_type());
  const Tensors more = others("all_reduce", tensors, tensors[0]);
  const ArgosyStep step = sums("all_reduce", ARGOSY_ALL_REDUCE, data.memory(), opts.reduceOp);
  TORCH_CHECK(more.empty() || step.reduction != ARGOSY_AVG,
              "argosy: all_reduce: AVG is for one tensor of a process. Use SUM, and divide.");
  return submit({kAllReduce, opts.timeout, waits(opts), tensors, tensors}, [=](const Steps& run) {
    for (const at::Tensor& one : more) {
      combine(step.reduction, data.memory(), one);
    }
    run(step);
    data.finish();
    copy_to(more, data.memory());
  });
}

// As one: a tensor that is listed twice is summed once, as everywhere.
ProcessGroup::WorkPtr ProcessGroup::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& opts) {
  check_kinds("all_reduce_coalesced", tensors);
  const Flat all("all_reduce_coalesced", tensors);
  ArgosyStep step = sums("all_reduce_coalesced", ARGOSY_ALL_REDUCE, tensors[0], opts.reduceOp);
  all.take();
  step.output = all.data();
  step.count = all.bytes() / static_cast<int64_t>(tensors[0].element_size());
  return submit({kAllReduces, opts.timeout, waits(opts), tensors, tensors}, [=](const Steps& run) {
    run(step);
    all.give();
  });
}

ProcessGroup::WorkPtr ProcessGroup::allreduce_sparse(Tensors& tensors,
                                                     const c10d::AllreduceOptions& opts) {
  check_alike("all_reduce_sparse", tensors);
  TORCH_CHECK(tensors[0].device().is_cpu() &&
                  reduction_of("all_reduce_sparse", opts.reduceOp) == ARGOSY_SUM,
              "argosy: all_reduce of sparse tensors: unsupported reduction operation, or no tensor "
              "on the CPU. Expected SUM.");
  return submit({kSparse, opts.timeout, waits(opts), tensors, tensors},
                [=, size = getSize()](const Steps& run) {
                  Tensors terms;
                  for (const at::Tensor& tensor : tensors) {
                    terms.push_back(tensor.to(type_of_sums(tensor)));
                  }
                  const at::Tensor sum = sum_sparse(run, tree_sum(terms, 0, terms.size()), size);
                  copy_to(tensors, sum.to(tensors[0].scalar_type()));
                });
}

ProcessGroup::WorkPtr ProcessGroup::reduce(Tensors& tensors, const c10d::ReduceOptions& opts) {
  const at::Tensor& tensor = only("reduce", tensors);
  (void)checked_root_tensor("reduce", opts.rootTensor, tensors);
  const Written data = Written::with_contents("reduce", tensor);
  ArgosyStep step = sums("reduce", ARGOSY_REDUCE, data.memory(), opts.reduceOp);
  step.root = checked_root("reduce", opts.rootRank, getSize());
  return submit({kReduce, opts.timeout, waits(opts), tensors, tensors}, [=](const Steps& run) {
    run(step);
    data.finish();
  });
}

ProcessGroup::WorkPtr ProcessGroup::allgather(std::vector<Tensors>& outputs,
                                              Tensors& inputs,
                                              const c10d::AllgatherOptions& opts) {
  TORCH_CHECK(!inputs.empty(), "argosy: all_gather requires non-empty input tensor list");
  TORCH_CHECK(outputs.size() == inputs.size(),
              "argosy: all_gather requires input/output tensor lists to have the same length, got ",
              inputs.size(),
              " and ",
              outputs.size());
  check_alike("all_gather", inputs);
  const size_t several = inputs.size();
  const auto mine_at = static_cast<size_t>(getRank()) * several;
  Tensors results;
  for (const Tensors& list : outputs) {
    check_list("all_gather", list, getSize() * static_cast<int>(several), "output");
    for (const at::Tensor& output : list) {
      check_same("all_gather", inputs[0], output);
      if (several > 1) {  // one may be as large as its rank wants
        check_fits("all_gather", inputs[0], output);
      }
      check_written("all_gather", output);
    }
    check_fits("all_gather", inputs[0], list[mine_at]);
    results.insert(results.end(), list.begin(), list.end());
  }
  const at::Tensor mine =
      several == 1 ? to_read("all_gather", inputs[0]) : Flat::taken("all_gather", inputs).memory();
  const Flat all("all_gather", outputs[0]);
  return submit({kAllGather, opts.timeout, waits(opts), inputs, results, several},
                [=, count = outputs[0].size()](const Steps& run) {
                  ArgosyStep step = moves(all.even() ? ARGOSY_ALL_GATHER : ARGOSY_ALL_GATHER_V,
                                          mine.data_ptr(),
                                          all.data(),
                                          bytes_of(mine));
                  step.receive_counts = all.counts();
                  run(step);
                  all.give();
                  for (size_t i = count; i < results.size(); ++i) {
                    results[i].copy_(results[i % count]);
                  }
                });
}

ProcessGroup::WorkPtr ProcessGroup::_allgather_base(at::Tensor& output,
                                                    at::Tensor& input,
                                                    const c10d::AllgatherOptions& opts) {
  check_gathered("all_gather_into_tensor", output, input, getSize());
  const at::Tensor mine = to_read("all_gather_into_tensor", input);
  const Written all("all_gather_into_tensor", output);
  return submit({kAllGatherBase, opts.timeout, waits(opts), {input}, {output}},
                [=](const Steps& run) {
                  run(moves(ARGOSY_ALL_GATHER, mine.data_ptr(), all.data(), bytes_of(mine)));
                  all.finish();
                });
}

ProcessGroup::WorkPtr ProcessGroup::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& opts) {
  TORCH_CHECK(outputs.size() == inputs.size() && !inputs.empty(),
              "argosy: all_gather_into_tensor_coalesced of ",
              inputs.size(),
              " inputs and ",
              outputs.size(),
              " outputs: expected as many, and one or more");
  Tensors mine;
  std::vector<Written> all;
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_gathered("all_gather_into_tensor_coalesced", outputs[i], inputs[i], getSize());
    mine.push_back(to_read("all_gather_into_tensor_coalesced", inputs[i]));
    all.emplace_back("all_gather_into_tensor_coalesced", outputs[i]);
  }
  return submit({kAllGathers, opts.timeout, waits(opts), inputs, outputs}, [=](const Steps& run) {
    for (size_t i = 0; i < mine.size(); ++i) {
      run(moves(ARGOSY_ALL_GATHER, mine[i].data_ptr(), all[i].data(), bytes_of(mine[i])));
      all[i].finish();
    }
  });
}

// outputs[rank][i] gets what that rank has at inputs[i].
ProcessGroup::WorkPtr ProcessGroup::allgather_coalesced(std::vector<Tensors>& outputs,
                                                        Tensors& inputs,
                                                        const c10d::AllgatherOptions& opts) {
  TORCH_CHECK(!inputs.empty(), "argosy: all_gather_coalesced needs a tensor or more, got none");
  TORCH_CHECK(static_cast<int>(outputs.size()) == getSize(),
              "argosy: all_gather_coalesced: output lists should be equal to world size: ",
              getSize(),
              ", got ",
              outputs.size());
  Tensors mine;
  std::vector<Flat> all;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensors of_ranks;
    for (const Tensors& list : outputs) {
      TORCH_CHECK(list.size() == inputs.size() && list[i].sizes() == inputs[i].sizes(),
                  "argosy: all_gather_coalesced: invalid size of output tensor at index ",
                  i,
                  ": expected that of the input");
      TORCH_CHECK(list[i].scalar_type() == inputs[i].scalar_type(),
                  "argosy: all_gather_coalesced: invalid tensor type at index ",
                  i,
                  ": ",
                  list[i].scalar_type(),
                  ", expected ",
                  inputs[i].scalar_type());
      of_ranks.push_back(list[i]);
    }
    mine.push_back(to_read("all_gather_coalesced", inputs[i]));
    all.emplace_back("all_gather_coalesced", of_ranks);
  }
  Tensors results;
  for (const Tensors& list : outputs) {
    results.insert(results.end(), list.begin(), list.end());
  }
  return submit(
      {kAllGathers, opts.timeout, waits(opts), inputs, results, outputs.size()},
      [=](const Steps& run) {
        for (size_t i = 0; i < mine.size(); ++i) {
          run(moves(ARGOSY_ALL_GATHER, mine[i].data_ptr(), all[i].data(), bytes_of(mine[i])));
          all[i].give();
        }
      });
}

ProcessGroup::WorkPtr ProcessGroup::gather(std::vector<Tensors>& outputs,
                                           Tensors& inputs,
                                           const c10d::GatherOptions& opts) {
  const int root = checked_root("gather", opts.rootRank, getSize());
  at::Tensor& input = only("gather", inputs, "input tensor list");
  const at::Tensor mine = to_read("gather", input);
  Flat all;
  Tensors results;
  if (getRank() == root) {
    results = only("gather", outputs, "output list");
    check_list("gather", results, getSize(), "output");
    for (const at::Tensor& output : results) {
      check_fits("gather", input, output);
    }
    all = Flat("gather", results);
  } else {
    TORCH_CHECK(outputs.empty(), "argosy: gather requires empty output on non-root");
  }
  return submit(
      {kGather, opts.timeout, waits(opts), inputs, results},
      [=, is_root = getRank() == root](const Steps& run) {
        run(moves(
            ARGOSY_GATHER, mine.data_ptr(), is_root ? all.data() : nullptr, bytes_of(mine), root));
        if (is_root) {
          all.give();
        }
      });
}

ProcessGroup::WorkPtr ProcessGroup::scatter(Tensors& outputs,
                                            std::vector<Tensors>& inputs,
                                            const c10d::ScatterOptions& opts) {
  const int root = checked_root("scatter", opts.rootRank, getSize());
  at::Tensor& output = only("scatter", outputs, "output tensor list");
  const Written mine("scatter", output);
  Flat all;
  if (getRank() == root) {
    const Tensors& list = only("scatter", inputs, "input list");
    check_list("scatter", list, getSize(), "input");
    for (const at::Tensor& input : list) {
      check_fits("scatter", input, output);
    }
    all = Flat::taken("scatter", list);
  } else {
    TORCH_CHECK(inputs.empty(), "argosy: scatter requires empty input on non-root");
  }
  return submit(
      {kScatter, opts.timeout, waits(opts), getRank() == root ? inputs[0] : Tensors{}, outputs},
      [=, is_root = getRank() == root](const Steps& run) {
        run(moves(ARGOSY_SCATTER,
                  is_root ? all.data() : nullptr,
                  mine.data(),
                  bytes_of(mine.memory()),
                  root));
        mine.finish();
      });
}

ProcessGroup::WorkPtr ProcessGroup::reduce_scatter(Tensors& outputs,
                                                   std::vector<Tensors>& inputs,
                                                   const c10d::ReduceScatterOptions& opts) {
  at::Tensor& output = only("reduce_scatter", outputs);
  const Tensors& list = only("reduce_scatter", inputs);
  check_list("reduce_scatter", list, getSize(), "input");
  for (const at::Tensor& input : list) {
    check_same("reduce_scatter", input, output);
  }
  check_fits("reduce_scatter", list[static_cast<size_t>(getRank())], output);
  const Written mine("reduce_scatter", output);
  const Flat all = Flat::taken("reduce_scatter", list);
  const ArgosyStep sum =
      sums("reduce_scatter", ARGOSY_REDUCE_SCATTER, mine.memory(), opts.reduceOp);
  return submit({kReduceScatter, opts.timeout, waits(opts), list, outputs},
                [=, rank = getRank(), size = getSize()](const Steps& run) {
                  if (all.even()) {
                    ArgosyStep step = sum;
                    step.input = all.data();
                    run(step);
                  } else {  // each part to its rank
                    const auto element = static_cast<int64_t>(mine.memory().element_size());
                    char* at = static_cast<char*>(all.data());
                    for (int root = 0; root < size; ++root) {
                      ArgosyStep step = sum;
                      step.kind = ARGOSY_REDUCE;
                      step.root = root;
                      step.output = at;
                      step.count = all.counts()[root] / element;
                      run(step);
                      if (root == rank) {
                        std::copy_n(at, all.counts()[root], static_cast<char*>(mine.data()));
                      }
                      at += all.counts()[root];
                    }
                  }
                  mine.finish();
                });
}

ProcessGroup::WorkPtr ProcessGroup::_reduce_scatter_base(at::Tensor& output,
                                                         at::Tensor& input,
                                                         const c10d::ReduceScatterOptions& opts) {
  check_gathered("reduce_scatter_tensor", input, output, getSize());
  const at::Tensor all = to_read("reduce_scatter_tensor", input);
  const Written mine("reduce_scatter_tensor", output);
  ArgosyStep step =
      sums("reduce_scatter_tensor", ARGOSY_REDUCE_SCATTER, mine.memory(), opts.reduceOp);
  step.input = all.data_ptr();
  return submit({kReduceScatterBase, opts.timeout, waits(opts), {input}, {output}},
                [=](const Steps& run) {
                  run(step);
                  mine.finish();
                  (void)all;  // lives until here
                });
}

ProcessGroup::WorkPtr ProcessGroup::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& opts) {
  TORCH_CHECK(outputs.size() == inputs.size() && !inputs.empty(),
              "argosy: reduce_scatter_tensor_coalesced of ",
              inputs.size(),
              " inputs and ",
              outputs.size(),
              " outputs: expected as many, and one or more");
  Tensors all;
  std::vector<Written> mine;
  std::vector<ArgosyStep> steps;
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_gathered("reduce_scatter_tensor_coalesced", inputs[i], outputs[i], getSize());
    all.push_back(to_read("reduce_scatter_tensor_coalesced", inputs[i]));
    mine.emplace_back("reduce_scatter_tensor_coalesced", outputs[i]);
    steps.push_back(sums(
        "reduce_scatter_tensor_coalesced", ARGOSY_REDUCE_SCATTER, mine[i].memory(), opts.reduceOp));
    steps[i].input = all[i].data_ptr();
  }
  return submit({kReduceScatters, opts.timeout, waits(opts), inputs, outputs},
                [=](const Steps& run) {
                  for (size_t i = 0; i < all.size(); ++i) {
                    run(steps[i]);
                    mine[i].finish();
                  }
                });
}

namespace {

// The bytes of each rank's rows.
std::vector<int64_t> split_bytes(const at::Tensor& tensor,
                                 const std::vector<int64_t>& splits,
                                 int size,
                                 const char* what) {
  if (splits.empty()) {
    TORCH_CHECK(tensor.dim() > 0 && tensor.size(0) % size == 0,
                "argosy: all_to_all_single: the ",
                what,
                " of sizes ",
                tensor.sizes(),
                " does not divide equally by ",
                size,
                " ranks. Give split sizes.");
    return std::vector<int64_t>(static_cast<size_t>(size), bytes_of(tensor) / size);
  }
  TORCH_CHECK(static_cast<int>(splits.size()) == size &&
                  std::accumulate(splits.begin(), splits.end(), int64_t{0}) == tensor.size(0),
              "argosy: all_to_all_single: the split sizes of the ",
              what,
              " must be one for each of ",
              size,
              " ranks, and add up to ",
              tensor.size(0));
  TORCH_CHECK(std::all_of(splits.begin(), splits.end(), [](int64_t one) { return one >= 0; }),
              "argosy: all_to_all_single: a split size of the ",
              what,
              " is negative");
  std::vector<int64_t> bytes(splits);
  const int64_t row = tensor.size(0) == 0 ? 0 : bytes_of(tensor) / tensor.size(0);
  for (int64_t& one : bytes) {
    one *= row;
  }
  return bytes;
}

// What a rank sends to itself is what it receives. The others' sizes are compared on the way.
void check_exchange(const char* op, int64_t sent, int64_t received) {
  TORCH_CHECK(sent == received,
              "argosy: ",
              op,
              ": this rank sends itself ",
              sent,
              " bytes and receives ",
              received,
              ": invalid split sizes, expected the same");
}

}  // namespace

ProcessGroup::WorkPtr ProcessGroup::alltoall_base(at::Tensor& output,
                                                  at::Tensor& input,
                                                  std::vector<int64_t>& output_splits,
                                                  std::vector<int64_t>& input_splits,
                                                  const c10d::AllToAllOptions& opts) {
  check_same("all_to_all_single", input, output);
  const at::Tensor sent = to_read("all_to_all_single", input);
  const Written got("all_to_all_single", output);
  const std::vector<int64_t> sends = split_bytes(sent, input_splits, getSize(), "input");
  const std::vector<int64_t> receives = split_bytes(output, output_splits, getSize(), "output");
  const auto me = static_cast<size_t>(getRank());
  check_exchange("all_to_all_single", sends[me], receives[me]);
  return submit({kAllToAllBase, opts.timeout, waits(opts), {input}, {output}},
                [=](const Steps& run) {
                  run(exchanges(sent.data_ptr(), sends.data(), got.data(), receives.data()));
                  got.finish();
                });
}

ProcessGroup::WorkPtr ProcessGroup::alltoall(Tensors& outputs,
                                             Tensors& inputs,
                                             const c10d::AllToAllOptions& opts) {
  check_list("all_to_all", outputs, getSize(), "output");
  check_list("all_to_all", inputs, getSize(), "input");
  const Flat sent = Flat::taken("all_to_all", inputs);
  const Flat got("all_to_all", outputs);
  check_exchange("all_to_all", sent.counts()[getRank()], got.counts()[getRank()]);
  return submit({kAllToAll, opts.timeout, waits(opts), inputs, outputs}, [=](const Steps& run) {
    run(exchanges(sent.data(), sent.counts(), got.data(), got.counts()));
    got.give();
  });
}

namespace {

// A message from its call to its end.
struct Message {
  c10::intrusive_ptr<Work> work;
  Written written;  // what is received
  at::Tensor read;  // what is sent
};

void end_message(void* context, const ArgosyEnd* end) {
  std::unique_ptr<Message> it(static_cast<Message*>(context));
  const c10::intrusive_ptr<Work> work = it->work;
  ArgosyEnd so = *end;
  std::string why;
  if (end->code == ARGOSY_OK && it->written.memory().defined()) {
    try {
      const InGroupsThread here;
      it->written.finish();
    } catch (const std::exception& e) {
      why = e.what();
      so.code = ARGOSY_FAILED;
      so.message = why.c_str();
    }
  }
  it.reset();  // lets go of its tensors before anybody learns that it ended
  work->end(so);
}

uint32_t tag_of(int tag) {
  TORCH_CHECK(tag >= 0, "argosy: a tag must not be negative, got ", tag);
  return static_cast<uint32_t>(tag);
}

}  // namespace

void ProcessGroup::transfer(const c10::intrusive_ptr<Work>& work,
                            const at::Tensor& tensor,
                            bool receives,
                            int peer,
                            int tag) {
  auto message = std::make_unique<Message>();
  message->work = work;
  if (receives) {
    message->written = Written("recv", tensor);
  } else {
    message->read = to_read("send", tensor);
  }
  const at::Tensor& memory = receives ? message->written.memory() : message->read;
  const ArgosyTransfer transfer{receives ? 1 : 0,
                                memory.data_ptr(),
                                memory.nbytes(),
                                peer,
                                tag_of(tag),
                                timeout_ms_.load(),
                                end_message,
                                message.get()};
  Text why;
  if (library().argosy_transfer(group_, &transfer, why.get()) != ARGOSY_OK) {
    std::rethrow_exception(error_of(why.str()));
  }
  (void)message.release();
}

ProcessGroup::WorkPtr ProcessGroup::send(Tensors& tensors, int peer, int tag) {
  const at::Tensor& tensor = only("send", tensors);
  auto work = c10::make_intrusive<Work>(
      getRank(), kSend.type, kSend.profile, tensors, Tensors{}, next_.load());
  transfer(work, tensor, false, peer, tag);
  return work;
}

ProcessGroup::WorkPtr ProcessGroup::receive(const Title& title,
                                            const at::Tensor& tensor,
                                            int peer,
                                            int tag) {
  auto work = c10::make_intrusive<Work>(
      getRank(), title.type, title.profile, Tensors{tensor}, Tensors{tensor}, next_.load());
  transfer(work, tensor, true, peer, tag);
  return work;
}

ProcessGroup::WorkPtr ProcessGroup::recv(Tensors& tensors, int peer, int tag) {
  return receive(kRecv, only("recv", tensors), peer, tag);
}

ProcessGroup::WorkPtr ProcessGroup::recvAnysource(Tensors& tensors, int tag) {
  return receive(kRecvAny, only("recv_any_source", tensors), -1, tag);
}

ProcessGroup::WorkPtr ProcessGroup::barrier(const c10d::BarrierOptions& opts) {
  return submit({kBarrier, opts.timeout, waits(opts), {}, {}},
                [](const Steps& run) { run(moves(ARGOSY_BARRIER, nullptr, nullptr, 0)); });
}

// In the words of Gloo's, which programs and tests look for.
void ProcessGroup::monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) {
  const WorkPtr work = barrier(opts);
  try {
    work->wait();
  } catch (const std::exception& e) {
    std::string what = "Rank " + std::to_string(getRank()) +
                       " successfully reached monitoredBarrier, but received errors while waiting "
                       "for send/recv from rank 0. Please check rank 0 logs for faulty rank.";
    std::vector<int> late = static_cast<const Work&>(*work).peers();
    if (getRank() == 0 && !late.empty()) {
      late.resize(wait_all_ranks ? late.size() : 1);
      what = late.size() > 1 ? "Ranks " : "Rank ";
      for (size_t i = 0; i < late.size(); ++i) {
        what += (i == 0 ? "" : ", ") + std::to_string(late[i]);
      }
      what += " failed to pass monitoredBarrier in " + std::to_string(milliseconds(opts.timeout)) +
              " ms: Rank 0 timed out in monitoredBarrier.";
    }
    std::rethrow_exception(error_of(what + "\n" + e.what()));
  }
}

#ifdef ARGOSY_TORCH_ALLOCATES
// Each rank's part begins with a page.
at::Tensor ProcessGroup::allocateTensor(long size, at::TensorOptions options) {
  constexpr size_t kPage = 4096;
  const size_t bytes = static_cast<size_t>(size) * options.dtype().itemsize();
  const size_t part = (bytes + kPage - 1) / kPage * kPage;
  ArgosyBlock* block = nullptr;
  if (part > 0) {
    argosy::abi::without_interpreter([&] {
      submit({kAllocate, c10d::kUnsetTimeout, true, {}, {}}, [&](const Steps& run) {
        block = run.share(part * static_cast<size_t>(getSize()));
      })->wait();
    });
  }
  if (block == nullptr) {
    return at::empty({size}, options);
  }
  char* const mine = static_cast<char*>(library().argosy_block_data(block)) +
                     part * static_cast<size_t>(getRank());
  return at::from_blob(
      mine, {size}, [block](void* /*data*/) { library().argosy_block_free(block); }, options);
}
#endif

#ifdef ARGOSY_TORCH_SPLITS
c10::intrusive_ptr<ProcessGroup::Options> ProcessGroup::getBackendOptions() {
  auto options =
      c10::make_intrusive<Options>(getBackendName(), std::chrono::milliseconds(timeout_ms_.load()));
  options->group_name = made_by_.name;
  options->global_ranks_in_group.assign(made_by_.world_ranks.begin(), made_by_.world_ranks.end());
  return options;
}

c10::intrusive_ptr<c10d::Backend> ProcessGroup::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                      const std::vector<int>& ranks,
                                                      const c10::intrusive_ptr<Options>& opts) {
  const auto me = std::find(ranks.begin(), ranks.end(), getRank());
  if (me == ranks.end()) {
    return nullptr;
  }
  GroupOptions options{"group " + opts->group_name, made_by_.towards, opts->timeout, ranks};
  for (int& rank : options.world_ranks) {
    checked_root("split", rank, getSize());
    if (!made_by_.world_ranks.empty()) {
      rank = made_by_.world_ranks[static_cast<size_t>(rank)];
    }
  }
  // The meeting waits in the store, whose connection others have too.
  return c10::make_intrusive<ProcessGroup>(store->clone(),
                                           static_cast<int>(me - ranks.begin()),
                                           static_cast<int>(ranks.size()),
                                           options);
}

c10::intrusive_ptr<c10d::Backend> ProcessGroup::merge(const c10::intrusive_ptr<c10d::Store>& store,
                                                      const c10::intrusive_ptr<Options>& opts,
                                                      const int& rank,
                                                      const int& size) {
  return c10::make_intrusive<ProcessGroup>(
      store->clone(),
      rank,
      size,
      GroupOptions{"group " + opts->group_name, made_by_.towards, opts->timeout, {}});
}
#endif

void ProcessGroup::setTimeout(std::chrono::milliseconds timeout) {
  timeout_ms_ = timeout.count();
}

void ProcessGroup::shutdown() {
  library().argosy_group_close(group_, timeout_ms_.load());
}

void ProcessGroup::abort() {
  library().argosy_group_close(group_, 0);
}

std::string ProcessGroup::record() const {
  Text json;
  library().argosy_group_record(group_, json.get());
  return json.str();
}

}  // namespace argosy_torch
