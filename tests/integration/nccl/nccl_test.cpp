/// What holds for NCCL's transport alone, over the fake libnccl.so.2: what the library is asked to
/// do, what it says when it fails, and how ranks agree on it.
#include "argosy/transport/nccl/nccl.h"

#include <dlfcn.h>
#include <signal.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/comm/device_queues.h"
#include "argosy/rendezvous/file_store.h"
#include "argosy/rendezvous/in_process_store.h"

#include "tests/fake_nccl/fake_nccl.h"
#include "tests/support/held_stream.h"
#include "tests/support/looked_at_store.h"
#include "tests/support/run_ranks.h"
#include "tests/support/second_device.h"
#include "tests/support/staged_transport.h"
#include "tests/support/stream_order.h"
#include "tests/support/temp_dir.h"

namespace argosy::transport {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr Timeout kTimeout = 20s;
constexpr int kBlocks = 22605;  // a version whose calls do not return before other ranks make them

/// A function of the fake library, which is in the process once.
template <typename F>
F* of_fake(const char* name) {
  void* const handle = dlopen(ARGOSY_FAKE_NCCL, RTLD_NOW | RTLD_LOCAL);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym is for
  return reinterpret_cast<F*>(dlsym(handle, name));
}
void fail(const char* function, int result, int skip) {
  of_fake<decltype(fake_nccl_fail)>("fake_nccl_fail")(function, result, skip);
}
void block(const char* function, int skip) {
  of_fake<decltype(fake_nccl_block)>("fake_nccl_block")(function, skip);
}
int calls(const char* function) {
  return of_fake<decltype(fake_nccl_calls)>("fake_nccl_calls")(function);
}
void set_version(int version) {
  of_fake<decltype(fake_nccl_set_version)>("fake_nccl_set_version")(version);
}

/// A device that fails when a test says so, and notes what it is asked for.
struct Faults {
  std::atomic<bool> marks{false};
  std::atomic<bool> entry{false};
  std::function<void()> on_entry{};
  static void check(const std::atomic<bool>& fault) {
    if (fault) {
      throw std::runtime_error("the card fell off the bus");
    }
  }
  void note(const char* asked) {
    const std::lock_guard lock(mutex_);
    asked_.emplace_back(asked);
  }
  std::vector<std::string> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> asked_;
};

class FaultyQueue final : public DeviceQueue {
 public:
  FaultyQueue(std::unique_ptr<DeviceQueue> inner, Faults& faults)
      : inner_(std::move(inner)), faults_(faults) {}
  [[nodiscard]] void* handle() const override { return inner_->handle(); }
  [[nodiscard]] std::shared_ptr<void> enter() const override {
    Faults::check(faults_.entry);
    if (faults_.on_entry) {
      faults_.on_entry();
    }
    return inner_->enter();
  }
  [[nodiscard]] std::shared_ptr<DeviceMark> mark() override { return inner_->mark(); }
  [[nodiscard]] std::shared_ptr<DeviceMark> mark_of_caller() const override {
    Faults::check(faults_.marks);
    return inner_->mark_of_caller();
  }
  void follow(DeviceMark& place) override { inner_->follow(place); }
  [[nodiscard]] std::shared_ptr<void> allocate(int64_t bytes) override {
    faults_.note("allocate");
    return inner_->allocate(bytes);
  }
  void copy(void* to, const void* from, int64_t bytes) override { inner_->copy(to, from, bytes); }
  void prepare(const Terms& terms, DType dtype, ReduceOp op) override {
    faults_.note("prepare");
    inner_->prepare(terms, dtype, op);
  }
  void reduce(
      const Terms& terms, void* destination, int64_t count, DType dtype, ReduceOp op) override {
    faults_.note("reduce");
    inner_->reduce(terms, destination, count, dtype, op);
  }

 private:
  const std::unique_ptr<DeviceQueue> inner_;
  Faults& faults_;
};

class FaultyQueues final : public DeviceQueues {
 public:
  FaultyQueues(std::shared_ptr<DeviceQueues> inner, Faults& faults)
      : inner_(std::move(inner)), faults_(faults) {}
  [[nodiscard]] std::unique_ptr<DeviceQueue> make() override {
    return std::make_unique<FaultyQueue>(inner_->make(), faults_);
  }
  [[nodiscard]] std::string address() const override { return inner_->address(); }
  [[nodiscard]] bool wants_exact() const override { return inner_->wants_exact(); }

 private:
  const std::shared_ptr<DeviceQueues> inner_;
  Faults& faults_;
};

/// Waits for the end of a collective.
class End final : public CollectiveListener {
 public:
  void started() override {}
  void ended(std::exception_ptr error) override {
    if (error != nullptr) {
      done_.set_exception(error);
    } else {
      done_.set_value();
    }
  }
  void wait() { done_.get_future().get(); }

 private:
  std::promise<void> done_;
};

class Nccl : public ::testing::Test {
 protected:
  void SetUp() override {
    (void)test::StreamOrder::of_process().take_race();  // of work that the last test has aborted
    comm::set_stream_handle(test::second_device().type(), &test::handle_of, [](c10::Device card) {
      return card.str();
    });
  }
  void TearDown() override {
    fail("", 0, 0);
    block("", 0);
    set_version(0);
  }

