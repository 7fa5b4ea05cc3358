#include "argosy/rpc/lane_caller.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <unordered_map>
#include <utility>
#include <vector>

#include "argosy/base/log.h"
#include "argosy/base/thread_pool.h"

namespace argosy::rpc {

/// The calls under way, and whoever reads their answers: the thread that waits for one, or else
/// the lane's own.
class LaneCaller::State final : public std::enable_shared_from_this<State> {
 public:
  /// How the lane has ended.
  enum class End { kHere, kGoodbye, kDeath, kBroken };

  explicit State(std::unique_ptr<Lane> lane) : lane_(std::move(lane)) {}

  [[nodiscard]] Lane& lane() { return *lane_; }
  [[nodiscard]] uint64_t add(const std::shared_ptr<Call>& call);
  void forget(uint64_t id);
  /// Reads until `done()` or the deadline. Returns at once when another thread reads.
  void read(const std::function<bool()>& done, const Deadline& deadline);
  /// Reads what nobody waits for, until the lane ends.
  void run();
  /// Ends the calls that run.
  void close(End how);
  /// Lets run() end them, because one side does not know any more what the other has.
  void break_lane();

 private:
  /// Returns the call if the frame has ended it. Whoever reads drops it later: it may be the last
  /// that holds this lane.
  [[nodiscard]] std::shared_ptr<Call> take(const Ring::Frame& frame);
  template <typename Read>
  void guarded(Read read);

  const std::unique_ptr<Lane> lane_;
  std::atomic<bool> broken_ = false;
  std::mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<Call>> calls_{};
  uint64_t last_ = 0;
};

class LaneCaller::Call final : public MadeCall {
 public:
  Call(std::shared_ptr<State> state,
       std::shared_ptr<Peer> peer,
       const std::string& function,
       const Deadline& deadline,
       std::shared_ptr<SharedLine> line)
      : MadeCall(std::move(peer), function, deadline),
        state_(std::move(state)),
        line_(std::move(line)),
        arriving_(line_.get(), this->peer().options().largest_call_bytes) {}

  void start(uint64_t id, Parcel arguments) {
    id_ = id;
    Leaving leaving(std::move(arguments.memories()), line_.get(), deadline());
    wire::Request request = this->request(arguments, leaving);
    request.set_patience_ms(static_cast<uint64_t>(deadline().remaining().count()));
    {
      const std::lock_guard lock(mutex_);
      if (!ended_) {  // else `leaving` takes them back, while the line is there
        offers_ = std::move(leaving.offers());
      }
    }
    Lane::Sent sent;
    if (!deadline().expired()) {
      sent = state_->lane().send(
          Lane::Kind::kRequest, id, request.SerializeAsString(), leaving.apart(), deadline());
    }
    if (sent.is_whole()) {
      sent_.store(*sent.end, std::memory_order_release);
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      if (!ended_) {
        const bool late = deadline().expired();
        end_with(
            {.status = {late ? grpc::StatusCode::DEADLINE_EXCEEDED : grpc::StatusCode::UNAVAILABLE,
                        "the call could not be sent"},
             .unread = true});
      }
    }
    state_->forget(id);
    if (sent.begun) {
      take_back(id);
    }
  }

  bool wait(const Deadline& deadline) override {
    const Deadline until = this->deadline().sooner(deadline);
    state_->read([&] { return MadeCall::is_completed(); }, until);
    (void)MadeCall::wait(until);
    if (this->deadline().expired()) {
      stop({.status = {grpc::StatusCode::DEADLINE_EXCEEDED, ""}});
    }
    return MadeCall::is_completed();
  }
  bool is_completed() const override { return MadeCall::is_completed() || deadline().expired(); }
  std::optional<Parcel> next() override { return std::nullopt; }  // no streams come through lanes
  void cancel() override { stop({.status = {grpc::StatusCode::CANCELLED, ""}, .cancelled = true}); }

  /// Takes a part of its answer. Returns true when that is whole.
  bool take(const Ring::Frame& frame) {
    if (static_cast<Lane::Kind>(frame.kind) == Lane::Kind::kRefusal) {
      const std::lock_guard lock(mutex_);
      MadeCall::end_with(
          {.status = {grpc::StatusCode::INVALID_ARGUMENT, frame.bytes}, .refused = true});
      return true;
    }
    try {
      if (!arriving_.take(frame)) {
        return false;
      }
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      end_with({.broken = error.what()});
      return true;
    }
    wire::Reply& reply = arriving_.message();
    Parcel value;
    value.memories() = std::move(arriving_).memories();
    const std::lock_guard lock(mutex_);
    if (reply.has_failure()) {
      end_with(std::move(*reply.mutable_failure()));
    } else {
      value.values().Swap(reply.mutable_values());
      end_with(std::move(value));
    }
    return true;
  }

