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
  self_ = shared_from_this();
  stub_->async()->Announce(context_.get(), this);
  update_.set_member(member);
  writing_ = true;
  last_write_ = Deadline::Clock::now();
  AddHold();  // writes are started outside of reactions; let go of in end_writing()
  StartWrite(&update_);
  StartRead(&reply_);
  StartCall();
  const auto decided = [&] { return taken_ || done_.has_value(); };
  if (wait_until(changed_, lock, deadline, decided)) {
    return taken_ ? grpc::Status::OK : *done_;
  }
  lock.unlock();
  context_->TryCancel();
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
  if (!wait_until(changed_, lock, deadline, [&] { return done_.has_value(); })) {
    lock.unlock();
    context_->TryCancel();  // the server is stuck or gone; it will count us as lost
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
  timer_->Set(std::chrono::system_clock::now() + delay, [stream = weak_from_this()](bool) {
    if (const auto self = stream.lock()) {
      const std::lock_guard lock(self->mutex_);
      self->timer_set_ = false;
      if (!self->over_ && !self->writing_ && self->next_note_) {
        self->write_next();
      }
    }
  });
}

void PresenceStream::end_writing() {
  over_ = true;
  RemoveHold();
}

void PresenceStream::OnReadDone(bool ok) {
  const std::lock_guard lock(mutex_);
  if (!ok) {  // the server ended the stream, or it broke: OnDone tells which
    end_writing();
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

void PresenceStream::OnDone(const grpc::Status& status) {
  std::shared_ptr<PresenceStream> self;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  done_ = status;
  over_ = true;
  self.swap(self_);
  changed_.notify_all();
}

}  // namespace argosy::rendezvous