  /// One where no test has aborted work that may use freed memory.
  static c10::Device quiet_card(int rank) { return test::second_device(4 + rank); }
  /// Never freed: work that was aborted may use it, and nothing waits for that.
  static at::Tensor on(c10::Device card, float value, int64_t count = 1) {
    static std::mutex mutex;
    static std::vector<at::Tensor> all;
    const std::lock_guard lock(mutex);
    return all.emplace_back(at::full({count}, value, at::TensorOptions(card)));
  }
  static NcclOptions options_on(c10::Device card) {
    return {.library = ARGOSY_FAKE_NCCL,
            .queues = comm::queues_of(card),
            .timeout = 10s,
            .patience = 100ms};
  }
  using Body = std::function<void(Transport&)>;
  using Change = std::function<void(int rank, NcclOptions&)>;

  static std::vector<test::RankOutcome> try_run(
      int ranks, const Body& body, const Change& change = [](int, NcclOptions&) {}) {
    const auto store = rendezvous::in_process_store();
    return test::try_run_ranks(ranks, [&](int rank) {
      const c10::Device card = test::second_device(rank);
      NcclOptions options = options_on(card);
      change(rank, options);
      const auto transport = test::staged(make_nccl(store, rank, ranks, options));
      body(*transport);
    });
  }
  static void expect_messages_work(int version, int made);
  static std::vector<test::RankOutcome> try_processes(int ranks, const Body& body);
  static void run(
      int ranks, const Body& body, const Change& change = [](int, NcclOptions&) {}) {
    for (const test::RankOutcome& outcome : try_run(ranks, body, change)) {
      EXPECT_TRUE(outcome.ok()) << describe(outcome);
    }
  }
};

TEST_F(Nccl, AddsByItsOwnFunctionsWhereThatIsWhatItComputes) {
  const auto sums = [](Transport& t) {
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kProduct}) {
      float value = 0.1F * static_cast<float>(t.rank() + 1);
      t.all_reduce(&value, 1, DType::kF32, op, kTimeout);
      const float wanted = op == ReduceOp::kSum ? 0.6F : op == ReduceOp::kAvg ? 0.2F : 0.006F;
      EXPECT_NEAR(value, wanted, 1e-6F);
    }
    int64_t most = t.rank();
    t.all_reduce(&most, 1, DType::kI64, ReduceOp::kMax, kTimeout);
    EXPECT_EQ(most, 2);
    float on_root = 1;
    t.reduce(&on_root, 1, DType::kF32, ReduceOp::kSum, 1, kTimeout);
    EXPECT_EQ(on_root, t.rank() == 1 ? 3 : 1);
    const std::vector<int32_t> all{1, 2, 3};
    int32_t part = 0;
    t.reduce_scatter(all.data(), &part, 1, DType::kI32, ReduceOp::kSum, kTimeout);
    EXPECT_EQ(part, 3 * (t.rank() + 1));
  };
  run(3, sums);
  EXPECT_EQ(calls("ncclAllReduce"), 3 * 4);
  EXPECT_EQ(calls("ncclReduce"), 3);
  EXPECT_EQ(calls("ncclReduceScatter"), 3);
  // And in the exact mode none of them.
  run(3, sums, [](int, NcclOptions& options) { options.mode = [] { return NcclMode::kExact; }; });
  EXPECT_EQ(calls("ncclAllReduce"), 3 * 4);
  EXPECT_EQ(calls("ncclReduce"), 3);
  EXPECT_EQ(calls("ncclReduceScatter"), 3);
}

/// The library knows each type by a number of its own.
TEST_F(Nccl, AddsEachTypeByItsOwnFunctions) {
  const int before = calls("ncclAllReduce");
  run(3, [](Transport& t) {
    uint16_t half = 0x3e00, brain = 0x3fc0;  // 1.5
    t.all_reduce(&half, 1, DType::kF16, ReduceOp::kSum, kTimeout);
    t.all_reduce(&brain, 1, DType::kBf16, ReduceOp::kSum, kTimeout);
    EXPECT_EQ(half, 0x4480);  // 4.5
    EXPECT_EQ(brain, 0x4090);
    double wide = 0.5;
    t.all_reduce(&wide, 1, DType::kF64, ReduceOp::kSum, kTimeout);
    EXPECT_EQ(wide, 1.5);
    auto sign = static_cast<int8_t>(t.rank() - 1);
    t.all_reduce(&sign, 1, DType::kI8, ReduceOp::kMax, kTimeout);
    EXPECT_EQ(sign, 1);
    uint8_t large = t.rank() == 0 ? 200 : 1;
    t.all_reduce(&large, 1, DType::kU8, ReduceOp::kMax, kTimeout);
    EXPECT_EQ(large, 200);
    int32_t whole = 1 << 20;
    t.all_reduce(&whole, 1, DType::kI32, ReduceOp::kSum, kTimeout);
    EXPECT_EQ(whole, 3 << 20);
  });
  EXPECT_EQ(calls("ncclAllReduce"), before + 3 * 6);
}

