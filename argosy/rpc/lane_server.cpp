#include "argosy/rpc/lane_server.h"

#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "argosy/base/log.h"
#include "argosy/base/thread_pool.h"
#include "argosy/rpc/errors.h"

namespace argosy::rpc {

/// One reads while the other runs a function.
constexpr int kThreads = 2;

/// What the threads share with the calls, which may outlive them.
class LaneServer::State final : public std::enable_shared_from_this<State> {
 public:
  State(std::unique_ptr<Lane> lane, std::shared_ptr<SharedLine> line, size_t most_bytes)
      : lane_(std::move(lane)), line_(std::move(line)), most_bytes_(most_bytes) {}

  [[nodiscard]] Lane& lane() { return *lane_; }
  void serve(Dispatcher& dispatcher);
  void close();
  void finish_thread() { ++finished_; }
  [[nodiscard]] bool is_finished() const { return finished_ == kThreads; }
  void forget(uint64_t id) {
    const std::lock_guard lock(mutex_);
    calls_.erase(id);
  }

 private:
  void read(Dispatcher& dispatcher);
  /// Returns the right to read, if it still has it or has it again.
  std::optional<Lane::Reading> run(const std::shared_ptr<Call>& call,
                                   Dispatcher& dispatcher,
                                   Lane::Reading reading);
  std::shared_ptr<Call> take(const Ring::Frame& frame);
  std::shared_ptr<Call> take_part(const Ring::Frame& frame);

  const std::unique_ptr<Lane> lane_;
  const std::shared_ptr<SharedLine> line_;
  const size_t most_bytes_;
  std::atomic<int> finished_ = 0;      ///< threads
  std::atomic<bool> running_ = false;  ///< a thread of the lane runs a function
  std::map<uint64_t, Arriving<wire::Request>> arriving_{};  ///< of whoever reads
  std::mutex mutex_;
  std::map<uint64_t, std::weak_ptr<Call>> calls_{};  ///< those under way
};

/// One call. Its answer goes through the lane as long as that is open.
class LaneServer::Call final : public ServedCall {
 public:
  Call(std::shared_ptr<State> state, uint64_t id, const Deadline& deadline)
      : ServedCall(deadline), state_(std::move(state)), id_(id) {}
  ~Call() override { state_->forget(id_); }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  Call(Call&&) = delete;
  Call& operator=(Call&&) = delete;

  void begin(wire::Request request,
             std::vector<Memory> memories,
             std::shared_ptr<SharedLine> line) {
    set_request(std::move(request), std::move(line));
    set_memories(std::move(memories));
  }
  void cancel() { set_cancelled(); }

  void refuse(const std::string& why) override { answer(Lane::Kind::kRefusal, why, {}); }
  void finish_stream() override {}

 private:
  void send_value(Result /*value*/) override {}  // no streams come through lanes
  void end_with(Result result) override {
    answer(Lane::Kind::kReply, result.reply.SerializeAsString(), result.leaving.apart());
  }
  void give_up() override { refuse("nobody waited for it any more"); }

  /// The first one counts.
  void answer(Lane::Kind kind, const std::string& message, const std::vector<Memory>& apart) {
    if (ended_.exchange(true)) {
      return;
    }
    const Deadline until = expiry();
    const Lane::Sent sent = state_->lane().send(kind, id_, message, apart, until);
    if (sent.begun && !sent.is_whole() && !until.expired()) {
      state_->lane().give_up();  // half an answer: the caller would wait for the rest
    }
  }

