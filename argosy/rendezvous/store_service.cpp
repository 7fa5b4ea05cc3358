#include "argosy/rendezvous/store_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"
#include "argosy/rendezvous/limits.h"
#include "argosy/rendezvous/wire.h"

namespace argosy::rendezvous {
namespace {

template <typename Repeated>
std::vector<std::string> to_vector(const Repeated& repeated) {
  return {repeated.begin(), repeated.end()};
}

grpc::Status closing() {
  return {grpc::StatusCode::ABORTED, "the store is closing: the job ends"};
}

}  // namespace

/// A call that waits for keys. It deletes itself when gRPC is done with it.
class StoreService::Waiting final : public grpc::ServerUnaryReactor {
 public:
  Waiting(std::shared_ptr<Board> board, std::string* value)
      : board_(std::move(board)), value_(value) {}

  void start(std::vector<std::string> keys) {
    // gRPC holds reactions back until the handler has returned: `this` outlives this function, and
    // waiter_ is set before OnCancel can look at it.
    waiter_ = board_->when_all(std::move(keys), [this](Wakeup wakeup) {
      if (wakeup.closed) {
        Finish(closing());
        return;
      }
      if (value_ != nullptr) {
        *value_ = std::move(wakeup.value);
      }
      Finish(grpc::Status::OK);
    });
  }

 private:
  void OnCancel() override {  // also when its deadline passed or its client died
    if (board_->forget(waiter_)) {
      Finish(grpc::Status::CANCELLED);
    }
  }
  void OnDone() override { delete this; }

  const std::shared_ptr<Board> board_;
  std::string* const value_;
  uint64_t waiter_ = 0;
};

/// Members that are present through the network. Shared with their streams, which may end after the
/// service did.
struct StoreService::Census {
  std::mutex mutex;
  std::condition_variable changed;
  size_t members = 0;

