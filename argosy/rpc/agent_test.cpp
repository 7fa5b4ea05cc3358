#include "argosy/rpc/agent.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <future>
#include <latch>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/base/error.h"
#include "argosy/rendezvous/store.h"

#include "tests/support/looked_at_store.h"

namespace argosy::rpc {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A type of a program's own, whose Codec throws what it likes.
struct Picky {
  int64_t value = 0;
};

}  // namespace

template <>
struct Codec<Picky> {
  static void put(Writer& writer, const Picky& one) { Codec<int64_t>::put(writer, one.value); }
  static Picky take(Reader& reader) {
    if (Codec<int64_t>::take(reader) == 13) {
      throw std::invalid_argument("not 13");
    }
    return {};
  }
};

namespace {

/// Workers of one job as threads of this process; all serve the same functions.
class Job {
 public:
  explicit Job(int size, const Functions& functions, const AgentOptions& options = {}) {
    agents.resize(static_cast<size_t>(size));
    std::vector<std::thread> threads;
    const std::shared_ptr<rendezvous::Store> store =
        options.store != nullptr ? options.store : rendezvous::in_process_store();
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        AgentOptions mine = options;
        mine.store = store;
        mine.rank = rank;
        mine.world_size = size;
        mine.token = "a secret of the job";
        agents[static_cast<size_t>(rank)] = std::make_unique<Agent>(mine, functions);
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  Agent& operator[](int rank) { return *agents[static_cast<size_t>(rank)]; }

  std::vector<std::unique_ptr<Agent>> agents;
};

std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

CallOutcome outcome_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CallError& error) {
    return error.outcome();
  }
  throw std::logic_error("no CallError");
}

double scaled(double value, double by) {
  return value * by;
}

Functions arithmetic() {
  Functions functions;
  functions.serve("scaled", scaled);
  functions.serve("nothing", [] {}, {.quick = true});
  functions.serve("joined", [](const std::vector<std::string>& words, const std::string& with) {
    return fmt::format("{}", fmt::join(words, with));
  });
  functions.serve("caller", [](CallContext& call) { return call.caller(); });
  functions.serve("throws", [](int what) {
    if (what == 0) {
      throw std::out_of_range("no such row: 7");
    }
    if (what == 1) {
      throw DataError("ps.pull", "a broken row", {"rows.bin", 12});
    }
    throw 3;  // NOLINT(misc-throw-by-value-catch-by-reference)
  });
  functions.serve("sum", [](const Memory& memory) {
    const std::span<const float> all = memory.as<float>();
    return std::accumulate(all.begin(), all.end(), 0.0);
  });
  functions.serve("doubled", [](CallContext& call, const Memory& memory) {
    const std::span<const float> all = memory.as<float>();
    Draft result = call.allocate(memory.size());
    std::ranges::transform(all, result.as<float>().begin(), [](float one) { return 2 * one; });
    return std::move(result).finish();
  });
  functions.serve("count", [](Stream<int64_t>& out, int64_t to) {
    for (int64_t i = 0; i < to; ++i) {
      out.put(i);
    }
  });
  return functions;
}

/// Between hosts calls travel through the network stack; inside one they take a lane and share
/// memory, once a first call has opened it.
class Agents : public ::testing::TestWithParam<bool> {
 protected:
  static bool by_lane() { return GetParam(); }
  static Job make(int size, Functions functions, AgentOptions options = {}) {
    options.shared_memory_bytes = by_lane() ? size_t{1} << 30 : 0;
    functions.serve("opens the lane", [] {}, {.quick = true});
    Job job(size, functions, options);
    for (int from = 0; from < size && by_lane(); ++from) {
      for (int to = 0; to < size; ++to) {
        job[from].call(to, "opens the lane");
      }
    }
    return job;
  }
};
INSTANTIATE_TEST_SUITE_P(Calls, Agents, ::testing::Bool(), [](const auto& info) {
  return info.param ? "Lane" : "Network";
});