TEST_F(Nccl, IsExactInWhatTheLibraryHasNoOperationFor) {
  const int before = calls("ncclAllReduce");
  run(3, [](Transport& t) {
    float least = t.rank() == 1 ? std::numeric_limits<float>::quiet_NaN() : 1;
    t.all_reduce(&least, 1, DType::kF32, ReduceOp::kMin, kTimeout);
    EXPECT_TRUE(std::isnan(least));
    int8_t average = 100;
    t.all_reduce(&average, 1, DType::kI8, ReduceOp::kAvg, kTimeout);
    EXPECT_EQ(average, 100);
    uint8_t any = t.rank() == 2 ? 7 : 0;
    t.all_reduce(&any, 1, DType::kBool, ReduceOp::kSum, kTimeout);
    EXPECT_EQ(any, 1);
    int32_t bits = 1 << t.rank();
    t.all_reduce(&bits, 1, DType::kI32, ReduceOp::kBor, kTimeout);
    EXPECT_EQ(bits, 7);
  });
  EXPECT_EQ(calls("ncclAllReduce"), before);
}

/// The library knows one part for each rank only.
TEST_F(Nccl, IsExactInSumsOverVirtualRanks) {
  const int before = calls("ncclAllReduce");
  run(2, [](Transport& t) {
    const LeafDeal deal = LeafDeal::in_ranges(3, 2);  // two of them on rank 0, which has added them
    float value = t.rank() == 0 ? 4 : 5;
    const std::vector<const void*> nodes{&value};
    const std::vector<void*> sums{&value};
    t.all_reduce({deal, nodes, sums}, 1, DType::kF32, ReduceOp::kAvg, kTimeout);
    EXPECT_EQ(value, 3);
  });
  EXPECT_EQ(calls("ncclAllReduce"), before);
}

/// To load a kernel waits for all work of the device: behind the exchange that is for other ranks.
TEST_F(Nccl, LoadsWhatASumNeedsBeforeItsExchange) {
  Faults queue_of_one;
  const auto store = rendezvous::in_process_store();
  test::run_ranks(2, [&](int rank) {
    NcclOptions options = options_on(quiet_card(rank));
    options.mode = [] { return NcclMode::kExact; };
    if (rank == 1) {
      options.queues = std::make_shared<FaultyQueues>(options.queues, queue_of_one);
    }
    const auto transport = make_nccl(store, rank, 2, options);
    constexpr int64_t kCount = 128;  // both ranks have a share
    const at::Tensor value = on(quiet_card(rank), 1, kCount);
    transport->all_reduce(value.data_ptr(), kCount, DType::kF32, ReduceOp::kSum, kTimeout);
    transport->queue()->mark()->hold_caller();
    EXPECT_TRUE(value.cpu().equal(at::full({kCount}, 2.0F)));
  });
  EXPECT_THAT(queue_of_one.asked(), ElementsAre("prepare", "allocate", "reduce"));
}

/// Nothing waits but the device: a rank goes on although no other has come.
TEST_F(Nccl, QueuesACollectiveAndReturns) {
  const auto store = rendezvous::in_process_store();
  std::atomic<bool> returned{false};
  test::run_ranks(2, [&](int rank) {
    const c10::Device card = test::second_device(rank);
    const auto transport = make_nccl(store, rank, 2, options_on(card));
    const at::Tensor value = at::full({3}, rank + 1, at::TensorOptions(card).dtype(at::kFloat));
    if (rank == 1) {
      const Deadline deadline = Deadline::after(kTimeout);
      while (!returned && !deadline.expired()) {
        std::this_thread::yield();
      }
    }
    transport->all_reduce(value.data_ptr(), 3, DType::kF32, ReduceOp::kSum, kTimeout);
    if (rank == 0) {
      returned = true;
    }
    transport->queue()->mark()->hold_caller();
    EXPECT_TRUE(value.cpu().equal(at::full({3}, 3.0F)));
  });
}

TEST_F(Nccl, NamesRanksThatCallDifferently) {
  const auto outcomes = try_run(3, [](Transport& t) {
    std::vector<float> values(8, 1.0F);
    t.barrier(kTimeout);
    t.all_reduce(values.data(), t.rank() == 1 ? 8 : 4, DType::kF32, ReduceOp::kSum, 800ms);
  });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
    EXPECT_THAT(outcome.error,
                AllOf(HasSubstr("all_reduce of 32 B of f32 (sum)"),
                      HasSubstr("all_reduce of 16 B of f32 (sum)")));
  }
}

TEST_F(Nccl, OfOtherVersionsIsNotMixed) {
  const test::TempDir folder;
  const auto outcomes = test::try_run_ranks(
      2,
      [&](int rank) {
        set_version(rank == 0 ? 22105 : 21803);
        (void)make_nccl(rendezvous::file_store((folder.path() / "store").string()),
                        rank,
                        2,
                        options_on(test::second_device(rank)));
      },
      {.mode = test::RankMode::kProcesses});
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("2.21.5"), HasSubstr("2.18.3")));
  }
}