  void count(int change) {
    const std::lock_guard lock(mutex);
    members += static_cast<size_t>(change);
    changed.notify_all();
  }
};

/// The server's end of one member's presence. It deletes itself when gRPC is done with it.
class StoreService::PresenceEnd final
    : public grpc::ServerBidiReactor<wire::PresenceUpdate, wire::PresenceReply> {
 public:
  explicit PresenceEnd(const StoreService& service)
      : board_(service.board_), census_(service.census_) {
    StartRead(&update_);
  }
  PresenceEnd(const StoreService& service, const grpc::Status& refusal)
      : board_(service.board_), census_(service.census_) {
    finish(refusal);
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {
      end(Parting::kLost, std::nullopt, grpc::Status::OK);
    } else if (presence_ == 0) {
      take();
    } else if (update_.leave()) {
      end(Parting::kLeft, cut_note(update_.note()), grpc::Status::OK);
    } else {
      board_->note(presence_, cut_note(update_.note()));
      StartRead(&update_);
    }
  }

  void take() {
    try {
      check_key("announce", update_.member());
      presence_ = board_->arrive(update_.member());
      census_->count(1);
      closer_ = board_->when_closed([handle = handle_] {
        const std::lock_guard lock(handle->mutex);
        if (handle->end != nullptr) {
          handle->end->finish(closing());
        }
      });
    } catch (const std::exception& error) {
      finish(wire::to_status(error));
      return;
    }
    StartWrite(&reply_);
    StartRead(&update_);
  }

  void OnCancel() override { finish(grpc::Status::CANCELLED); }

  // The departure stands before the client hears of it: after leave() everybody sees it.
  void end(Parting parting, const std::optional<std::string>& note, const grpc::Status& status) {
    board_->depart(presence_, parting, note);
    finish(status);
  }

  void finish(const grpc::Status& status) {
    if (!finished_.exchange(true)) {
      Finish(status);
    }
  }

  void OnDone() override {
    {
      const std::lock_guard lock(handle_->mutex);
      handle_->end = nullptr;
    }
    board_->forget(closer_);
    board_->depart(presence_, Parting::kLost, std::nullopt);  // no effect after a goodbye
    if (presence_ != 0) {
      census_->count(-1);
    }
    delete this;
  }

  // The board may be closing, with our function in its hands, while this stream ends.
  struct Handle {
    std::mutex mutex;
    PresenceEnd* end;
  };

  const std::shared_ptr<Board> board_;
  const std::shared_ptr<Census> census_;
  const std::shared_ptr<Handle> handle_{new Handle{{}, this}};
  uint64_t presence_ = 0;
  uint64_t closer_ = 0;
  std::atomic<bool> finished_ = false;
  wire::PresenceUpdate update_;
  wire::PresenceReply reply_;
};

StoreService::StoreService(std::shared_ptr<Board> board, std::string token)
    : board_(std::move(board)),
      admission_("rendezvous.store", "store", std::move(token)),
      census_(std::make_shared<Census>()) {}

bool StoreService::wait_until_members_left(const Deadline& deadline) {
  std::unique_lock lock(census_->mutex);
  return wait_until(census_->changed, lock, deadline, [&] { return census_->members == 0; });
}

StoreService::Unary* StoreService::answer(Context* context,
                                          const std::function<void()>& act) const {
  grpc::Status status = admission_.admit(*context);
  if (status.ok()) {
    try {
      act();
    } catch (const std::exception& error) {
      status = wire::to_status(error);
    }
  }
  Unary* reactor = context->DefaultReactor();
  reactor->Finish(status);
  return reactor;
}

StoreService::Unary* StoreService::Hello(Context* context,
                                         const wire::HelloRequest*,
                                         wire::HelloReply* reply) {
  return answer(context, [&] { reply->set_time_us(local_time_us()); });
}

StoreService::Unary* StoreService::Set(Context* context,
                                       const wire::SetRequest* request,
                                       wire::SetReply*) {
  return answer(context, [&] {
    check_key("set", request->key());
    check_value("set", request->key(), request->value());
    board_->set(request->key(), request->value());
  });
}

StoreService::Unary* StoreService::wait_for(const Context& context,
                                            std::vector<std::string> keys,
                                            std::string* value) const {
  auto* waiting = new Waiting(board_, value);
  grpc::Status status = admission_.admit(context);
  if (status.ok()) {
    try {
      check_keys("wait", keys);
      waiting->start(std::move(keys));
      return waiting;
    } catch (const std::exception& error) {
      status = wire::to_status(error);
    }
  }
  waiting->Finish(status);
  return waiting;
}

StoreService::Unary* StoreService::Get(Context* context,
                                       const wire::GetRequest* request,
                                       wire::GetReply* reply) {
  return wait_for(*context, {request->key()}, reply->mutable_value());
}

StoreService::Unary* StoreService::Wait(Context* context,
                                        const wire::WaitRequest* request,
                                        wire::WaitReply*) {
  if (request->keys().empty()) {
    return answer(context, [] {});
  }
  return wait_for(*context, to_vector(request->keys()), nullptr);
}

StoreService::Unary* StoreService::Missing(Context* context,
                                           const wire::MissingRequest* request,
                                           wire::MissingReply* reply) {
  return answer(context, [&] {
    for (std::string& key : board_->missing(to_vector(request->keys()))) {
      reply->add_keys(std::move(key));
    }
  });
}

StoreService::Unary* StoreService::Add(Context* context,
                                       const wire::AddRequest* request,
                                       wire::AddReply* reply) {
  return answer(context, [&] {
    check_key("add", request->key());
    reply->set_sum(board_->add(request->key(), request->amount()));
  });
}

StoreService::Unary* StoreService::CompareSet(Context* context,
                                              const wire::CompareSetRequest* request,
                                              wire::CompareSetReply* reply) {
  return answer(context, [&] {
    check_key("compare_set", request->key());
    check_value("compare_set", request->key(), request->desired());
    reply->set_value(board_->compare_set(request->key(), request->expected(), request->desired()));
  });
}

StoreService::Unary* StoreService::Remove(Context* context,
                                          const wire::RemoveRequest* request,
                                          wire::RemoveReply* reply) {
  return answer(context, [&] { reply->set_existed(board_->remove(request->key())); });
}

StoreService::Unary* StoreService::Keys(Context* context,
                                        const wire::KeysRequest* request,
                                        wire::KeysReply* reply) {
  return answer(context, [&] {
    for (std::string& key : board_->keys(request->prefix())) {
      reply->add_keys(std::move(key));
    }
  });
}

grpc::ServerBidiReactor<wire::PresenceUpdate, wire::PresenceReply>* StoreService::Announce(
    Context* context) {
  const grpc::Status status = admission_.admit(*context);
  return status.ok() ? new PresenceEnd(*this) : new PresenceEnd(*this, status);
}

StoreService::Unary* StoreService::Departures(Context* context,
                                              const wire::DeparturesRequest* request,
                                              wire::DeparturesReply* reply) {
  return answer(context, [&] {
    for (const rendezvous::Departure& one : board_->departures(request->prefix())) {
      auto* out = reply->add_departures();
      out->set_member(one.member);
      out->set_lost(one.lost);
      out->set_note(one.note);
    }
  });
}

StoreService::Unary* StoreService::Members(Context* context,
                                           const wire::MembersRequest* request,
                                           wire::MembersReply* reply) {
  return answer(context, [&] {
    for (const Member& one : board_->members(request->prefix())) {
      auto* out = reply->add_members();
      out->set_name(one.name);
      out->set_note(one.note);
    }
  });
}

}  // namespace argosy::rendezvous