TEST_P(Agents, CallsATypedFunctionOfEachWorker) {
  Job job = make(3, arithmetic());
  for (int from = 0; from < 3; ++from) {
    for (int to = 0; to < 3; ++to) {
      EXPECT_EQ(job[from].call<double>(to, "scaled", 2.5, 4), 10);
      EXPECT_EQ(job[from].call<std::string>(fmt::format("worker{}", to), "caller"),
                fmt::format("worker{}", from));
    }
  }
  job[0].call(1, "nothing");
  EXPECT_EQ(job[0].call<std::string>(1, "joined", std::vector<std::string>{"a", "b"}, "-"), "a-b");
}

TEST_P(Agents, AThousandCallsAreUnderWayAtOnce) {
  std::latch all(1000);
  Functions functions;
  std::mutex mutex;
  std::vector<Later<int>> waiting;
  functions.serve("later", [&] {
    const std::lock_guard lock(mutex);
    Later<int> later;
    waiting.push_back(later);
    all.count_down();
    return later;
  });
  Job job = make(2, functions);
  std::vector<Future<int>> calls;
  for (int i = 0; i < 1000; ++i) {
    calls.push_back(job[0].call_async<int>(1, "later"));
  }
  all.wait();  // none has been answered
  EXPECT_TRUE(std::ranges::none_of(calls, [](const auto& call) { return call.is_completed(); }));
  for (size_t i = 0; i < waiting.size(); ++i) {
    waiting[i].set(static_cast<int>(i));
  }
  int64_t sum = 0;
  for (const Future<int>& call : calls) {
    sum += call.wait();
  }
  EXPECT_EQ(sum, 999 * 1000 / 2);
}

TEST_P(Agents, AnExceptionTravelsWithTypeTextAndPlace) {
  Job job = make(2, arithmetic());
  try {
    job[0].call(1, "throws", 0);
    FAIL();
  } catch (const RemoteError& error) {
    EXPECT_EQ(error.thrown().type, "std::out_of_range");
    EXPECT_EQ(error.thrown().text, "no such row: 7");
    EXPECT_EQ(error.thrown().place, "");
    EXPECT_EQ(error.worker(), "worker1");
    EXPECT_EQ(error.outcome(), CallOutcome::kDone);
    EXPECT_EQ(error.peers(), std::vector<int>{1});
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("[rpc.call] worker \"worker1\" (rank 1, "),
                      HasSubstr("function \"throws\" threw std::out_of_range: no such row: 7")));
  }
  try {
    job[0].call(1, "throws", 1);
    FAIL();
  } catch (const RemoteError& error) {
    EXPECT_EQ(error.thrown().type, "argosy::DataError");
    EXPECT_EQ(error.thrown().place, "ps.pull");
    EXPECT_THAT(error.thrown().text, HasSubstr("rows.bin: a broken row (at byte 12)"));
  }
  EXPECT_THAT(text_of([&] { job[0].call(1, "throws", 2); }), HasSubstr("threw int: (no text)"));
}

TEST_P(Agents, ARefusalSaysWhyAndThatNothingRan) {
  Job job = make(2, arithmetic());
  const auto missing = [&] { job[0].call(1, "scale", 1.0, 2.0); };
  EXPECT_EQ(outcome_of(missing), CallOutcome::kRefused);
  EXPECT_THAT(
      text_of(missing),
      AllOf(HasSubstr("it serves no function \"scale\"; did you mean \"scaled\"? It serves"),
            HasSubstr("The function did not run.")));
  const auto wrong = [&] { (void)job[0].call<double>(1, "scaled", 1.0, "two"); };
  EXPECT_EQ(outcome_of(wrong), CallOutcome::kRefused);
  EXPECT_THAT(text_of(wrong), HasSubstr("argument 2: expected a number, got the text \"two\""));
  const auto few = [&] { (void)job[0].call<double>(1, "scaled", 1.0); };
  EXPECT_THAT(text_of(few), HasSubstr("expected 2 arguments, got 1"));
  const auto result = [&] { (void)job[0].call<std::string>(1, "scaled", 1.0, 2.0); };
  EXPECT_EQ(outcome_of(result), CallOutcome::kDone);
  EXPECT_THAT(text_of(result),
              HasSubstr("its result is of another type: expected text, got the number 2"));
  EXPECT_THAT(text_of([&] { (void)job[0].call<double>("worker11", "scaled", 1.0, 2.0); }),
              HasSubstr("there is no worker \"worker11\"; did you mean"));
  EXPECT_THAT(text_of([&] { (void)job[0].call<double>(2, "scaled", 1.0, 2.0); }),
              HasSubstr("expected a rank from 0 to 1, got 2"));
}