TEST_F(Nccl, InOtherModesIsNotMixed) {
  const auto outcomes = try_run(
      2,
      [](Transport&) {},
      [](int rank, NcclOptions& options) {
        options.mode = [rank] { return rank == 0 ? NcclMode::kNative : NcclMode::kExact; };
      });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("mode native"), HasSubstr("mode exact")));
  }
}

TEST_F(Nccl, InOtherModesLaterIsNamed) {
  std::atomic<int> together{0};
  const auto outcomes = try_run(
      2,
      [&](Transport& t) {
        float value = 1;
        t.all_reduce(&value, 1, DType::kF32, ReduceOp::kSum, kTimeout);
        ++together;
        t.barrier(kTimeout);
        t.all_reduce(&value, 1, DType::kF32, ReduceOp::kSum, 800ms);
      },
      [&](int rank, NcclOptions& options) {
        options.mode = [&together, rank] {
          return rank == 1 && together == 2 ? NcclMode::kExact : NcclMode::kNative;
        };
      });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
    EXPECT_THAT(outcome.error, HasSubstr("only rank 1 wants exact sums"));
  }
}

TEST_F(Nccl, IsRefusedByAllWhereOneRankCannot) {
  const auto outcomes = try_run(
      3,
      [](Transport&) {},
      [](int rank, NcclOptions& options) {
        if (rank == 2) {
          options.queues = nullptr;
          options.refusal = "it is an abacus";
        }
      });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error_type, "argosy::ConfigError") << describe(outcome);
    EXPECT_THAT(outcome.error, HasSubstr("rank 2: [transport.nccl] it is an abacus"));
  }
}

TEST_F(Nccl, AsksTheStoreNowAndThenWhileItConnects) {
  const auto store = rendezvous::in_process_store();
  std::atomic<int> looks{0};
  std::atomic<bool> connects{true};
  Faults slow;
  slow.on_entry = [&] { std::this_thread::sleep_for(connects ? 1s : 0s); };
  test::run_ranks(2, [&](int rank) {
    NcclOptions options = options_on(test::second_device(rank));
    if (rank == 0) {
      (void)make_nccl(
          std::make_shared<test::LookedAtStore>(store, [&] { ++looks; }), 0, 2, options);
      return;
    }
    // It comes late, but not to the store.
    options.queues = std::make_shared<FaultyQueues>(options.queues, slow);
    const auto transport = make_nccl(store, 1, 2, options);
    connects = false;
  });
  EXPECT_LT(looks, 40);
}

TEST_F(Nccl, ThatARankLacksIsToldByAll) {
  const auto outcomes = try_run(
      3,
      [](Transport&) {},
      [](int rank, NcclOptions& options) {
        if (rank == 1) {
          options.library = "/no/such/libnccl.so.2";
        }
      });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error_type, "argosy::ConfigError") << describe(outcome);
    EXPECT_THAT(outcome.error,
                AllOf(HasSubstr("rank 1"),
                      HasSubstr("/no/such/libnccl.so.2"),
                      HasSubstr("ARGOSY_NCCL_LIBRARY")));
  }
}

TEST_F(Nccl, TakesOneRankOnEachDevice) {
  const auto outcomes = try_run(
      3,
      [](Transport&) {},
      [](int rank, NcclOptions& options) {
        options.queues = comm::queues_of(test::second_device(rank == 2 ? 1 : rank));
      });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error_type, "argosy::ConfigError") << describe(outcome);
    EXPECT_THAT(outcome.error,
                HasSubstr("rank 1 and rank 2 are on one device of their host, " +
                          test::second_device(1).str()));
  }
}

/// Where nobody knows which devices they are, the library does.
TEST_F(Nccl, RefusesTwoRanksOnOneDevice) {
  comm::set_stream_handle(test::second_device().type(), &test::handle_of);
  const auto outcomes = try_run(
      2,
      [](Transport&) {},
      [](int, NcclOptions& options) { options.queues = comm::queues_of(test::second_device(3)); });
  for (const test::RankOutcome& outcome : outcomes) {
    EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
    EXPECT_THAT(outcome.error, HasSubstr("Duplicate GPU"));
  }
}

/// Before 2.27 a communicator is made and ended by calls that block.
TEST_F(Nccl, OfBefore2_27Blocks) {
  for (const int version : {21306, kBlocks}) {
    expect_messages_work(version, 0);
  }
  expect_messages_work(22703, 3 + 2 * 2);
}

/// `made`: communicators by the call that does not block.
void Nccl::expect_messages_work(int version, int made) {
  set_version(version);
  const int before = calls("ncclCommInitRankConfig");
  run(3, [](Transport& t) {
    float value = 1;
    t.all_reduce(&value, 1, DType::kF32, ReduceOp::kSum, kTimeout);
    EXPECT_EQ(value, 3);
    char byte = static_cast<char>(t.rank());
    const int peer = 1 - t.rank();
    if (t.rank() < 2) {
      char got = 9;
      const auto out = t.send(&byte, 1, peer, 0);
      const auto in = t.recv(&got, 1, peer, 0);
      in->wait(kTimeout);
      out->wait(kTimeout);
      EXPECT_EQ(got, peer);
    }
  });
  EXPECT_EQ(calls("ncclCommInitRankConfig"), before + made);
}