  const std::shared_ptr<State> state_;
  const uint64_t id_;
  std::atomic<bool> ended_ = false;
};

/// One thread at a time reads. It runs a function itself when no other call waits; the other thread
/// of the lane wakes if one comes meanwhile, and leaves its functions to the pool.
void LaneServer::State::serve(Dispatcher& dispatcher) {
  while (lane_->sleep()) {
    try {
      read(dispatcher);
    } catch (const std::exception& error) {
      log::warn("[rpc.lane] a worker of this host sent what cannot be: {}", error.what());
      break;
    }
  }
  close();
}

void LaneServer::State::read(Dispatcher& dispatcher) {
  std::optional<Lane::Reading> reading = lane_->try_read();
  while (reading) {
    const std::optional<Ring::Frame> frame = reading->next();
    if (!frame) {
      return;
    }
    const std::shared_ptr<Call> call = take(*frame);
    if (call == nullptr || !dispatcher.admit(call)) {
      continue;
    }
    reading = run(call, dispatcher, *std::move(reading));
  }
}

std::optional<Lane::Reading> LaneServer::State::run(const std::shared_ptr<Call>& call,
                                                    Dispatcher& dispatcher,
                                                    Lane::Reading reading) {
  if (!running_.exchange(true)) {
    {
      const std::optional<Dispatcher::Slot> slot = dispatcher.try_slot();
      if (slot && reading.leave()) {
        call->run();
        running_ = false;
        return lane_->try_read();
      }
    }
    running_ = false;
  }
  dispatcher.queue(call);
  return reading;
}

std::shared_ptr<LaneServer::Call> LaneServer::State::take(const Ring::Frame& frame) {
  if (static_cast<Lane::Kind>(frame.kind) != Lane::Kind::kCancel) {
    return take_part(frame);
  }
  arriving_.erase(frame.call);
  std::shared_ptr<Call> call;
  {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(frame.call);
    call = found == calls_.end() ? nullptr : found->second.lock();
  }
  if (call != nullptr) {
    call->cancel();
  }
  return nullptr;
}

std::shared_ptr<LaneServer::Call> LaneServer::State::take_part(const Ring::Frame& frame) {
  const auto part = arriving_.try_emplace(frame.call, line_.get(), most_bytes_).first;
  std::shared_ptr<Call> call;
  try {
    if (!part->second.take(frame)) {
      return nullptr;
    }
    wire::Request request = std::move(part->second.message());
    constexpr uint64_t kMost = 24ULL * 3600 * 1000;
    const std::chrono::milliseconds patience(std::min<uint64_t>(request.patience_ms(), kMost));
    call = std::make_shared<Call>(shared_from_this(), frame.call, Deadline::after(patience));
    call->begin(std::move(request), std::move(part->second).memories(), line_);
  } catch (const std::exception& error) {
    arriving_.erase(part);
    std::make_shared<Call>(shared_from_this(), frame.call, Deadline::after(std::chrono::seconds(1)))
        ->refuse(without_place(error.what()));
    return nullptr;
  }
  arriving_.erase(part);
  const std::lock_guard lock(mutex_);
  calls_[frame.call] = call;
  return call;
}

void LaneServer::State::close() {
  lane_->close();
  std::vector<std::shared_ptr<Call>> running;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, one] : calls_) {
      if (std::shared_ptr<Call> call = one.lock()) {
        running.push_back(std::move(call));
      }
    }
  }
  for (const std::shared_ptr<Call>& call : running) {
    call->cancel();
  }
}

LaneServer::LaneServer(std::unique_ptr<Lane> lane,
                       std::shared_ptr<SharedLine> line,
                       Dispatcher& dispatcher,
                       size_t most_bytes)
    : state_(std::make_shared<State>(std::move(lane), std::move(line), most_bytes)) {
  for (int i = 0; i < kThreads; ++i) {
    threads_.emplace_back([state = state_, &dispatcher] {
      set_thread_name("argosy-rpc-lane");
      state->serve(dispatcher);
      state->finish_thread();
    });
  }
  state_->lane().open();
}

LaneServer::~LaneServer() {
  close();
  for (std::thread& thread : threads_) {
    thread.join();
  }
}

void LaneServer::close() {
  state_->close();
}

bool LaneServer::is_finished() const {
  return state_->is_finished();
}

}  // namespace argosy::rpc
