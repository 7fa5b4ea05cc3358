// A libnccl.so.2 for the second device: NCCL's functions between ranks that are threads or
// processes of this machine. It checks the rules that NCCL has and does not always check: one
// device for each rank, one thread at a time in a communicator, nothing called while it is in
// progress. Where ranks call different collectives it hangs, as NCCL does.
#include "tests/fake_nccl/fake_nccl.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fake_nccl/arithmetic.h"
#include "tests/fake_nccl/meeting_place.h"

namespace fake_nccl {
namespace {

using Bytes = MeetingPlace::Bytes;

enum Result {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
  kTimeout = 8,
};

constexpr int kOwnVersion = 22805;
constexpr int kFirstNonBlocking = 21400;
constexpr unsigned int kMagic = 0xcafebeef;
/// How long a call may stay in progress.
constexpr std::chrono::microseconds kProgress{200};
/// How long it takes to ask for errors: long enough to meet another thread's call.
constexpr std::chrono::microseconds kQuestion{30};
/// A message of up to this many bytes is sent when it is on its way.
constexpr size_t kEager = 4096;

struct UniqueId {
  char internal[128];
};
struct Config {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
};

/// A symbol of the program that loaded this library.
template <typename F>
F of_program(const char* name) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym is for
  auto function = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
  if (function == nullptr) {
    std::fprintf(stderr, "fake NCCL: the program lacks %s\n", name);
    std::abort();
  }
  return function;
}

void* host_address(const void* address) {
  static const auto find = of_program<FakeNcclHostAddress>("argosy_second_device_host_address");
  return find(address);
}

/// What tests ask for.
struct Wishes {
  std::mutex mutex;
  std::string function;
  int result = kSuccess;
  int skip = 0;
  std::string blocks;
  int skip_blocks = 0;
  int version = 0;
  std::map<std::string, int> calls;
};
Wishes& wishes() {
  static Wishes all;
  return all;
}

/// Counts a call. Returns what it must return by a test's wish; kSuccess: it goes on.
int called(const char* function) {
  Wishes& all = wishes();
  const std::lock_guard lock(all.mutex);
  ++all.calls[function];
  if (all.function != function || all.skip-- > 0) {
    return kSuccess;
  }
  all.function.clear();
  return all.result;
}

/// True if this call must block by a test's wish.
bool blocks(const char* function) {
  Wishes& all = wishes();
  const std::lock_guard lock(all.mutex);
  if (all.blocks != function || all.skip_blocks-- > 0) {
    return false;
  }
  all.blocks.clear();
  return true;
}

int version() {
  Wishes& all = wishes();
  const std::lock_guard lock(all.mutex);
  return all.version == 0 ? kOwnVersion : all.version;
}

std::string printable(const UniqueId& id) {
  return {id.internal, strnlen(id.internal, sizeof(id.internal))};
}

}  // namespace

struct Communicator {
  int rank = 0;
  int size = 1;
  int card = 0;
  bool blocking = true;
  std::unique_ptr<MeetingPlace> place;
  std::thread joining;
  std::atomic<bool> aborted{false};
  std::atomic<int> state{kSuccess};  // of the joining, or what failed later
  std::atomic<int> users{0};         // threads inside of a call
  std::atomic<int64_t> busy_until{0};
  std::atomic<int> on_device{0};  // pieces of work that are queued there
  std::atomic<bool> finalized{false};
  int64_t collectives = 0;
  std::map<int, int64_t> sent;
  std::map<int, int64_t> received;
  std::mt19937 draw{1};
  std::mutex error_mutex;
  std::string error;

  [[nodiscard]] bool ends() const { return aborted.load(); }
};

namespace {

std::string& last_error() {
  static thread_local std::string text;
  return text;
}

int refuse(Communicator* comm, int result, const std::string& why) {
  last_error() = why;
  if (comm != nullptr) {
    const std::lock_guard lock(comm->error_mutex);
    comm->error = why;
  }
  return result;
}

int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

/// One thread at a time, and none while the communicator is in progress.
class Use final {
 public:
  explicit Use(Communicator& comm) : comm_(comm), alone_(comm.users++ == 0) {}
  ~Use() { --comm_.users; }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  [[nodiscard]] int check_alone() const {
    return alone_ ? kSuccess : refuse(&comm_, kInvalidUsage, "two threads use one communicator");
  }
  [[nodiscard]] int check() const {
    if (const int state = check_alone(); state != kSuccess) {
      return state;
    }
    if (comm_.state == kInProgress || now() < comm_.busy_until) {
      return refuse(&comm_, kInvalidUsage, "the communicator is still in progress");
    }
    return comm_.state;
  }