TEST_F(Nccl, OfBefore2_10IsRefused) {
  set_version(2907);
  const auto outcomes = try_run(2, [](Transport&) {});
  EXPECT_THAT(outcomes[0].error, HasSubstr("older than 2.10"));
}

/// Each function that can fail, with each error that it can have: both ranks hear of it, soon.
TEST_F(Nccl, TellsEveryErrorOfEveryCall) {
  const std::map<int, std::string> errors{{1, "unhandled cuda error"},
                                          {2, "unhandled system error"},
                                          {3, "internal error"},
                                          {4, "invalid argument"},
                                          {5, "invalid usage"},
                                          {6, "remote process exited"},
                                          {8, "timeout"}};
  for (const char* const function : {"ncclGetUniqueId",
                                     "ncclCommInitRankConfig",
                                     "ncclCommInitRank",
                                     "ncclAllReduce",
                                     "ncclReduce",
                                     "ncclReduceScatter",
                                     "ncclBroadcast",
                                     "ncclAllGather",
                                     "ncclSend",
                                     "ncclRecv",
                                     "ncclGroupStart",
                                     "ncclGroupEnd",
                                     "ncclCommGetAsyncError",
                                     "async"}) {
    for (const auto& [code, words] : errors) {
      SCOPED_TRACE(std::string(function) + ": " + words);
      set_version(std::string_view(function) == "ncclCommInitRank" ? kBlocks : 0);
      fail(function, code, 0);
      const auto outcomes = try_run(
          2,
          [](Transport& t) {
            std::vector<float> values(4, 1.0F), more(8);
            t.all_reduce(values.data(), 4, DType::kF32, ReduceOp::kSum, kTimeout);
            t.reduce(values.data(), 4, DType::kF32, ReduceOp::kSum, 0, kTimeout);
            t.reduce_scatter(more.data(), values.data(), 4, DType::kF32, ReduceOp::kSum, kTimeout);
            t.broadcast(values.data(), 4, DType::kF32, 0, kTimeout);
            t.all_gather(values.data(), more.data(), 4, DType::kF32, kTimeout);
            t.all_to_all(more.data(), more.data(), 4, DType::kF32, kTimeout);
            t.barrier(kTimeout);
            t.barrier(kTimeout);
          },
          [](int, NcclOptions& options) { options.suspicion = 100ms; });
      int told = 0;
      for (const test::RankOutcome& outcome : outcomes) {
        EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
        told += outcome.error.find(words) != std::string::npos ? 1 : 0;
      }
      EXPECT_GE(told, 1) << describe(outcomes[0]) << describe(outcomes[1]);
    }
  }
}

/// The end of one communicator waits for the device, which waits for messages of another.
TEST_F(Nccl, EndsAllCommunicatorsOfADeviceTogether) {
  for (const int version : {0, 22203, 21306}) {
    set_version(version);
    const auto outcomes = try_run(2, [](Transport& t) {
      std::vector<char> bytes(8, 'x');
      if (t.rank() == 1) {
        t.send(bytes.data(), bytes.size(), 0, 0)->wait(kTimeout);
        t.barrier(kTimeout);
        std::this_thread::sleep_for(2s);
        return;
      }
      t.recv(bytes.data(), bytes.size(), 1, 0)->wait(kTimeout);
      t.barrier(kTimeout);
      const auto never = t.recv(bytes.data(), bytes.size(), 1, 0);
      t.barrier(500ms);
    });
    EXPECT_EQ(outcomes[0].error_type, "argosy::TimeoutError") << describe(outcomes[0]);
    EXPECT_THAT(outcomes[0].error, HasSubstr("rank 1"));
  }
}

/// As where a stream can take no more work, because the first of it hangs.
TEST_F(Nccl, EndsACallThatBlocks) {
  const auto store = rendezvous::in_process_store();
  const auto outcomes = test::try_run_ranks(2, [&](int rank) {
    const c10::Device card = test::second_device(rank);
    const auto transport = make_nccl(store, rank, 2, options_on(card));
    if (rank == 1) {
      std::this_thread::sleep_for(3s);
      return;
    }
    const at::Tensor value = on(card, 1, 3);
    const auto reduce = [&] {
      transport->all_reduce(value.data_ptr(), 3, DType::kF32, ReduceOp::kSum, 500ms);
    };
    reduce();
    block("ncclAllReduce", 0);
    reduce();  // comes back when the first one's time is over
    reduce();
  });
  EXPECT_EQ(outcomes[0].error_type, "argosy::TimeoutError") << describe(outcomes[0]);
  EXPECT_THAT(outcomes[0].error, HasSubstr("rank 1"));
}

