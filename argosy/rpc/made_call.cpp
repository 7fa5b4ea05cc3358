#include "argosy/rpc/made_call.h"

#include <fmt/format.h>

#include <utility>

#include "argosy/base/text.h"
#include "argosy/rpc/errors.h"

namespace argosy::rpc {
namespace {

/// How long it looks for what became of a worker whose connection broke: the store hears of it a
/// moment later.
constexpr std::chrono::milliseconds kInquiry{1000};

}  // namespace

bool MadeCall::wait(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  return wait_until(changed_, lock, deadline, [&] { return ended_; });
}

bool MadeCall::is_completed() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

const Parcel& MadeCall::result() {
  (void)wait(Deadline::never());
  std::unique_lock lock(mutex_);
  throw_if_failed(lock);
  return values_.front();
}

std::exception_ptr MadeCall::misread(const std::string& why) const {
  return peer_->error(
      function_, CallOutcome::kDone, false, "its result is of another type: " + without_place(why));
}

wire::Request MadeCall::request(Parcel& arguments, Leaving& leaving) const {
  wire::Request request;
  request.set_function(function_);
  request.set_caller(peer_->options().name);
  request.mutable_arguments()->Swap(&arguments.values());
  leaving.describe(*request.mutable_memories());
  return request;
}

void MadeCall::end() {
  if (!std::exchange(ended_, true)) {
    took_ = Deadline::Clock::now() - start_;
  }
  offers_.withdraw();
  changed_.notify_all();
}

void MadeCall::end_with(Parcel value) {
  values_.push_back(std::move(value));
  end();
}

void MadeCall::end_with(wire::Failure failure) {
  thrown_ = std::move(failure);
  end();
}

void MadeCall::end_with(NoAnswer why) {
  unanswered_ = std::move(why);
  end();
}

void MadeCall::throw_if_failed(std::unique_lock<std::mutex>& lock) {
  if (error_ == nullptr && thrown_) {
    error_ = remote_error(*thrown_);
  }
  if (error_ == nullptr && values_.empty() && unanswered_) {
    const NoAnswer why = *unanswered_;
    lock.unlock();  // it may ask the store
    std::exception_ptr error = error_of(why);
    lock.lock();
    error_ = std::move(error);
  }
  if (error_ != nullptr) {
    std::rethrow_exception(error_);
  }
}

std::exception_ptr MadeCall::remote_error(const wire::Failure& failure) const {
  const std::string what =
      fmt::format("{}: function \"{}\" threw {}: {}{}",
                  peer_->described(),
                  function_,
                  failure.type().empty() ? "an exception" : text::printable(failure.type()),
                  failure.place().empty() ? "" : "[" + failure.place() + "] ",
                  failure.text().empty() ? "(no text)" : failure.text());
  return std::make_exception_ptr(
      RemoteError(what,
                  {.op = function_,
                   .rank = peer_->options().rank,
                   .peers = {static_cast<int>(peer_->card().rank())}},
                  peer_->card().name(),
                  {.type = failure.type(), .text = failure.text(), .place = failure.place()}));
}

std::exception_ptr MadeCall::error_of(const NoAnswer& why) const {
  const bool late = why.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  const auto make = [&](const std::string& what) {
    const bool not_run = why.refused || why.unread;
    return peer_->error(
        function_, not_run ? CallOutcome::kRefused : CallOutcome::kUnknown, late, what);
  };
  if (why.refused) {
    return make("it refused the call: " + why.status.error_message());
  }
  if (!why.broken.empty()) {
    return make("its reply is wrong: " + why.broken);
  }
  if (why.cancelled) {
    return make("the call was cancelled here");
  }
  if (why.status.error_code() == grpc::StatusCode::CANCELLED) {
    return make(why.unread ? "it has left the job" : "it left the job while the call ran");
  }
  const std::string fate = peer_->fate(late ? std::chrono::milliseconds(0) : kInquiry);
  if (!fate.empty()) {
    return make("it " + fate);
  }
  if (late) {
    return make(fmt::format("it did not answer within {}", text::duration(took_)));
  }
  return make(fmt::format("the connection to it broke ({})", why.status.error_message()));
}

}  // namespace argosy::rpc
