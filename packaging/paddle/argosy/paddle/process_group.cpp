#include "process_group.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <numeric>
#include <sstream>
#include <thread>
#include <utility>

#include "argosy/abi/interpreter.h"

namespace argosy_paddle {
namespace {

using argosy::abi::exchanges;
using argosy::abi::library;
using argosy::abi::moves;
using argosy::abi::tell;
using argosy::abi::Text;
using Tensors = ProcessGroup::Tensors;
using Rows = ProcessGroup::Rows;
using CommType = pd::CommType;

// In Python misuse is a ValueError, and all else a RuntimeError.
[[noreturn]] void fail(int code, const std::string& message) {
  switch (code) {
    case ARGOSY_MISUSED:
      PADDLE_THROW(common::errors::InvalidArgument("argosy: %s", message));
    case ARGOSY_TIMED_OUT:
      PADDLE_THROW(common::errors::ExecutionTimeout("argosy: timeout: %s", message));
    default:
      PADDLE_THROW(common::errors::Unavailable("argosy: %s", message));
  }
}

// Refuses a call in these words, before another rank hears of it.
#define ARGOSY_REQUIRE(met, words)    \
  if (!(met)) {                       \
    std::ostringstream text;          \
    text << words;                    \
    fail(ARGOSY_MISUSED, text.str()); \
  }

struct NamedType {
  phi::DataType theirs;
  ArgosyType ours;
  const char* name;
};
constexpr NamedType kTypes[] = {
    {phi::DataType::FLOAT32, ARGOSY_F32, "float32"},
    {phi::DataType::FLOAT64, ARGOSY_F64, "float64"},
    {phi::DataType::FLOAT16, ARGOSY_F16, "float16"},
    {phi::DataType::BFLOAT16, ARGOSY_BF16, "bfloat16"},
    {phi::DataType::INT8, ARGOSY_I8, "int8"},
    {phi::DataType::UINT8, ARGOSY_U8, "uint8"},
    {phi::DataType::INT32, ARGOSY_I32, "int32"},
    {phi::DataType::INT64, ARGOSY_I64, "int64"},
    {phi::DataType::BOOL, ARGOSY_BOOL, "bool"},
};

// Null for types that are moved, and never reduced.
const NamedType* find_type(const DenseTensor& tensor) {
  for (const NamedType& type : kTypes) {
    if (type.theirs == tensor.dtype()) {
      return &type;
    }
  }
  return nullptr;
}

ArgosyReduction reduction_of(pd::ReduceOp op) {
  switch (op) {
    case pd::ReduceOp::SUM:
      return ARGOSY_SUM;
    case pd::ReduceOp::MAX:
      return ARGOSY_MAX;
    case pd::ReduceOp::MIN:
      return ARGOSY_MIN;
    case pd::ReduceOp::PRODUCT:
      return ARGOSY_PRODUCT;
    case pd::ReduceOp::AVG:
      return ARGOSY_AVG;
  }
  fail(ARGOSY_MISUSED, "there is no such reduction");
}

int64_t bytes_of(const DenseTensor& tensor) {
  return tensor.numel() * static_cast<int64_t>(phi::SizeOf(tensor.dtype()));
}

// A tensor without elements may have no memory.
char* data_of(const DenseTensor& tensor) {
  return tensor.numel() == 0 ? nullptr
                             : static_cast<char*>(const_cast<void*>(tensor.data()));  // NOLINT
}

void check(const char* op, const DenseTensor& tensor) {
  if (tensor.numel() == 0) {
    return;
  }
  ARGOSY_REQUIRE(tensor.place().GetType() == phi::AllocationType::CPU,
                 op << " of a tensor on " << tensor.place() << ", expected one on the CPU");
  ARGOSY_REQUIRE(tensor.meta().is_contiguous(),
                 op << " of a tensor whose elements do not lie in order. Call contiguous() before");
}

// `many`: how many tensors like `part` the whole is to hold.
void check_both(const char* op, const DenseTensor& whole, const DenseTensor& part, int64_t many) {
  check(op, whole);
  check(op, part);
  ARGOSY_REQUIRE(whole.dtype() == part.dtype() && whole.numel() == part.numel() * many,
                 op << " of " << whole.dtype() << " [" << whole.dims() << "] and " << part.dtype()
                    << " [" << part.dims() << "]: expected one type, and " << many
                    << " times as many elements in the first");
}

// Puts `in` where an operation in place reads it.
void put(DenseTensor* out, const DenseTensor& in) {
  if (in.numel() > 0 && out->data() != in.data()) {
    std::memcpy(out->data(), in.data(), static_cast<size_t>(bytes_of(in)));
  }
}

// Into `out`, from `input`; null: in place.
ArgosyStep reduces(const char* op,
                   ArgosyStepKind kind,
                   const void* input,
                   const DenseTensor& out,
                   pd::ReduceOp reduction) {
  const NamedType* const type = find_type(out);
  ARGOSY_REQUIRE(type != nullptr,
                 op << " of " << out.dtype() << ": expected float32, float64, float16, bfloat16, "
                    << "int8, uint8, int32, int64 or bool. Cast before");
  ArgosyStep step = moves(kind, input, data_of(out), out.numel());
  step.type = type->ours;
  step.reduction = reduction_of(reduction);
  ARGOSY_REQUIRE(library().argosy_is_defined(step.reduction, step.type) != 0,
                 op << " of " << type->name << ": no such reduction");
  return step;
}

// Some elements of a tensor, in bytes.
struct Part {
  char* data;
  int64_t bytes;
};
Part part_of(const char* op, const DenseTensor& tensor, int64_t offset, int64_t count) {
  if (count == pd::kIgnoreId) {
    return {data_of(tensor), bytes_of(tensor)};
  }
  ARGOSY_REQUIRE(offset >= 0 && count >= 0 && count <= tensor.numel() - offset,
                 op << " of " << count << " elements from " << offset << " on, where there are "
                    << tensor.numel());
  const auto each = static_cast<int64_t>(phi::SizeOf(tensor.dtype()));
  return {data_of(tensor) + offset * each, count * each};
}

Rows bytes_of_each(const char* op, const Tensors& tensors) {
  Rows bytes;
  for (const DenseTensor& tensor : tensors) {
    check(op, tensor);
    bytes.push_back(bytes_of(tensor));
  }
  return bytes;
}

std::vector<char> memory_of(const Rows& bytes) {
  return std::vector<char>(std::accumulate(bytes.begin(), bytes.end(), size_t{0}));
}

// Each tensor beside its piece of `memory`, in which they lie one after another.
template <typename Copy>
void for_pieces(const Tensors& tensors, std::vector<char>& memory, Copy copy) {
  char* piece = memory.data();
  for (const DenseTensor& tensor : tensors) {
    const auto bytes = static_cast<size_t>(bytes_of(tensor));
    if (bytes > 0) {
      copy(data_of(tensor), piece, bytes);
    }
    piece += bytes;
  }
}

// What a rank sends to itself is what it receives. The others' sizes are compared on the way.
void check_exchange(const Rows& sends, const Rows& receives, int rank) {
  const int64_t sent = sends[static_cast<size_t>(rank)];
  const int64_t received = receives[static_cast<size_t>(rank)];
  ARGOSY_REQUIRE(sent == received,
                 "all_to_all: this rank sends itself " << sent << " bytes and receives " << received
                                                       << ", expected the same");
}

struct Ended {
  int code;
  std::string message;
};

// What Paddle gets for an operation that was started.
class Work final : public pd::ProcessGroup::Task {
 public:
  Work(int rank, CommType type, bool sync, std::shared_future<Ended> ended)
      : Task(rank, type, sync), ended_(std::move(ended)) {}