/// The first use of a path, where the library itself waits for the other ranks.
TEST_F(Nccl, EndsAFirstCallThatWaitsForALateRank) {
  for (const int version : {0, kBlocks}) {
    set_version(version);
    std::atomic<bool> ended{false};
    block("ncclAllReduce", 0);
    const auto outcomes = try_run(2, [&](Transport& t) {
      if (t.rank() == 1) {
        const Deadline deadline = Deadline::after(kTimeout);
        while (!ended && !deadline.expired()) {
          std::this_thread::sleep_for(5ms);
        }
        return;
      }
      try {
        t.barrier(500ms);
      } catch (...) {
        ended = true;
        throw;
      }
    });
    EXPECT_EQ(outcomes[0].error_type, "argosy::TimeoutError") << describe(outcomes[0]);
    EXPECT_THAT(outcomes[0].error, HasSubstr("rank 1"));
    EXPECT_TRUE(outcomes[1].ok()) << describe(outcomes[1]);
  }
}

/// Each rank a process.
std::vector<test::RankOutcome> Nccl::try_processes(int ranks, const Body& body) {
  const test::TempDir folder;
  return test::try_run_ranks(ranks,
                             [&](int rank) {
                               const auto transport = make_nccl(
                                   rendezvous::file_store((folder.path() / "store").string()),
                                   rank,
                                   ranks,
                                   options_on(test::second_device(rank)));
                               body(*transport);
                             },
                             {.mode = test::RankMode::kProcesses});
}

void expect_death_of_1(const test::RankOutcome& outcome) {
  EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
  EXPECT_THAT(outcome.error, ContainsRegex("rank 1 (died|is gone)"));
}

TEST_F(Nccl, EndsAFirstCallThatWaitsForADeadRank) {
  const auto outcomes = try_processes(2, [](Transport& t) {
    if (t.rank() == 1) {
      std::this_thread::sleep_for(500ms);
      ::raise(SIGKILL);
    }
    block("ncclAllReduce", 0);
    t.barrier(kTimeout);
    ADD_FAILURE() << "ended without the other rank";
  });
  expect_death_of_1(outcomes[0]);
}

/// The making of a communicator waits for all ranks.
TEST_F(Nccl, EndsAConnectionThatWaitsForADeadRank) {
  struct Case {
    int version;
    int lives;
  };
  for (const Case& each : {Case{0, 1}, Case{kBlocks, 1}, Case{kBlocks, 2}}) {
    set_version(each.version);
    const test::TempDir folder;
    const auto outcomes = test::try_run_ranks(
        2,
        [&](int rank) {
          Faults faults;
          faults.on_entry = [rank, lives = each.lives]() mutable {
            if (rank == 1 && --lives == 0) {
              ::raise(SIGKILL);
            }
          };
          NcclOptions options = options_on(test::second_device(rank));
          options.timeout = 60s;
          options.queues = std::make_shared<FaultyQueues>(options.queues, faults);
          const auto before = std::chrono::steady_clock::now();
          try {
            (void)make_nccl(
                rendezvous::file_store((folder.path() / "store").string()), rank, 2, options);
            ADD_FAILURE() << "connected without the other rank";
          } catch (const Error&) {
            EXPECT_LT(std::chrono::steady_clock::now() - before, kTimeout);
            throw;
          }
        },
        {.mode = test::RankMode::kProcesses});
    expect_death_of_1(outcomes[0]);
  }
}

/// A call that blocks is left behind. What it comes to later is nobody's.
TEST_F(Nccl, EndsACommunicatorThatComesTooLate) {
  set_version(kBlocks);
  const auto store = rendezvous::in_process_store();
  const int before = calls("ncclCommAbort");
  std::atomic<bool> given_up{false};
  Faults late;
  std::thread::id connecting;  // the call that blocks is another thread's
  late.on_entry = [&] {
    const Deadline deadline = Deadline::after(kTimeout);
    while (std::this_thread::get_id() != connecting && !given_up && !deadline.expired()) {
      std::this_thread::sleep_for(5ms);
    }
  };
  const auto outcomes = test::try_run_ranks(2, [&](int rank) {
    NcclOptions options = options_on(test::second_device(rank));
    if (rank == 1) {
      connecting = std::this_thread::get_id();
      options.queues = std::make_shared<FaultyQueues>(options.queues, late);
      (void)make_nccl(store, rank, 2, options);
      return;
    }
    options.timeout = 2s;
    try {
      (void)make_nccl(store, rank, 2, options);
    } catch (...) {
      given_up = true;
      const Deadline deadline = Deadline::after(kTimeout);
      while (calls("ncclCommAbort") == before && !deadline.expired()) {
        std::this_thread::sleep_for(5ms);
      }
      throw;
    }
  });
  EXPECT_EQ(outcomes[0].error_type, "argosy::TimeoutError") << describe(outcomes[0]);
  EXPECT_GT(calls("ncclCommAbort"), before);
}

