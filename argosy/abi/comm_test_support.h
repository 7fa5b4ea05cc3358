#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "argosy/abi/comm.h"

#include "tests/support/run_ranks.h"

// Groups as another runtime makes them, for tests.
namespace argosy::abi {

/// The store of another runtime.
class OtherStore final {
 public:
  static int set(void* self, const char* key, const char* value, ArgosyText* /*why*/) {
    auto& store = *static_cast<OtherStore*>(self);
    const std::lock_guard lock(store.mutex_);
    store.values_[key] = value;
    store.history_.emplace_back(value);
    store.changed_.notify_all();
    return ARGOSY_OK;
  }
  static int get(
      void* self, const char* key, int64_t timeout_ms, ArgosyText* value, ArgosyText* why) {
    auto& store = *static_cast<OtherStore*>(self);
    std::unique_lock lock(store.mutex_);
    ++store.gets_;
    store.changed_.notify_all();
    if (!store.changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [&] {
          return store.values_.contains(key);
        })) {
      const std::string text = std::string(key) + " did not come";
      argosy_text_set(why, text.data(), text.size());
      return ARGOSY_TIMED_OUT;
    }
    argosy_text_set(value, store.values_[key].data(), store.values_[key].size());
    return ARGOSY_OK;
  }

  /// How often it was asked.
  [[nodiscard]] int gets() {
    const std::lock_guard lock(mutex_);
    return gets_;
  }
  void wait_for_gets(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return gets_ >= count; });
  }
  /// All that was ever set, oldest first.
  [[nodiscard]] std::vector<std::string> history() {
    const std::lock_guard lock(mutex_);
    return history_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::vector<std::string> history_;
  int gets_ = 0;
};

struct RankOptions {
  int64_t timeout_ms = 20'000;
  const char* towards = "127.0.0.1";
  const char* name = "theirs";
  const int* world_ranks = nullptr;
};

/// A rank's end of a group, made as another runtime would.
class Rank final {
 public:
  Rank(OtherStore& store, int rank, int size, const RankOptions& options = {})
      : why_(argosy_text_new()) {
    const ArgosyMeeting meeting{.name = options.name,
                                .rank = rank,
                                .size = size,
                                .timeout_ms = options.timeout_ms,
                                .towards = options.towards,
                                .store = &store,
                                .set = OtherStore::set,
                                .get = OtherStore::get,
                                .world_ranks = options.world_ranks};
    group_ = argosy_group_make(&meeting, &code, why_);
  }
  ~Rank() {
    argosy_group_free(group_);
    argosy_text_free(why_);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  [[nodiscard]] ArgosyGroup* group() const { return group_; }
  /// For who frees it.
  [[nodiscard]] ArgosyGroup* release() { return std::exchange(group_, nullptr); }
  [[nodiscard]] std::string why() const { return argosy_text_get(why_); }
  [[nodiscard]] ArgosyText* text() { return why_; }

  ArgosyCode code = ARGOSY_OK;

 private:
  ArgosyText* why_;
  ArgosyGroup* group_ = nullptr;
};

/// An operation without tensors.
inline ArgosyOperation operation_of(decltype(ArgosyOperation::body) body,
                                    decltype(ArgosyOperation::then) then,
                                    void* context,
                                    int waits = 1) {
  return {.name = "without tensors",
          .type = "",
          .elements = 0,
          .bytes = 0,
          .timeout_ms = 0,
          .waits = waits,
          .body = body,
          .then = then,
          .context = context};
}

struct Ended {
  int code = -1;
  std::string message{};
  std::vector<int> peers{};
  int source = -1;
};

/// One operation, from its submission to what its end says.
class Operation final {
 public:
  using Body = std::function<int(ArgosyHere*)>;

  explicit Operation(Body body) : body_(std::move(body)) {}

  [[nodiscard]] int submit(Rank& rank, bool waits = false, int64_t timeout_ms = 0) {
    const ArgosyOperation operation{.name = "theirs",
                                    .type = "f32",
                                    .elements = 3,
                                    .bytes = 12,
                                    .timeout_ms = timeout_ms,
                                    .waits = waits ? 1 : 0,
                                    .body = run,
                                    .then = end,
                                    .context = this};
    return argosy_submit(rank.group(), &operation, rank.text());
  }
  [[nodiscard]] Ended wait() { return ended_.get_future().get(); }
  static void end(void* self, const ArgosyEnd* end) {
    static_cast<Operation*>(self)->thread = std::this_thread::get_id();
    static_cast<Operation*>(self)->ended_.set_value(
        {.code = end->code,
         .message = end->message == nullptr ? "" : end->message,
         .peers = {end->peers, end->peers + end->peer_count},
         .source = end->source});
  }

  std::thread::id thread{};

 private:
  static int run(void* self, ArgosyHere* here) {
    return static_cast<Operation*>(self)->body_(here);
  }

  Body body_;
  std::promise<Ended> ended_;
};

inline ArgosyStep step(ArgosyStepKind kind, const void* input, void* output, int64_t count) {
  return {.kind = kind,
          .type = ARGOSY_I32,
          .reduction = ARGOSY_SUM,
          .root = 1,
          .input = input,
          .output = output,
          .count = count,
          .send_counts = nullptr,
          .receive_counts = nullptr};
}

/// The sum of one number of each rank.
inline Ended sum(Rank& rank, int32_t& value, bool waits = true) {
  const ArgosyStep all_reduce = step(ARGOSY_ALL_REDUCE, nullptr, &value, 1);
  Operation operation([&](ArgosyHere* here) { return argosy_step(here, &all_reduce); });
  EXPECT_EQ(operation.submit(rank, waits), ARGOSY_OK) << rank.why();
  return operation.wait();
}

inline void with_ranks(int size, const std::function<void(Rank&, int)>& body) {
  OtherStore store;
  test::run_ranks(size, [&](int number) {
    Rank rank(store, number, size);
    ASSERT_NE(rank.group(), nullptr) << rank.why();
    body(rank, number);
    argosy_group_close(rank.group(), 5'000);
  });
}

}  // namespace argosy::abi