  void break_off(State::End how) {
    const uint64_t sent = sent_.load(std::memory_order_acquire);
    // A worker that has ended the lane, or is dead, reads nothing more.
    const bool gone = how == State::End::kGoodbye || how == State::End::kDeath;
    const bool unread = gone && sent != 0 && !state_->lane().has_read(sent);
    const std::lock_guard lock(mutex_);
    if (ended_) {
      return;
    }
    const bool is_down = how == State::End::kDeath || how == State::End::kBroken;
    end_with({.status = {is_down ? grpc::StatusCode::UNAVAILABLE : grpc::StatusCode::CANCELLED,
                         how == State::End::kBroken ? "what came through shared memory is not whole"
                                                    : "its process is gone"},
              .unread = unread,
              .cancelled = how == State::End::kHere});
  }

 private:
  /// The worker drops the half that it has. Without room for that word the lane is lost.
  void take_back(uint64_t id) {
    constexpr std::chrono::milliseconds kPatience{200};
    const Lane::Sent word =
        state_->lane().send(Lane::Kind::kCancel, id, "", {}, Deadline::after(kPatience));
    if (!word.is_whole()) {
      state_->break_lane();
    }
  }

  void stop(NoAnswer why) {
    {
      const std::lock_guard lock(mutex_);
      if (ended_) {
        return;
      }
      end_with(std::move(why));
    }
    state_->lane().nudge();
    state_->forget(id_);
    // Where there is no room for it, the function finds out at the deadline.
    (void)state_->lane().send(Lane::Kind::kCancel, id_, "", {}, Deadline::after({}));
  }

  const std::shared_ptr<State> state_;
  const std::shared_ptr<SharedLine> line_;
  uint64_t id_ = 0;
  std::atomic<uint64_t> sent_ = 0;  ///< where it ends in the ring; 0: not known yet
  Arriving<wire::Reply> arriving_;  ///< of whoever reads
};

uint64_t LaneCaller::State::add(const std::shared_ptr<Call>& call) {
  const std::lock_guard lock(mutex_);
  calls_[++last_] = call;
  return last_;
}

void LaneCaller::State::forget(uint64_t id) {
  const std::lock_guard lock(mutex_);
  calls_.erase(id);
}

std::shared_ptr<LaneCaller::Call> LaneCaller::State::take(const Ring::Frame& frame) {
  std::shared_ptr<Call> call;
  {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(frame.call);
    if (found == calls_.end()) {
      return nullptr;  // nobody waits for it any more
    }
    call = found->second;
  }
  if (call->take(frame)) {
    forget(frame.call);
  }
  return call;
}

void LaneCaller::State::read(const std::function<bool()>& done, const Deadline& deadline) {
  std::vector<std::shared_ptr<Call>> seen;  // goes after the right to read
  std::optional<Lane::Reading> reading;
  if (done() || !(reading = lane_->try_read())) {
    return;
  }
  guarded([&] {
    std::optional<Ring::Frame> frame;
    do {
      frame = reading->await(done, deadline);
      if (frame) {
        seen.push_back(take(*frame));
      }
    } while (frame && ((!done() && !deadline.expired()) || !reading->leave()));
  });
}

void LaneCaller::State::run() {
  while (lane_->sleep()) {
    std::vector<std::shared_ptr<Call>> seen;  // goes after the right to read
    std::optional<Lane::Reading> reading = lane_->try_read();
    guarded([&] {
      // It leaves soon: a thread that waits reads its own answer faster.
      while (const auto frame =
                 reading ? reading->next(std::chrono::microseconds(0)) : std::nullopt) {
        seen.push_back(take(*frame));
      }
    });
  }
  close(broken_                   ? End::kBroken
        : lane_->is_closed_here() ? End::kHere
        : lane_->said_goodbye()   ? End::kGoodbye
                                  : End::kDeath);
}

void LaneCaller::State::break_lane() {
  broken_ = true;
  lane_->give_up();
}

template <typename Read>
void LaneCaller::State::guarded(Read read) {
  try {
    read();
  } catch (const std::exception& error) {
    log::warn("[rpc.lane] a worker of this host sent what cannot be: {}", error.what());
    break_lane();
  }
}

void LaneCaller::State::close(End how) {
  lane_->close();
  std::vector<std::shared_ptr<Call>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, call] : calls_) {
      all.push_back(call);
    }
    calls_.clear();
  }
  for (const std::shared_ptr<Call>& call : all) {
    call->break_off(how);
  }
}

LaneCaller::LaneCaller(std::unique_ptr<Lane> lane)
    : state_(std::make_shared<State>(std::move(lane))), thread_([state = state_] {
        set_thread_name("argosy-rpc-lane");
        state->run();
      }) {}

/// The last call that holds the peer may end in the lane's own thread.
LaneCaller::~LaneCaller() {
  if (!state_->lane().is_closed_here()) {  // else its thread ends the calls, and knows why
    state_->close(State::End::kHere);
  }
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

bool LaneCaller::is_new() const {
  return state_->lane().is_new();
}

bool LaneCaller::is_open() const {
  return state_->lane().is_open();
}

std::shared_ptr<Pending> LaneCaller::start(std::shared_ptr<Peer> peer,
                                           const std::string& function,
                                           Parcel arguments,
                                           const Deadline& deadline,
                                           std::shared_ptr<SharedLine> line) {
  auto call = std::make_shared<Call>(state_, std::move(peer), function, deadline, std::move(line));
  call->start(state_->add(call), std::move(arguments));
  return call;
}

}  // namespace argosy::rpc
