#include "argosy/rendezvous/presence_stream.h"

#include <chrono>
#include <utility>

namespace argosy::rendezvous {
namespace {

// 512 ranks that note each of thousands of operations make 5,000 messages a second at most.
constexpr std::chrono::milliseconds kNoteInterval{100};

}  // namespace

PresenceStream::PresenceStream(std::shared_ptr<wire::StoreService::Stub> stub,
                               std::unique_ptr<grpc::ClientContext> context)
    : stub_(std::move(stub)), context_(std::move(context)) {}

grpc::Status PresenceStream::open(const std::string& member, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  opened_ = true;
  stub_->async()->Announce(context_.get(), this);
  update_.set_member(member);
  writing_ = true;
  last_write_ = Deadline::Clock::now();
  AddHold();  // writes are started outside of reactions; let go of in OnReadDone()
  StartWrite(&update_);
  StartRead(&reply_);
  StartCall();
  const auto decided = [&] { return taken_ || done_.has_value(); };
  if (wait_until(changed_, lock, deadline, decided)) {
    return taken_ ? grpc::Status::OK : *done_;
  }
  return {grpc::StatusCode::DEADLINE_EXCEEDED, "no answer to the announcement"};
}

void PresenceStream::note(std::string text) {
  const std::lock_guard lock(mutex_);
  next_note_ = std::move(text);
  if (over_ || writing_ || timer_set_ || goodbye_) {
    return;
  }
  if (Deadline::Clock::now() - last_write_ >= kNoteInterval) {
    write_next();
  } else {
    write_later();
  }
}

void PresenceStream::leave(std::string note, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  if (!goodbye_) {
    goodbye_ = std::move(note);
    if (!over_ && !writing_) {
      write_next();
    }
  }
  wait_until(changed_, lock, deadline, [&] { return done_.has_value(); });
}

bool PresenceStream::end(const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  if (!opened_) {
    return true;
  }
  over_ = true;
  if (timer_set_) {
    timer_->Cancel();
  }
  if (!done_) {
    context_->TryCancel();  // the server will count us as lost unless it had our goodbye
  }
  return wait_until(changed_, lock, deadline, [&] { return done_.has_value() && !timer_set_; });
}

void PresenceStream::Ending::operator()(PresenceStream* stream) const {
  if (stream->end(Deadline::after(std::chrono::seconds(10)))) {
    delete stream;
  }
}

void PresenceStream::write_next() {
  update_.Clear();
  writing_ = true;
  last_write_ = Deadline::Clock::now();
  if (goodbye_) {
    update_.set_note(*goodbye_);
    update_.set_leave(true);
    over_ = true;
    StartWriteLast(&update_, grpc::WriteOptions());
    return;
  }
  update_.set_note(*std::exchange(next_note_, std::nullopt));
  StartWrite(&update_);
}

void PresenceStream::write_later() {
  timer_set_ = true;
  const auto delay = std::chrono::ceil<std::chrono::milliseconds>(last_write_ + kNoteInterval -
                                                                  Deadline::Clock::now());
  timer_ = std::make_unique<grpc::Alarm>();
  timer_->Set(std::chrono::system_clock::now() + delay, [this](bool) { on_timer(); });
}

void PresenceStream::on_timer() {
  const std::lock_guard lock(mutex_);
  timer_set_ = false;
  if (!over_ && !writing_ && next_note_) {
    write_next();
  }
  changed_.notify_all();
}

void PresenceStream::OnReadDone(bool ok) {
  const std::lock_guard lock(mutex_);
  if (!ok) {  // the server ended the stream, or it broke: OnDone tells which
    over_ = true;
    RemoveHold();
    return;
  }
  taken_ = true;
  changed_.notify_all();
  StartRead(&reply_);  // nothing more comes; this read notices the end
}

void PresenceStream::OnWriteDone(bool ok) {
  const std::lock_guard lock(mutex_);
  writing_ = false;
  if (!ok || over_) {
    return;
  }
  if (goodbye_) {
    write_next();
  } else if (next_note_ && !timer_set_) {
    write_later();
  }
}

// The last touch by gRPC, but for the timer: who waits may delete this once the lock is free.
void PresenceStream::OnDone(const grpc::Status& status) {
  const std::lock_guard lock(mutex_);
  done_ = status;
  over_ = true;
  changed_.notify_all();
}

}  // namespace argosy::rendezvous