/// What becomes of a collective that is queued, the library tells whoever asks.
TEST_F(Nccl, TellsAnErrorOfTheLibraryWhileTheDeviceWaits) {
  const auto store = rendezvous::in_process_store();
  std::atomic<bool> ended{false};
  const auto outcomes = test::try_run_ranks(2, [&](int rank) {
    const auto transport = make_nccl(store, rank, 2, options_on(test::second_device(rank)));
    const at::Tensor value = on(test::second_device(rank), 1);
    const auto both = std::make_shared<End>();
    transport->listen(both);
    transport->barrier(kTimeout);
    both->wait();
    if (rank == 1) {
      const Deadline deadline = Deadline::after(kTimeout);
      while (!ended && !deadline.expired()) {
        std::this_thread::sleep_for(5ms);
      }
      return;
    }
    const auto end = std::make_shared<End>();
    transport->listen(end);
    transport->all_reduce(value.data_ptr(), 1, DType::kF32, ReduceOp::kSum, kTimeout);
    fail("async", 2, 0);
    try {
      end->wait();
    } catch (...) {
      ended = true;
      throw;
    }
  });
  EXPECT_EQ(outcomes[0].error_type, "argosy::CommError") << describe(outcomes[0]);
  EXPECT_THAT(outcomes[0].error, HasSubstr("a collective on the device"));
}

/// The device goes on after an abort, with garbage. Whoever reads that must hear it from check().
TEST_F(Nccl, TellsThatWhatPassedIsGarbage) {
  const auto outcomes = try_processes(2, [](Transport& t) {
    if (t.rank() == 1) {
      std::this_thread::sleep_for(500ms);
      ::raise(SIGKILL);
    }
    t.check();
    t.barrier(kTimeout);
    const std::shared_ptr<DeviceMark> behind = t.queue()->mark();
    while (!behind->has_passed()) {
      std::this_thread::yield();
    }
    t.check();
    ADD_FAILURE() << "garbage passes for a result";
  });
  expect_death_of_1(outcomes[0]);
}

/// The thread that follows the device asks for errors while others queue.
TEST_F(Nccl, IsCalledByOneThreadAtATime) {
  for (const int version : {0, kBlocks}) {
    set_version(version);
    const auto store = rendezvous::in_process_store();
    test::run_ranks(2, [&](int rank) {
      const c10::Device card = quiet_card(rank);
      const auto transport = make_nccl(store, rank, 2, options_on(card));
      const at::Tensor value = on(card, 1, 3);
      for (int i = 0; i < 300; ++i) {
        transport->all_reduce(value.data_ptr(), 3, DType::kF32, ReduceOp::kAvg, kTimeout);
      }
      transport->queue()->mark()->hold_caller();
      EXPECT_TRUE(value.cpu().equal(at::ones({3})));
    });
  }
}

/// It has not done its part, though it had come.
TEST_F(Nccl, NamesWhoLeavesInsideOfACollective) {
  const auto store = rendezvous::in_process_store();
  std::atomic<bool> told{false};
  const auto outcomes = test::try_run_ranks(3, [&](int rank) {
    const auto transport = make_nccl(store, rank, 3, options_on(test::second_device(rank)));
    if (rank == 2) {  // held: comes late
      const Deadline deadline = Deadline::after(kTimeout);
      while (!told && !deadline.expired()) {
        std::this_thread::sleep_for(5ms);
      }
      return;
    }
    const auto end = std::make_shared<End>();
    transport->listen(end);
    transport->barrier(kTimeout);
    if (rank == 1) {
      std::this_thread::sleep_for(300ms);
      return;
    }
    try {
      end->wait();
    } catch (...) {
      told = true;
      throw;
    }
  });
  EXPECT_EQ(outcomes[0].error_type, "argosy::CommError") << describe(outcomes[0]);
  EXPECT_THAT(outcomes[0].error, HasSubstr("rank 1 left the group"));
}

/// It had done its part: the other rank is late by itself.
TEST_F(Nccl, DoesNotBlameWhoLeftAfterItsMessage) {
  const auto store = rendezvous::in_process_store();
  test::run_ranks(2, [&](int rank) {
    const c10::Device card = quiet_card(rank);
    const auto transport = make_nccl(store, rank, 2, options_on(card));
    const at::Tensor value = on(card, static_cast<float>(7 + rank));
    for (int i = 0; i < 2; ++i) {
      if (rank == 1) {
        transport->send(value.data_ptr(), 4, 0, 0)->wait(kTimeout);
        continue;
      }
      std::optional<test::HeldStream> held;
      if (i == 1) {
        held.emplace(c10::impl::VirtualGuardImpl(card.type()).getStream(card));
      }
      const auto message = transport->recv(value.data_ptr(), 4, 1, 0);
      const std::jthread later([&] {
        std::this_thread::sleep_for(i * 2500ms);
        if (held) {
          held->release();
        }
      });
      message->wait(kTimeout);
    }
    EXPECT_EQ(value.cpu().item<float>(), 8);
  });
}