  bool IsCompleted() override {
    return ended_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }
  // False: it was not over in that time. 0 waits for its end.
  bool Wait(std::chrono::milliseconds timeout) override {
    if (timeout.count() > 0 && ended_.wait_for(timeout) != std::future_status::ready) {
      return false;
    }
    Synchronize();
    return true;
  }
  void Synchronize() override {
    if (const Ended& ended = ended_.get(); ended.code != ARGOSY_OK) {
      fail(ended.code, ended.message);
    }
  }

 private:
  std::shared_future<Ended> ended_;
};

// An operation or a message from its call to its end.
struct Job {
  ArgosyStep step{};
  Tensors held{};
  std::promise<Ended> ended{};
};

int run_job(void* context, ArgosyHere* here) {
  return library().argosy_step(here, &static_cast<Job*>(context)->step);
}

void end_job(void* context, const ArgosyEnd* end) {
  const std::unique_ptr<Job> job(static_cast<Job*>(context));
  job->held.clear();  // before anybody learns that it ended
  job->ended.set_value({end->code, end->message == nullptr ? "" : end->message});
}

// Paddle's store has the same names for all groups.
struct OwnNames {
  pd::Store& store;
  std::string prefix;
};

int set_in(void* names, const char* key, const char* value, ArgosyText* why) {
  const auto& own = *static_cast<OwnNames*>(names);
  return argosy::abi::set_in(own.store, own.prefix + key, value, why);
}

// Asks again and again: the store itself waits as long as it was made to, and no shorter.
int get_from(void* names, const char* key, int64_t timeout_ms, ArgosyText* value, ArgosyText* why) {
  try {
    const auto& own = *static_cast<OwnNames*>(names);
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (!own.store.check(own.prefix + key)) {
      if (std::chrono::steady_clock::now() >= until) {
        tell(why, "nothing in " + std::to_string(timeout_ms) + " ms");
        return ARGOSY_TIMED_OUT;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const std::vector<uint8_t> found = own.store.get(own.prefix + key);
    tell(value, std::string(found.begin(), found.end()));
    return ARGOSY_OK;
  } catch (const std::exception& e) {
    tell(why, e.what());
    return ARGOSY_FAILED;
  }
}

// The ranks' numbers in the job, which Paddle does not tell: each leaves its own in the store.
std::vector<int> world_ranks(OwnNames& names, int rank, int size, const GroupOptions& options) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point until = Clock::now() + options.timeout;
  const auto key = [](int of) { return "world_rank/" + std::to_string(of); };
  Text said;
  if (set_in(&names, key(rank).c_str(), std::to_string(options.world_rank).c_str(), said.get()) !=
      ARGOSY_OK) {
    fail(ARGOSY_FAILED, said.str());
  }
  std::vector<int> ranks;
  for (int other = 0; other < size; ++other) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    Text value;
    const int code = get_from(
        &names, key(other).c_str(), std::max<int64_t>(left.count(), 0), value.get(), said.get());
    if (code != ARGOSY_OK) {
      fail(code,
           "rank " + std::to_string(other) + " of group " + std::to_string(options.id) +
               " did not come: " + said.str());
    }
    ranks.push_back(std::stoi(value.str()));
  }
  return ranks;
}

}  // namespace

ProcessGroup::ProcessGroup(pd::Store& store, int rank, int size, const GroupOptions& options)
    : pd::ProcessGroup(rank, size, options.id) {
  const bool is_world = options.id == 0;
  const std::string name = is_world ? "world" : "group " + std::to_string(options.id);
  OwnNames names{store, "argosy/" + std::to_string(options.id) + "/"};
  const std::vector<int> ranks =
      is_world ? std::vector<int>{} : world_ranks(names, rank, size, options);
  ArgosyMeeting meeting{};
  meeting.name = name.c_str();
  meeting.rank = rank;
  meeting.size = size;
  meeting.timeout_ms = options.timeout.count();
  meeting.towards = options.towards.c_str();
  meeting.store = &names;
  meeting.set = set_in;
  meeting.get = get_from;
  meeting.world_ranks = is_world ? nullptr : ranks.data();
  ArgosyCode code = ARGOSY_OK;
  Text why;
  group_ = library().argosy_group_make(&meeting, &code, why.get());
  if (group_ == nullptr) {
    fail(code, why.str());
  }
}

ProcessGroup::~ProcessGroup() {
  argosy::abi::free_group(group_);
}

std::string ProcessGroup::record() const {
  Text json;
  library().argosy_group_record(group_, json.get());
  return json.str();
}

ProcessGroup::TaskPtr ProcessGroup::submit(const Call& call, Tensors held, const ArgosyStep& step) {
  auto job = std::make_unique<Job>();
  job->step = step;
  job->held = std::move(held);
  auto work = std::make_shared<Work>(rank_, call.type, call.waits, job->ended.get_future().share());
  ArgosyOperation operation{};
  operation.name = call.name;
  operation.type = "";
  if (call.tensor != nullptr) {
    const NamedType* const type = find_type(*call.tensor);
    operation.type = type == nullptr ? "" : type->name;
    operation.elements = call.tensor->numel();
    operation.bytes = bytes_of(*call.tensor);
  }
  operation.waits = call.waits ? 1 : 0;
  operation.body = run_job;
  operation.then = end_job;
  operation.context = job.get();
  Text why;
  if (const int code = library().argosy_submit(group_, &operation, why.get()); code != ARGOSY_OK) {
    fail(code, why.str());
  }
  (void)job.release();  // end_job() has it, or had it
  if (call.waits) {
    work->Synchronize();
  }
  return work;
}

void ProcessGroup::check_single(const char* op, size_t inputs, size_t outputs) {
  ARGOSY_REQUIRE(
      inputs == 1 && outputs == 1,
      op << " of " << inputs << " tensors into " << outputs << ". Call it for each of them");
}

void ProcessGroup::check_rank(const char* op, int rank) const {
  ARGOSY_REQUIRE(rank >= 0 && rank < size_,
                 op << ": there is no rank " << rank << ", expected 0 to " << size_ - 1);
}

ProcessGroup::TaskPtr ProcessGroup::AllReduce(DenseTensor* out,
                                              const DenseTensor& in,
                                              const pd::AllreduceOptions& opts,
                                              bool sync) {
  check_both("all_reduce", *out, in, 1);
  const ArgosyStep step = reduces("all_reduce", ARGOSY_ALL_REDUCE, nullptr, *out, opts.reduce_op);
  put(out, in);
  return submit({"all_reduce", CommType::ALLREDUCE, sync, &in}, {*out}, step);
}

ProcessGroup::TaskPtr ProcessGroup::Broadcast(DenseTensor* out,
                                              const DenseTensor& in,
                                              const pd::BroadcastOptions& opts,
                                              bool sync) {
  check_both("broadcast", *out, in, 1);
  check_rank("broadcast", opts.source_rank);
  if (rank_ == opts.source_rank) {
    put(out, in);
  }
  return submit({"broadcast", CommType::BROADCAST, sync, &in},
                {*out},
                moves(ARGOSY_BROADCAST, nullptr, data_of(*out), bytes_of(*out), opts.source_rank));
}

ProcessGroup::TaskPtr ProcessGroup::Reduce(DenseTensor* out,
                                           const DenseTensor& in,
                                           const pd::ReduceOptions& opts,
                                           bool sync) {
  check_both("reduce", *out, in, 1);
  check_rank("reduce", opts.root_rank);
  ArgosyStep step = reduces("reduce", ARGOSY_REDUCE, nullptr, *out, opts.reduce_op);
  step.root = opts.root_rank;
  put(out, in);
  return submit({"reduce", CommType::REDUCE, sync, &in}, {*out}, step);
}

ProcessGroup::TaskPtr ProcessGroup::ReduceScatter(DenseTensor* out,
                                                  const DenseTensor& in,
                                                  const pd::ReduceScatterOptions& opts,
                                                  bool sync) {
  const char* const op = "reduce_scatter";
  check_both(op, in, *out, size_);
  const ArgosyStep step = reduces(op, ARGOSY_REDUCE_SCATTER, data_of(in), *out, opts.reduce_op);
  return submit({op, CommType::REDUCE_SCATTER, sync, &in}, {*out, in}, step);
}

ProcessGroup::TaskPtr ProcessGroup::Scatter(DenseTensor* out,
                                            const DenseTensor& in,
                                            const pd::ScatterOptions& opts,
                                            bool sync) {
  const int root = opts.root_rank;
  check_rank("scatter", root);
  if (rank_ == root) {
    check_both("scatter", in, *out, size_);
  } else {
    check("scatter", *out);
  }
  const char* const input = rank_ == root ? data_of(in) : nullptr;
  return submit({"scatter", CommType::SCATTER, sync, out},
                {*out, in},
                moves(ARGOSY_SCATTER, input, data_of(*out), bytes_of(*out), root));
}

ProcessGroup::TaskPtr ProcessGroup::Gather(DenseTensor* out,
                                           const DenseTensor& in,
                                           const pd::GatherOptions& opts,
                                           bool /*sync*/,
                                           bool /*calc*/) {
  const int root = opts.root_rank;
  check_rank("gather", root);
  if (rank_ == root) {
    check_both("gather", *out, in, size_);
  } else {
    check("gather", in);
  }
  char* const output = rank_ == root ? data_of(*out) : nullptr;
  return submit({"gather", CommType::GATHER, true, &in},
                {},
                moves(ARGOSY_GATHER, data_of(in), output, bytes_of(in), root));
}

ProcessGroup::TaskPtr ProcessGroup::AllGather(
    DenseTensor* out, const DenseTensor& in, int64_t offset, int64_t count, bool /*sync*/) {
  check("all_gather", in);
  check("all_gather", *out);
  const Part mine = part_of("all_gather", in, offset, count);
  ARGOSY_REQUIRE(in.dtype() == out->dtype() && bytes_of(*out) == mine.bytes * size_,
                 "all_gather of " << mine.bytes << " bytes of each of " << size_ << " ranks into "
                                  << bytes_of(*out) << ": expected one type, and as many bytes");
  return submit({"all_gather", CommType::ALLGATHER, true, &in},
                {},
                moves(ARGOSY_ALL_GATHER, mine.data, data_of(*out), mine.bytes));
}

ProcessGroup::Rows ProcessGroup::bytes_of_rows(const char* what,
                                               const DenseTensor& tensor,
                                               const Rows& rows) const {
  ARGOSY_REQUIRE(tensor.dims().size() > 0, "all_to_all: the " << what << " has no rows");
  const int64_t all = tensor.dims()[0];
  Rows bytes = rows;
  if (rows.empty()) {
    bytes.assign(static_cast<size_t>(size_), all / size_);
  }
  ARGOSY_REQUIRE(static_cast<int>(bytes.size()) == size_ &&
                     std::all_of(bytes.begin(), bytes.end(), [](int64_t n) { return n >= 0; }) &&
                     std::accumulate(bytes.begin(), bytes.end(), int64_t{0}) == all,
                 "all_to_all: the split sizes of the "
                     << what << " must be one for each of " << size_
                     << " ranks, not negative, and add up to " << all);
  for (int64_t& one : bytes) {
    one *= all == 0 ? 0 : bytes_of(tensor) / all;
  }
  return bytes;
}

ProcessGroup::TaskPtr ProcessGroup::AllToAll(DenseTensor* out,
                                             const DenseTensor& in,
                                             const Rows& out_rows,
                                             const Rows& in_rows,
                                             bool /*sync*/) {
  check("all_to_all", in);
  check("all_to_all", *out);
  ARGOSY_REQUIRE(in.dtype() == out->dtype(),
                 "all_to_all of " << in.dtype() << " into " << out->dtype());
  const Rows sends = bytes_of_rows("input", in, in_rows);
  const Rows receives = bytes_of_rows("output", *out, out_rows);
  check_exchange(sends, receives, rank_);
  return submit({"all_to_all", CommType::ALLTOALL, true, &in},
                {},
                exchanges(data_of(in), sends.data(), data_of(*out), receives.data()));
}

ProcessGroup::TaskPtr ProcessGroup::AllToAll(Tensors* outs, const Tensors& ins, bool /*sync*/) {
  const auto size = static_cast<size_t>(size_);
  ARGOSY_REQUIRE(outs->size() == size && ins.size() == size,
                 "all_to_all of " << ins.size() << " tensors into " << outs->size()
                                  << ": expected one for each of " << size << " ranks");
  const Rows sends = bytes_of_each("all_to_all", ins);
  const Rows receives = bytes_of_each("all_to_all", *outs);
  check_exchange(sends, receives, rank_);
  std::vector<char> input = memory_of(sends);
  std::vector<char> output = memory_of(receives);
  for_pieces(ins, input, [](const char* tensor, char* piece, size_t bytes) {
    std::memcpy(piece, tensor, bytes);
  });
  TaskPtr work = submit({"all_to_all", CommType::ALLTOALL, true, &ins.front()},
                        {},
                        exchanges(input.data(), sends.data(), output.data(), receives.data()));
  for_pieces(*outs, output, [](char* tensor, const char* piece, size_t bytes) {
    std::memcpy(tensor, piece, bytes);
  });
  return work;
}

ProcessGroup::TaskPtr ProcessGroup::Barrier(const pd::BarrierOptions& /*opts*/) {
  return submit({"barrier", CommType::BARRIER, true, nullptr},
                {},
                moves(ARGOSY_BARRIER, nullptr, nullptr, 0));
}

ProcessGroup::TaskPtr ProcessGroup::transfer(const Call& call,
                                             int peer,
                                             int64_t offset,
                                             int64_t count) {
  check(call.name, *call.tensor);
  check_rank(call.name, peer);
  ARGOSY_REQUIRE(peer != rank_, call.name << ": rank " << peer << " is this rank itself");
  const Part part = part_of(call.name, *call.tensor, offset, count);
  auto job = std::make_unique<Job>();
  job->held = {*call.tensor};
  auto work = std::make_shared<Work>(rank_, call.type, call.waits, job->ended.get_future().share());
  ArgosyTransfer wanted{};
  wanted.receives = call.type == CommType::RECV ? 1 : 0;
  wanted.data = part.data;
  wanted.bytes = static_cast<size_t>(part.bytes);
  wanted.peer = peer;
  wanted.then = end_job;
  wanted.context = job.get();
  Text why;
  if (const int code = library().argosy_transfer(group_, &wanted, why.get()); code != ARGOSY_OK) {
    fail(code, why.str());
  }
  (void)job.release();
  if (call.waits) {
    work->Synchronize();
  }
  return work;
}

ProcessGroup::TaskPtr ProcessGroup::Send(
    const DenseTensor& tensor, int to, int64_t offset, int64_t count, bool sync) {
  return transfer({"send", CommType::SEND, sync, &tensor}, to, offset, count);
}

ProcessGroup::TaskPtr ProcessGroup::Recv(
    DenseTensor* tensor, int from, int64_t offset, int64_t count, bool sync) {
  return transfer({"recv", CommType::RECV, sync, tensor}, from, offset, count);
}

}  // namespace argosy_paddle