TEST_P(Agents, ArgumentsThatAProgramCannotReadAreRefused) {
  Functions functions = arithmetic();
  functions.serve("picky", [](Picky /*one*/) {});
  functions.serve("quick and picky", [](Picky /*one*/) {}, {.quick = true});
  Job job = make(2, functions);
  for (const char* name : {"picky", "quick and picky"}) {
    const auto call = [&] { job[0].call({1, 5s}, name, Picky{13}); };
    EXPECT_EQ(outcome_of(call), CallOutcome::kRefused) << name;
    EXPECT_THAT(text_of(call), HasSubstr("its arguments cannot be read: not 13"));
    EXPECT_EQ(job[0].call<double>(1, "scaled", 1.0, 2.0), 2) << "the worker is well";
  }
}

TEST_P(Agents, TextsNeedNotBeUtf8) {
  Functions functions = arithmetic();
  functions.serve("caf\xe9", [] { throw std::runtime_error("no file caf\xe9"); });
  Job job = make(2, functions);
  try {
    job[0].call(1, "caf\xe9");
    FAIL();
  } catch (const RemoteError& error) {
    EXPECT_EQ(error.thrown().text, "no file caf\xe9");
  }
}

TEST_P(Agents, ValuesTravelWhateverTheirSize) {
  Functions functions = arithmetic();
  functions.serve("same", [](const std::vector<double>& all) { return all; });
  Job job = make(2, functions);
  const std::vector<double> large(6'000'000, 1.5);  // more than the store takes
  EXPECT_EQ(job[0].call<std::vector<double>>(1, "same", large), large);
}