/// Nothing waits but the device, once two ranks are connected.
TEST_F(Nccl, QueuesAMessageAndReturns) {
  const auto store = rendezvous::in_process_store();
  std::atomic<bool> returned{false};
  test::run_ranks(2, [&](int rank) {
    const c10::Device card = quiet_card(rank);
    const auto transport = make_nccl(store, rank, 2, options_on(card));
    const at::Tensor value = on(card, static_cast<float>(7 + rank));
    if (rank == 1) {
      transport->send(value.data_ptr(), 4, 0, 0)->wait(kTimeout);
      const Deadline deadline = Deadline::after(kTimeout);
      while (!returned && !deadline.expired()) {
        std::this_thread::yield();
      }
      EXPECT_TRUE(returned);
      transport->send(value.data_ptr(), 4, 0, 0)->wait(kTimeout);
      return;
    }
    transport->recv(value.data_ptr(), 4, 1, 0)->wait(kTimeout);
    const auto message = transport->recv(value.data_ptr(), 4, 1, 0);
    const std::shared_ptr<DeviceMark> end = message->queue(kTimeout);
    returned = true;
    ASSERT_NE(end, nullptr);
    message->wait(kTimeout);
    end->hold_caller();
    EXPECT_EQ(value.cpu().item<float>(), 8);
  });
}

/// A message that nobody sends, a collective that nobody joins: the end of any communicator waits
/// for the device, which waits for it.
TEST_F(Nccl, EndsWithWorkOnItsWay) {
  for (const bool in_message : {true, false}) {
    const auto store = rendezvous::in_process_store();
    std::atomic<bool> ended{false};
    test::run_ranks(2, [&](int rank) {
      const c10::Device card = test::second_device(rank);
      auto transport = make_nccl(store, rank, 2, options_on(card));
      const at::Tensor value = on(card, static_cast<float>(7 + rank));
      transport->all_reduce(value.data_ptr(), 1, DType::kF32, ReduceOp::kSum, kTimeout);
      if (rank == 1) {
        transport->recv(value.data_ptr(), 4, 0, 0)->wait(kTimeout);
        transport->send(value.data_ptr(), 4, 0, 0)->wait(kTimeout);
        const Deadline deadline = Deadline::after(kTimeout);
        while (!ended && !deadline.expired()) {
          std::this_thread::sleep_for(5ms);
        }
        return;
      }
      transport->send(value.data_ptr(), 4, 1, 0)->wait(kTimeout);
      transport->recv(value.data_ptr(), 4, 1, 0)->wait(kTimeout);
      std::unique_ptr<Transfer> never;
      if (in_message) {
        never = transport->recv(value.data_ptr(), 4, 1, 0);
      } else {
        transport->all_reduce(value.data_ptr(), 1, DType::kF32, ReduceOp::kSum, kTimeout);
      }
      const auto before = std::chrono::steady_clock::now();
      transport->close();
      EXPECT_LT(std::chrono::steady_clock::now() - before, 4s);
      ended = true;
    });
  }
}

/// Whoever waits for it hears it from the rank itself.
TEST_F(Nccl, TellsAFaultOfTheDevice) {
  for (const bool in_message : {false, true}) {
    Faults faults;
    const auto store = rendezvous::in_process_store();
    const auto outcomes = test::try_run_ranks(2, [&](int rank) {
      NcclOptions options = options_on(test::second_device(rank));
      if (rank == 1) {
        options.queues = std::make_shared<FaultyQueues>(options.queues, faults);
      }
      const auto transport = make_nccl(store, rank, 2, options);
      const at::Tensor value = on(test::second_device(rank), 1);
      faults.marks = true;
      const auto end = std::make_shared<End>();
      if (in_message) {
        // The other way round rank 0 may have sent before it hears of the fault.
        const auto message = rank == 0 ? transport->recv(value.data_ptr(), 4, 1, 0)
                                       : transport->send(value.data_ptr(), 4, 0, 0);
        message->wait(kTimeout);
      } else {
        transport->listen(end);
        transport->barrier(kTimeout);
        end->wait();
      }
    });
    for (const test::RankOutcome& outcome : outcomes) {
      EXPECT_EQ(outcome.error_type, "argosy::CommError") << describe(outcome);
      EXPECT_THAT(outcome.error, HasSubstr("the card fell off the bus"));
    }
  }
}

/// Such a device cannot become the current one: that must not end the program.
TEST_F(Nccl, EndsOnADeviceThatIsGone) {
  for (const bool in_collective : {false, true}) {
    Faults faults;
    const auto store = rendezvous::in_process_store();
    const auto outcomes = test::try_run_ranks(2, [&](int rank) {
      NcclOptions options = options_on(test::second_device(rank));
      options.queues = std::make_shared<FaultyQueues>(options.queues, faults);
      const auto transport = make_nccl(store, rank, 2, options);
      const auto end = std::make_shared<End>();
      transport->listen(end);
      transport->barrier(kTimeout);
      end->wait();
      if (rank == 0) {
        if (in_collective) {
          transport->barrier(300ms);
        }
        faults.entry = true;
      }
      std::this_thread::sleep_for(600ms);
    });
    EXPECT_TRUE(outcomes[0].ok() && outcomes[1].ok())
        << describe(outcomes[0]) << describe(outcomes[1]);
  }
}

TEST_F(Nccl, EndsWhereTheLibraryCannotEndInPeace) {
  for (const char* const function : {"ncclCommFinalize", "ncclCommDestroy", "ncclCommAbort"}) {
    fail(function, 3, 0);
    run(2, [](Transport& t) { t.barrier(kTimeout); });
  }
}

}  // namespace
}  // namespace argosy::transport