 private:
  Communicator& comm_;
  const bool alone_;
};

/// The communicators of each card in this process.
class Cards final {
 public:
  void add(Communicator* comm) {
    const std::lock_guard lock(mutex_);
    all_.push_back(comm);
  }
  [[nodiscard]] bool is_busy(int card) {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(
        all_, [&](const Communicator* comm) { return comm->card == card && comm->on_device > 0; });
  }

 private:
  std::mutex mutex_;
  std::vector<Communicator*> all_;
};
Cards& cards() {
  static Cards of_process;
  return of_process;
}

struct Access {
  const void* address = nullptr;
  bool writes = false;
};

/// Queues `work` on the stream.
void enqueue(void* stream, std::function<void()> work, const std::vector<Access>& touched) {
  static const auto queue = of_program<FakeNcclEnqueue>("argosy_second_device_enqueue");
  std::vector<const void*> addresses;
  auto writes = std::make_unique<bool[]>(touched.size());  // NOLINT: a vector of bool is none
  for (size_t i = 0; i < touched.size(); ++i) {
    addresses.push_back(touched[i].address);
    writes[i] = touched[i].writes;
  }
  queue(
      stream,
      [](void* context) {
        const std::unique_ptr<std::function<void()>> run(
            static_cast<std::function<void()>*>(context));
        (*run)();
      },
      new std::function<void()>(std::move(work)),
      addresses.data(),
      writes.get(),
      static_cast<int>(touched.size()));
}

Bytes bytes_at(const void* address, size_t bytes) {
  const auto* const data = static_cast<const std::byte*>(host_address(address));
  return bytes == 0 ? Bytes() : Bytes(data, data + bytes);
}

void write_to(void* address, const std::byte* data, size_t bytes) {
  if (bytes > 0) {
    std::memcpy(host_address(address), data, bytes);
  }
}

/// What all ranks of a collective must say alike.
struct Header {
  std::array<char, 16> kind{};
  uint64_t count = 0;
  int type = 0;
  int op = 0;
  int root = 0;
};

/// A call that is not queued yet.
struct Pending {
  Communicator* comm = nullptr;
  void* stream = nullptr;
  bool is_message = false;
  std::function<void()> run{};  // on the stream
  std::vector<Access> touched{};
};

struct Group {
  int depth = 0;
  std::vector<Pending> pending{};
  std::vector<Communicator*> aborted{};
};
Group& group() {
  static thread_local Group of_thread;
  return of_thread;
}

/// Queues calls: messages of one communicator and stream together, as NCCL does, so that they do
/// not wait for each other.
void flush(std::vector<Pending> calls) {
  while (!calls.empty()) {
    Pending first = std::move(calls.front());
    calls.erase(calls.begin());
    Communicator* const comm = first.comm;
    ++comm->on_device;
    std::vector<std::function<void()>> together{std::move(first.run)};
    while (first.is_message && !calls.empty() && calls.front().is_message &&
           calls.front().comm == first.comm && calls.front().stream == first.stream) {
      together.push_back(std::move(calls.front().run));
      first.touched.insert(
          first.touched.end(), calls.front().touched.begin(), calls.front().touched.end());
      calls.erase(calls.begin());
    }
    enqueue(
        first.stream,
        [comm, together = std::move(together)] {
          std::vector<std::thread> threads;
          for (size_t i = 1; i < together.size(); ++i) {
            threads.emplace_back(together[i]);
          }
          together.front()();
          for (std::thread& thread : threads) {
            thread.join();
          }
          --comm->on_device;
        },
        first.touched);
  }
}

/// What a call returns that was queued well: in progress for a moment, some of the time.
int queued(Communicator& comm) {
  if (!comm.blocking && comm.draw() % 4 == 0) {
    comm.busy_until = now() + std::chrono::nanoseconds(kProgress).count();
    return kInProgress;
  }
  return kSuccess;
}

int submit(Pending call) {
  Communicator& comm = *call.comm;
  if (group().depth > 0) {
    group().pending.push_back(std::move(call));
    return kSuccess;
  }
  std::vector<Pending> one;
  one.push_back(std::move(call));
  flush(std::move(one));
  return queued(comm);
}

/// `finish` gets what each rank has put.
int collective(const char* function,
               Communicator* comm,
               void* stream,
               const Header& header,
               const void* from,
               size_t bytes,
               std::vector<Access> touched,
               std::function<void(const std::vector<Bytes>&)> finish) {
  if (const int wish = called(function); wish != kSuccess) {
    return refuse(comm, wish, std::string(function) + " was told to fail");
  }
  const Use use(*comm);
  if (const int state = use.check(); state != kSuccess) {
    return state;
  }
  if (blocks(function)) {
    while (!comm->ends()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return refuse(comm, kInternalError, "aborted");
  }
  const int64_t number = comm->collectives++;
  return submit(
      {.comm = comm,
       .stream = stream,
       .run =
           [=, finish = std::move(finish)] {
             const auto name = [&](int64_t at, int rank) {
               return "op-" + std::to_string(at) + "-" + std::to_string(rank);
             };
             Bytes mine(sizeof(Header));
             std::memcpy(mine.data(), &header, sizeof(header));
             const Bytes data = bytes_at(from, bytes);
             mine.insert(mine.end(), data.begin(), data.end());
             comm->place->put(name(number, comm->rank), mine);
             std::vector<Bytes> all;
             for (int rank = 0; rank < comm->size; ++rank) {
               Bytes theirs;
               if (!comm->place->get(name(number, rank), theirs, [&] { return comm->ends(); })) {
                 return;
               }
               while (std::memcmp(theirs.data(), &header, sizeof(header)) != 0) {
                 if (comm->ends()) {  // other calls than this: NCCL hangs
                   return;
                 }
                 std::this_thread::sleep_for(std::chrono::milliseconds(1));
               }
               theirs.erase(theirs.begin(), theirs.begin() + sizeof(header));
               all.push_back(std::move(theirs));
             }
             finish(all);
             if (number > 0) {  // all have come to this one, so all have read that before it
               comm->place->remove(name(number - 1, comm->rank));
             }
           },
       .touched = std::move(touched)});
}

Header header_of(const char* kind, size_t count, int type = 0, int op = 0, int root = 0) {
  Header header;
  std::strncpy(header.kind.data(), kind, header.kind.size() - 1);
  header.count = count;
  header.type = type;
  header.op = op;
  header.root = root;
  return header;
}

int message(const char* function,
            Communicator* comm,
            void* stream,
            void* data,
            size_t bytes,
            int peer,
            bool sends) {
  if (const int wish = called(function); wish != kSuccess) {
    return refuse(comm, wish, std::string(function) + " was told to fail");
  }
  const Use use(*comm);
  if (const int state = use.check(); state != kSuccess) {
    return state;
  }
  if (peer < 0 || peer >= comm->size) {
    return refuse(comm, kInvalidArgument, "no such peer");
  }
  const int64_t number = sends ? comm->sent[peer]++ : comm->received[peer]++;
  const int from = sends ? comm->rank : peer;
  const int to = sends ? peer : comm->rank;
  const std::string name =
      "message-" + std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(number);
  return submit({.comm = comm,
                 .stream = stream,
                 .is_message = true,
                 .run =
                     [=] {
                       const auto ends = [&] { return comm->ends(); };
                       if (sends) {
                         comm->place->put(name, bytes_at(data, bytes));
                         if (bytes > kEager) {
                           (void)comm->place->wait_until_gone(name, ends);
                         }
                         return;
                       }
                       Bytes got;
                       if (comm->place->get(name, got, ends)) {
                         while (got.size() != bytes && !ends()) {  // another size: NCCL hangs
                           std::this_thread::sleep_for(std::chrono::milliseconds(1));
                         }
                         if (got.size() == bytes) {
                           write_to(data, got.data(), bytes);
                           comm->place->remove(name);
                         }
                       }
                     },
                 .touched = {{data, !sends}}});
}

/// What a host is to NCCL.
std::string host_of_process() {
  const char* const told = std::getenv("NCCL_HOSTID");  // NOLINT(concurrency-mt-unsafe)
  if (told != nullptr && *told != '\0') {
    return told;
  }
  std::array<char, HOST_NAME_MAX + 1> host{};
  (void)gethostname(host.data(), host.size() - 1);
  return host.data();
}

/// Waits for all ranks, and compares where they are.
void join(Communicator& comm) {
  const auto name = [](int rank) { return "join-" + std::to_string(rank); };
  const std::string where = host_of_process() + " " + std::to_string(comm.card);
  const auto* const begin = reinterpret_cast<const std::byte*>(where.data());  // NOLINT
  comm.place->put(name(comm.rank), Bytes(begin, begin + where.size()));
  std::vector<std::string> all;
  for (int rank = 0; rank < comm.size; ++rank) {
    Bytes theirs;
    if (!comm.place->get(name(rank), theirs, [&] { return comm.ends(); })) {
      comm.state = kRemoteError;
      return;
    }
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): text
    all.emplace_back(reinterpret_cast<const char*>(theirs.data()), theirs.size());
  }
  for (int rank = 0; rank < comm.size; ++rank) {
    const auto same = std::ranges::find(all, all[static_cast<size_t>(rank)]);
    const auto other = static_cast<int>(same - all.begin());
    if (other != rank) {
      comm.state =
          refuse(&comm,
                 kInvalidUsage,
                 "Duplicate GPU detected : rank " + std::to_string(rank) + " and rank " +
                     std::to_string(other) + " both on card " + all[static_cast<size_t>(rank)]);
      return;
    }
  }
  comm.state = kSuccess;
}

int init(const char* function,
         Communicator** comm,
         int size,
         const UniqueId& id,
         int rank,
         bool blocking) {
  if (const int wish = called(function); wish != kSuccess) {
    return refuse(nullptr, wish, std::string(function) + " was told to fail");
  }
  if (size < 1 || rank < 0 || rank >= size) {
    return refuse(nullptr, kInvalidArgument, "a rank that does not fit");
  }
  static const auto current_card = of_program<FakeNcclCurrentCard>("argosy_second_device_current");
  auto made = std::make_unique<Communicator>();
  made->rank = rank;
  made->size = size;
  made->card = current_card();
  made->blocking = blocking;
  made->place = std::make_unique<MeetingPlace>(printable(id));
  made->draw.seed(static_cast<unsigned int>(rank + 1));
  made->state = kInProgress;
  *comm = made.release();
  cards().add(*comm);
  if (blocking) {
    join(**comm);
    return (*comm)->state;
  }
  (*comm)->joining = std::thread([it = *comm] { join(*it); });
  return kInProgress;
}

/// The last rank that goes clears the meeting place.
void leave(Communicator* comm) {
  if (comm->joining.joinable()) {
    comm->joining.join();
  }
  const auto name = [](int rank) { return "gone-" + std::to_string(rank); };
  comm->place->put(name(comm->rank), {});
  bool last = true;
  for (int rank = 0; rank < comm->size && last; ++rank) {
    Bytes nothing;
    last = comm->place->get(name(rank), nothing, [] { return true; });
  }
  if (last) {
    comm->place->clear();
  }
  // Never freed: what is queued on a device may still look whether it was aborted.
}

/// Frees memory of the device, as NCCL does then: so it waits for all that the device has to do, of
/// other communicators too.
void end(Communicator* comm) {
  leave(comm);
  while (cards().is_busy(comm->card)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void abort_all(const std::vector<Communicator*>& communicators) {
  for (Communicator* const comm : communicators) {
    comm->aborted = true;
  }
  for (Communicator* const comm : communicators) {
    end(comm);
  }
}

}  // namespace
}  // namespace fake_nccl

// NCCL's own names and types, as a program that knows them only from the outside would call them.
// NOLINTBEGIN(readability-identifier-naming)
using fake_nccl::Bytes;
using fake_nccl::Communicator;

extern "C" {

void fake_nccl_block(const char* function, int skip) {
  auto& all = fake_nccl::wishes();
  const std::lock_guard lock(all.mutex);
  all.blocks = function;
  all.skip_blocks = skip;
}

void fake_nccl_fail(const char* function, int result, int skip) {
  auto& all = fake_nccl::wishes();
  const std::lock_guard lock(all.mutex);
  all.function = function;
  all.result = result;
  all.skip = skip;
}

int fake_nccl_calls(const char* function) {
  auto& all = fake_nccl::wishes();
  const std::lock_guard lock(all.mutex);
  return all.calls[function];
}

void fake_nccl_set_version(int version) {
  auto& all = fake_nccl::wishes();
  const std::lock_guard lock(all.mutex);
  all.version = version;
}

int ncclGetVersion(int* version) {
  *version = fake_nccl::version();
  return fake_nccl::called("ncclGetVersion");
}

int ncclGetUniqueId(fake_nccl::UniqueId* id) {
  static std::atomic<int> number{0};
  std::memset(id, 0, sizeof(*id));
  std::snprintf(id->internal, sizeof(id->internal), "%d-%d", getpid(), number++);
  return fake_nccl::called("ncclGetUniqueId");
}

const char* ncclGetErrorString(int result) {
  switch (result) {
    case fake_nccl::kSuccess:
      return "no error";
    case fake_nccl::kUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case fake_nccl::kSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case fake_nccl::kInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case fake_nccl::kInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case fake_nccl::kInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case fake_nccl::kRemoteError:
      return "remote process exited or there was a network error";
    case fake_nccl::kInProgress:
      return "NCCL operation in progress";
    case fake_nccl::kTimeout:
      return "timeout";
    default:
      return "unknown result code";
  }
}

const char* ncclGetLastError(Communicator* comm) {
  if (comm != nullptr) {
    const std::lock_guard lock(comm->error_mutex);
    fake_nccl::last_error() = comm->error;
  }
  return fake_nccl::last_error().c_str();
}

int ncclCommInitRank(Communicator** comm, int size, fake_nccl::UniqueId id, int rank) {
  return fake_nccl::init("ncclCommInitRank", comm, size, id, rank, true);
}

int ncclCommInitRankConfig(Communicator** comm,
                           int size,
                           fake_nccl::UniqueId id,
                           int rank,
                           const fake_nccl::Config* config) {
  if (config->magic != fake_nccl::kMagic || config->size < sizeof(fake_nccl::Config) ||
      config->version < static_cast<unsigned int>(fake_nccl::kFirstNonBlocking)) {
    return fake_nccl::refuse(nullptr, fake_nccl::kInvalidArgument, "a config that was not set up");
  }
  return fake_nccl::init("ncclCommInitRankConfig", comm, size, id, rank, config->blocking != 0);
}

/// In progress until the device has done all that was queued.
int ncclCommFinalize(Communicator* comm) {
  if (const int wish = fake_nccl::called("ncclCommFinalize"); wish != fake_nccl::kSuccess) {
    return wish;
  }
  comm->finalized = true;
  return comm->on_device > 0 ? static_cast<int>(fake_nccl::kInProgress) : fake_nccl::queued(*comm);
}

int ncclCommDestroy(Communicator* comm) {
  fake_nccl::end(comm);
  return fake_nccl::called("ncclCommDestroy");
}

int ncclCommAbort(Communicator* comm) {
  if (fake_nccl::group().depth > 0) {
    fake_nccl::group().aborted.push_back(comm);
  } else {
    fake_nccl::abort_all({comm});
  }
  return fake_nccl::called("ncclCommAbort");
}

/// It may end what is in progress, so it counts as a use of the communicator.
int ncclCommGetAsyncError(Communicator* comm, int* error) {
  const fake_nccl::Use use(*comm);
  if (const int state = use.check_alone(); state != fake_nccl::kSuccess) {
    comm->state = state;
  }
  std::this_thread::sleep_for(fake_nccl::kQuestion);
  if (const int wish = fake_nccl::called("async"); wish != fake_nccl::kSuccess) {
    comm->state = fake_nccl::refuse(comm, wish, "told to fail");
  }
  const bool in_progress =
      fake_nccl::now() < comm->busy_until || (comm->finalized && comm->on_device > 0);
  *error = comm->state == fake_nccl::kSuccess && in_progress
               ? static_cast<int>(fake_nccl::kInProgress)
               : comm->state.load();
  return fake_nccl::called("ncclCommGetAsyncError");
}

int ncclAllReduce(
    const void* from, void* to, size_t count, int type, int op, Communicator* comm, void* stream) {
  const size_t bytes = count * fake_nccl::size_of(type);
  return fake_nccl::collective("ncclAllReduce",
                               comm,
                               stream,
                               fake_nccl::header_of("all_reduce", count, type, op),
                               from,
                               bytes,
                               {{from, false}, {to, true}},
                               [=](const std::vector<Bytes>& all) {
                                 const Bytes sum = fake_nccl::combined(all, type, op);
                                 fake_nccl::write_to(to, sum.data(), bytes);
                               });
}

int ncclReduce(const void* from,
               void* to,
               size_t count,
               int type,
               int op,
               int root,
               Communicator* comm,
               void* stream) {
  const size_t bytes = count * fake_nccl::size_of(type);
  std::vector<fake_nccl::Access> touched{{from, false}};
  if (comm->rank == root) {
    touched.push_back({to, true});
  }
  return fake_nccl::collective("ncclReduce",
                               comm,
                               stream,
                               fake_nccl::header_of("reduce", count, type, op, root),
                               from,
                               bytes,
                               touched,
                               [=](const std::vector<Bytes>& all) {
                                 if (comm->rank == root) {
                                   const Bytes sum = fake_nccl::combined(all, type, op);
                                   fake_nccl::write_to(to, sum.data(), bytes);
                                 }
                               });
}

int ncclReduceScatter(
    const void* from, void* to, size_t count, int type, int op, Communicator* comm, void* stream) {
  const size_t bytes = count * fake_nccl::size_of(type);
  return fake_nccl::collective(
      "ncclReduceScatter",
      comm,
      stream,
      fake_nccl::header_of("reduce_scatter", count, type, op),
      from,
      bytes * static_cast<size_t>(comm->size),
      {{from, false}, {to, true}},
      [=](const std::vector<Bytes>& all) {
        const Bytes sum = fake_nccl::combined(all, type, op);
        fake_nccl::write_to(to, sum.data() + static_cast<size_t>(comm->rank) * bytes, bytes);
      });
}

int ncclBroadcast(const void* from,
                  void* to,
                  size_t count,
                  int type,
                  int root,
                  Communicator* comm,
                  void* stream) {
  const size_t bytes = count * fake_nccl::size_of(type);
  const bool gives = comm->rank == root;
  std::vector<fake_nccl::Access> touched{{to, true}};
  if (gives) {
    touched.push_back({from, false});
  }
  return fake_nccl::collective("ncclBroadcast",
                               comm,
                               stream,
                               fake_nccl::header_of("broadcast", count, type, 0, root),
                               from,
                               gives ? bytes : 0,
                               touched,
                               [=](const std::vector<Bytes>& all) {
                                 fake_nccl::write_to(
                                     to, all[static_cast<size_t>(root)].data(), bytes);
                               });
}

int ncclAllGather(
    const void* from, void* to, size_t count, int type, Communicator* comm, void* stream) {
  const size_t bytes = count * fake_nccl::size_of(type);
  return fake_nccl::collective(
      "ncclAllGather",
      comm,
      stream,
      fake_nccl::header_of("all_gather", count, type),
      from,
      bytes,
      {{from, false}, {to, true}},
      [=](const std::vector<Bytes>& all) {
        for (size_t rank = 0; rank < all.size(); ++rank) {
          fake_nccl::write_to(static_cast<std::byte*>(to) + rank * bytes, all[rank].data(), bytes);
        }
      });
}

int ncclSend(const void* from, size_t count, int type, int peer, Communicator* comm, void* stream) {
  return fake_nccl::message("ncclSend",
                            comm,
                            stream,
                            const_cast<void*>(from),  // NOLINT: it is only read
                            count * fake_nccl::size_of(type),
                            peer,
                            true);
}

int ncclRecv(void* to, size_t count, int type, int peer, Communicator* comm, void* stream) {
  return fake_nccl::message(
      "ncclRecv", comm, stream, to, count * fake_nccl::size_of(type), peer, false);
}

int ncclGroupStart() {
  ++fake_nccl::group().depth;
  return fake_nccl::called("ncclGroupStart");
}

int ncclGroupEnd() {
  auto& group = fake_nccl::group();
  if (group.depth == 0) {
    return fake_nccl::refuse(nullptr, fake_nccl::kInvalidUsage, "no group was started");
  }
  if (--group.depth > 0) {
    return fake_nccl::kSuccess;
  }
  fake_nccl::abort_all(std::exchange(group.aborted, {}));
  std::vector<fake_nccl::Pending> calls = std::exchange(group.pending, {});
  if (const int wish = fake_nccl::called("ncclGroupEnd"); wish != fake_nccl::kSuccess) {
    return wish;
  }
  Communicator* const comm = calls.empty() ? nullptr : calls.front().comm;
  fake_nccl::flush(std::move(calls));
  return comm == nullptr ? static_cast<int>(fake_nccl::kSuccess) : fake_nccl::queued(*comm);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