TEST_P(Agents, ValuesBeyondTheLimitAreRefusedBeforeTheyLeave) {
  Functions functions = arithmetic();
  functions.serve("length", [](const std::vector<double>& all) { return all.size(); });
  AgentOptions options;
  options.largest_call_bytes = size_t{1} << 20;
  Job job = make(2, functions, options);
  EXPECT_THROW((void)job[0].call<size_t>(1, "length", std::vector<double>(200'000)), UsageError);
  EXPECT_EQ(job[0].call<size_t>(1, "length", std::vector<double>(100'000)), 100'000U);
}

TEST_P(Agents, ACallThatIsLateHurtsNoOther) {
  std::promise<Later<int>> began;
  Functions functions = arithmetic();
  functions.serve("later", [&] {
    Later<int> later;
    began.set_value(later);
    return later;
  });
  functions.serve("size", [](const std::vector<double>& all) { return all.size(); });
  Job job = make(2, functions);
  const Future<int> other = job[0].call_async<int>(1, "later");
  Later<int> later = began.get_future().get();
  const std::vector<double> large(3'000'000);
  for (const auto patience : {1ms, 10ms, 20ms, 30ms}) {  // while it is packed, or sent
    try {
      EXPECT_EQ(job[0].call<size_t>({1, patience}, "size", large), large.size());
    } catch (const CallError& error) {
      EXPECT_NE(error.outcome(), CallOutcome::kDone);
    }
  }
  EXPECT_EQ(job[0].call<double>(1, "scaled", 1.0, 2.0), 2);
  later.set(3);
  EXPECT_EQ(other.wait(), 3);
}

TEST_P(Agents, MemoryTravelsWhateverItsSize) {
  Job job = make(2, arithmetic());
  for (const size_t size :
       {0UL, 1UL, 2047UL, 2048UL, 2049UL, 100'000UL, 1UL << 20, (5UL << 20) + 3}) {
    std::vector<float> values(size);
    for (size_t i = 0; i < size; ++i) {
      values[i] = static_cast<float>(i % 7);
    }
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    EXPECT_EQ(job[0].call<double>(1, "sum", Memory::view(values)), sum) << size;
    const Memory doubled = job[0].call<Memory>(1, "doubled", Memory::view(values));
    ASSERT_EQ(doubled.size(), 4 * size);
    EXPECT_TRUE(std::ranges::equal(
        doubled.as<float>(), values, [](float two, float one) { return two == 2 * one; }));
    Draft draft = job[0].allocate(1, 4 * size);
    std::ranges::copy(values, draft.as<float>().begin());
    EXPECT_EQ(job[0].call<double>(1, "sum", std::move(draft).finish()), sum) << size;
  }
}

TEST_P(Agents, ManyCallsKeepTheirMemoryApart) {
  Job job = make(2, arithmetic());
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      for (int i = 0; i < 100; ++i) {
        const std::vector<float> values(5000, static_cast<float>(number * 100 + i));
        const Memory doubled = job[0].call<Memory>(1, "doubled", Memory::view(values));
        wrong += std::ranges::any_of(doubled.as<float>(),
                                     [&](float one) { return one != 2 * values[0]; })
                     ? 1
                     : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(Agents, AResultOutlivesItsAgents) {
  std::optional<Memory> doubled;
  {
    Job job = make(2, arithmetic());
    doubled = job[0].call<Memory>(1, "doubled", Memory::own(std::vector<float>(5000, 1.5F)));
  }
  EXPECT_EQ(doubled->as<float>()[4999], 3);
}

TEST_P(Agents, ACallHasADeadlineAndTheFunctionSeesIt) {
  std::promise<bool> seen;
  Functions functions = arithmetic();
  functions.serve("slow", [&](CallContext& call) {
    while (!call.cancelled()) {
      std::this_thread::sleep_for(1ms);
    }
    seen.set_value(call.deadline().remaining() < 1s);
    std::this_thread::sleep_for(200ms);  // what comes at the very deadline may still arrive
    return 1;
  });
  Job job = make(2, functions);
  job[0].call(1, "nothing");  // is connected then
  const auto slow = [&] { (void)job[0].call<int>({1, 500ms}, "slow"); };
  EXPECT_EQ(outcome_of(slow), CallOutcome::kUnknown);
  EXPECT_TRUE(seen.get_future().get());
}

TEST_P(Agents, ACancelledCallEndsAtBothSides) {
  std::promise<void> began;
  std::promise<void> stopped;
  Functions functions;
  functions.serve("endless", [&](CallContext& call) {
    began.set_value();
    while (!call.cancelled()) {
      std::this_thread::sleep_for(1ms);
    }
    stopped.set_value();
  });
  Job job = make(2, functions);
  const Future<void> call = job[0].call_async(1, "endless");
  began.get_future().wait();
  EXPECT_FALSE(call.wait_for(1ms));
  call.cancel();
  stopped.get_future().wait();
  EXPECT_EQ(outcome_of([&] { call.wait(); }), CallOutcome::kUnknown);
  EXPECT_THAT(text_of([&] { call.wait(); }), HasSubstr("the call was cancelled here"));
}

TEST_P(Agents, StreamsComeInOrderAndAreReadAsFastAsTheReaderReads) {
  std::atomic<int64_t> put = 0;
  std::promise<void> over;
  Functions functions = arithmetic();
  functions.serve("endless",
                  [&](CallContext& call, Stream<Memory>& out, const std::string& /*why*/) {
                    try {
                      while (!call.cancelled()) {
                        out.put(Memory::own(std::vector<std::byte>(100'000)));
                        ++put;
                      }
                    } catch (...) {
                      over.set_value();
                      throw;
                    }
                    over.set_value();
                  });
  Job job = make(2, functions);
  int64_t expected = 0;
  for (const int64_t one : job[0].stream<int64_t>(1, "count", 5000)) {
    ASSERT_EQ(one, expected++);
  }
  EXPECT_EQ(expected, 5000);
  {
    Incoming<Memory> endless = job[0].stream<Memory>(1, "endless", "it ends with its reader");
    EXPECT_EQ(endless.next()->size(), 100'000U);
    constexpr int64_t kFar = 20'000;
    for (int64_t before = -1; put != before && put < kFar;) {
      before = put;
      std::this_thread::sleep_for(100ms);
    }
    EXPECT_LT(put, kFar) << "it goes on, and nobody reads them";
  }
  over.get_future().wait();
}

TEST_P(Agents, AStreamThatFailsSaysSoAfterWhatItHadSent) {
  Functions functions;
  functions.serve("fails", [](Stream<int>& out) {
    out.put(1);
    out.put(2);
    throw std::runtime_error("no third");
  });
  Job job = make(2, functions);
  Incoming<int> stream = job[0].stream<int>(1, "fails");
  EXPECT_EQ(stream.next(), 1);
  EXPECT_EQ(stream.next(), 2);
  EXPECT_THAT(text_of([&] { (void)stream.next(); }), HasSubstr("std::runtime_error: no third"));
}

TEST_P(Agents, ALaterWithoutAResultFailsItsCall) {
  Functions functions;
  functions.serve("forgotten", [] { return Later<int>(); });
  Job job = make(2, functions);
  EXPECT_THAT(text_of([&] { (void)job[0].call<int>(1, "forgotten"); }),
              HasSubstr("let go of its result before it was there"));
}

/// Answers nothing while it is slow.
class SlowStore final : public test::LookedAtStore {
 public:
  using LookedAtStore::LookedAtStore;
  std::string get(const std::string& key, const Deadline& by) override {
    if (slow) {
      std::this_thread::sleep_for(std::min<std::chrono::milliseconds>(by.remaining(), 20s));
      throw TimeoutError("rendezvous.get", "no answer");
    }
    return LookedAtStore::get(key, by);
  }
  std::atomic<bool> slow = false;
};

TEST(SlowStores, KeepNoCallBeyondItsDeadline) {
  const auto store = std::make_shared<SlowStore>(rendezvous::in_process_store(), [] {});
  Job job(2, arithmetic(), {.store = store});
  store->slow = true;
  const auto begin = Deadline::Clock::now();
  const auto call = [&] { (void)job[0].call<double>({"worker1", 300ms}, "scaled", 1.0, 2.0); };
  EXPECT_EQ(outcome_of(call), CallOutcome::kRefused);
  EXPECT_LT(Deadline::Clock::now() - begin, 10s);
  store->slow = false;
  EXPECT_EQ(job[0].call<double>("worker1", "scaled", 1.0, 2.0), 2);
}

TEST_P(Agents, MoreCallsThanMayWaitAreRefused) {
  std::latch go(1);
  Functions functions;
  functions.serve("wait", [&] { go.wait(); });
  Job job = make(2, functions, {.num_worker_threads = 1, .most_queued_calls = 2});
  std::vector<Future<void>> calls;
  for (int i = 0; i < 8; ++i) {
    calls.push_back(job[0].call_async(1, "wait"));
  }
  int refused = 0;
  for (const Future<void>& call : calls) {
    if (call.wait_for(200ms)) {
      EXPECT_EQ(outcome_of([&] { call.wait(); }), CallOutcome::kRefused);
      ++refused;
    }
  }
  go.count_down();
  EXPECT_GE(refused, 5);  // one runs, two wait
  EXPECT_LE(refused, 6);
}

TEST_P(Agents, FunctionsRunSideBySideButNoMoreThanMay) {
  for (const int threads : {1, 3}) {
    std::atomic<int> running = 0;
    std::atomic<int> most = 0;
    Functions functions;
    functions.serve("work", [&] {
      const int now = ++running;
      int seen = most;
      while (seen < now && !most.compare_exchange_weak(seen, now)) {
      }
      std::this_thread::sleep_for(20ms);
      --running;
    });
    Job job = make(2, functions, {.num_worker_threads = threads});
    std::vector<Future<void>> calls;
    for (int i = 0; i < 6; ++i) {
      calls.push_back(job[0].call_async(1, "work"));
      std::this_thread::sleep_for(1ms);  // each comes while the one before runs
    }
    for (const Future<void>& call : calls) {
      call.wait();
    }
    EXPECT_EQ(most, threads);
  }
}

TEST_P(Agents, AFunctionMayCallItsCaller) {
  Functions functions;
  std::array<std::atomic<Agent*>, 2> agents{};
  functions.serve("count down", [&](CallContext& call, int from) -> int {
    const int here = call.caller() == "worker0" ? 1 : 0;
    return from == 0 ? 0
                     : 1 + agents[here].load()->call<int>(call.caller(), "count down", from - 1);
  });
  Job job = make(2, functions);
  agents[0] = &job[0];
  agents[1] = &job[1];
  EXPECT_EQ(job[0].call<int>(1, "count down", 12), 12);
}

TEST_P(Agents, ManyThreadsCallAtOnce) {
  Job job = make(2, arithmetic());
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int number = 0; number < 8; ++number) {
    threads.emplace_back([&, number] {
      for (int i = 0; i < 300; ++i) {
        wrong +=
            job[number % 2].call<double>(1 - number % 2, "scaled", number, i) == number * i ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Functions, ThatSendStreamsAreNotQuick) {
  Functions functions;
  EXPECT_THAT(text_of([&] {
                functions.serve("rows", [](Stream<int>& out) { out.put(1); }, {.quick = true});
              }),
              HasSubstr("so it cannot be quick"));
}

TEST_P(Agents, AStreamIsNoSingleResult) {
  std::atomic<int> runs = 0;
  Functions functions;
  functions.serve("count", [&](CallContext& /*call*/, Stream<int64_t>& out, int64_t to) {
    ++runs;
    out.put(to);
  });
  functions.serve("adds one", [&](int one) {
    ++runs;
    return one + 1;
  });
  Job job = make(2, functions);
  const auto called = [&] { (void)job[0].call<int64_t>(1, "count", 3); };
  EXPECT_EQ(outcome_of(called), CallOutcome::kRefused);
  EXPECT_THAT(text_of(called),
              HasSubstr("function \"count\" sends a stream: call it with stream()"));
  EXPECT_EQ(runs, 0);
  const auto streamed = [&] { (void)job[0].stream<int>(1, "adds one", 3).next(); };
  EXPECT_EQ(outcome_of(streamed), CallOutcome::kRefused);
  EXPECT_THAT(text_of(streamed),
              HasSubstr("function \"adds one\" sends one result: call it with call()"));
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(job[0].call<int>(1, "adds one", 3), 4);
}

TEST_P(Agents, ShutdownWaitsForAll) {
  std::atomic<int> done = 0;
  Functions functions;
  functions.serve("done", [&] { ++done; });
  Job job = make(3, functions);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      std::this_thread::sleep_for(rank * 30ms);
      job[rank].call((rank + 1) % 3, "done");  // whose turn to leave it may be already
      job[rank].shutdown();
      EXPECT_EQ(done, 3);
      EXPECT_THAT(text_of([&] { job[rank].call(0, "done"); }), HasSubstr("has left the job"));
      job[rank].shutdown();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

TEST_P(Agents, ShutdownNamesWhoDoesNotCome) {
  Job job = make(3, arithmetic());
  EXPECT_THAT(text_of([&] { job[0].shutdown(300ms); }),
              HasSubstr("[rpc.shutdown] waited for 2 of 3 workers in vain: ranks 1, 2"));
}

TEST_P(Agents, LeavingEndsTheCallsThatRun) {
  Functions functions;
  std::promise<Later<int>> began;
  functions.serve("later", [&] {
    Later<int> later;
    began.set_value(later);
    return later;
  });
  Job job = make(2, functions);
  const Future<int> call = job[0].call_async<int>(1, "later");
  Later<int> later = began.get_future().get();
  job.agents[1].reset();
  EXPECT_EQ(outcome_of([&] { (void)call.wait(); }), CallOutcome::kUnknown);
  later.set(3);  // its way is gone
}

TEST(Agent, TwoWorkersOfOneNameAreNotTaken) {
  EXPECT_THAT(
      text_of([&] {
        const auto store = rendezvous::in_process_store();
        std::string first;
        std::thread other([&] {
          first = text_of([&] {
            Agent agent(
                {.name = "ps", .rank = 0, .world_size = 2, .join_timeout = 2s, .store = store});
          });
        });
        const std::string second = text_of([&] {
          Agent agent(
              {.name = "ps", .rank = 1, .world_size = 2, .join_timeout = 2s, .store = store});
        });
        other.join();
        throw std::runtime_error(first + second);
      }),
      HasSubstr("both call themselves \"ps\""));
  EXPECT_THROW(Agent({.name = "a b"}), UsageError);
}

}  // namespace
}  // namespace argosy::rpc
