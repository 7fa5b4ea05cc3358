#include "argosy/abi/comm.h"

#include <unistd.h>

#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/comm/flight_recorder.h"
#include "argosy/comm/group_state.h"
#include "argosy/comm/init.h"
#include "argosy/os/random.h"
#include "argosy/rendezvous/invitation.h"

struct ArgosyText {
  std::string value{};
};
struct ArgosyGroup {
  argosy::comm::Group group{};
};
struct ArgosyBlock {
  std::shared_ptr<argosy::transport::SharedBlock> block{};
};
struct ArgosyHere {
  argosy::transport::Transport& transport;
  const argosy::Deadline& deadline;
  std::exception_ptr failure{};
};

namespace argosy::abi {
namespace {

using comm::OperationInfo;
using transport::DType;
using transport::ReduceOp;
using transport::Transport;

constexpr const char* kInvitationKey = "argosy/invitation";

std::chrono::milliseconds milliseconds(int64_t count) {
  return std::chrono::milliseconds(count);
}

/// What an exception is for who knows none.
struct Outcome {
  ArgosyCode code = ARGOSY_OK;
  std::string message{};
  std::vector<int> peers{};
};
Outcome outcome_of(const std::exception_ptr& error) {
  if (error == nullptr) {
    return {};
  }
  try {
    std::rethrow_exception(error);
  } catch (const TimeoutError& e) {
    return {ARGOSY_TIMED_OUT, e.what(), e.peers()};
  } catch (const CommError& e) {
    return {ARGOSY_FAILED, e.what(), e.peers()};
  } catch (const UsageError& e) {
    return {ARGOSY_MISUSED, e.what()};
  } catch (const std::exception& e) {
    return {ARGOSY_FAILED, e.what()};
  } catch (...) {
    return {ARGOSY_FAILED, "unknown exception"};
  }
}

/// Runs `call`; what it throws is told to `why`.
template <typename Call>
ArgosyCode guarded(ArgosyText* why, Call call) noexcept {
  try {
    call();
    return ARGOSY_OK;
  } catch (...) {
    const Outcome outcome = outcome_of(std::current_exception());
    if (why != nullptr) {
      why->value = outcome.message;
    }
    return outcome.code;
  }
}

comm::Operation::Then told(ArgosyThen then, void* context) {
  return [then, context](const comm::Operation& ended, const std::exception_ptr& error) {
    const Outcome outcome = outcome_of(error);
    const ArgosyEnd end{.code = outcome.code,
                        .message = error == nullptr ? nullptr : outcome.message.c_str(),
                        .peers = outcome.peers.data(),
                        .peer_count = outcome.peers.size(),
                        .source = ended.source};
    then(context, &end);
  };
}

/// The caller's store. Its failures are RendezvousErrors and TimeoutErrors of ours.
class Foreign final {
 public:
  explicit Foreign(const ArgosyMeeting& meeting) : meeting_(meeting) {}

  void set(const std::string& value) const {
    ArgosyText why;
    check(meeting_.set(meeting_.store, kInvitationKey, value.c_str(), &why), why);
  }
  [[nodiscard]] std::string get(const Deadline& deadline) const {
    ArgosyText value;
    ArgosyText why;
    check(meeting_.get(meeting_.store, kInvitationKey, deadline.remaining().count(), &value, &why),
          why);
    return value.value;
  }

 private:
  void check(int code, const ArgosyText& why) const {
    if (code == ARGOSY_TIMED_OUT) {
      throw TimeoutError(
          "comm.init",
          "rank 0 of group \"" + std::string(meeting_.name) + "\" did not come: " + why.value,
          {.op = "init", .group = meeting_.name, .rank = meeting_.rank, .peers = {0}});
    }
    if (code != ARGOSY_OK) {
      throw RendezvousError("comm.init", "the store in which the ranks meet: " + why.value);
    }
  }
  const ArgosyMeeting& meeting_;
};

/// Groups come and go by the dozen: those whose first rank is this process share one store, and
/// those whose first rank is elsewhere one connection, as long as one of them lives.
class Stores final {
 public:
  static Stores& of_process() {
    static auto* const stores = new Stores;  // groups may be closed when statics have gone
    return *stores;
  }

  [[nodiscard]] rendezvous::OpenHouse own(const rendezvous::InvitationOptions& options) {
    const std::lock_guard lock(mutex_);
    forget_parent();
    std::shared_ptr<rendezvous::Store> store = own_.lock();
    if (store == nullptr) {
      rendezvous::OpenHouse house = rendezvous::invite(options);
      invitation_ = house.invitation;
      store = std::move(house.store);
      own_ = store;
    }
    return {.store = std::move(store), .invitation = invitation_};
  }

  [[nodiscard]] std::shared_ptr<rendezvous::Store> at(
      const std::string& invitation,
      const std::function<std::shared_ptr<rendezvous::Store>()>& connect) {
    const std::lock_guard lock(mutex_);
    forget_parent();
    std::shared_ptr<rendezvous::Store> store = others_[invitation].lock();
    if (store == nullptr) {
      store = connect();
      others_[invitation] = store;
    }
    return store;
  }

 private:
  /// A forked process has neither the threads nor the connections.
  void forget_parent() {
    if (process_ != getpid()) {
      process_ = getpid();
      own_.reset();
      others_.clear();
    }
  }

  std::mutex mutex_;
  pid_t process_ = getpid();
  std::weak_ptr<rendezvous::Store> own_;
  std::string invitation_;
  std::map<std::string, std::weak_ptr<rendezvous::Store>> others_;
};

/// The group's own part of the store of its first rank. What that rank leaves is its invitation,
/// and a word that no group before had.
std::shared_ptr<rendezvous::Store> meet(const ArgosyMeeting& meeting, const Deadline& deadline) {
  const rendezvous::JobEnvironment job =
      rendezvous::read_identity([](const char* name) { return env::get(name); });
  const rendezvous::InvitationOptions options{.where = "comm.init",
                                              .foreign = "the store in which the ranks meet",
                                              .towards = meeting.towards,
                                              .token = job.token,
                                              .tls = job.tls};
  const Foreign foreign(meeting);
  if (meeting.rank == 0) {
    rendezvous::OpenHouse house = Stores::of_process().own(options);
    const std::string part = os::random_hex(8);
    foreign.set(house.invitation + "\n" + part);
    return rendezvous::prefix_store(std::move(house.store), part);
  }
  const std::string said = foreign.get(deadline);
  const size_t line = said.find('\n');
  const std::string invitation = said.substr(0, line);
  std::shared_ptr<rendezvous::Store> store = Stores::of_process().at(invitation, [&] {
    return rendezvous::follow(
        options, [&] { return std::string(invitation); }, deadline);
  });
  return rendezvous::prefix_store(std::move(store),
                                  line == std::string::npos ? "group" : said.substr(line + 1));
}

comm::Group make(const ArgosyMeeting& meeting) {
  const comm::InitOptions options{.timeout = milliseconds(meeting.timeout_ms)};
  const Deadline deadline = Deadline::after(options.timeout);
  rendezvous::Joined joined;
  joined.rank = meeting.rank;
  joined.world_size = meeting.size;
  if (meeting.size > 1) {
    joined.store = meet(meeting, deadline);
    joined.presence =
        rendezvous::wait_for_ranks(*joined.store, meeting.rank, meeting.size, deadline);
  }
  return comm::form(meeting.name, std::move(joined), options, deadline);
}

void run(Transport& transport, const ArgosyStep& step, std::chrono::milliseconds timeout) {
  const auto type = static_cast<DType>(step.type);
  const auto reduction = static_cast<ReduceOp>(step.reduction);
  const auto counts = [&](const int64_t* of_ranks) {
    if (of_ranks == nullptr) {
      throw UsageError("comm.step", "a count for each rank is needed, got none");
    }
    return transport::Counts(of_ranks, static_cast<size_t>(transport.size()));
  };
  switch (step.kind) {
    case ARGOSY_ALL_REDUCE:
      return transport.all_reduce(step.output, step.count, type, reduction, timeout);
    case ARGOSY_REDUCE:
      return transport.reduce(step.output, step.count, type, reduction, step.root, timeout);
    case ARGOSY_BROADCAST:
      return transport.broadcast(step.output, step.count, type, step.root, timeout);
    case ARGOSY_ALL_GATHER:
      return transport.all_gather(step.input, step.output, step.count, type, timeout);
    case ARGOSY_ALL_GATHER_V:
      return transport.all_gather_v(
          step.input, step.output, counts(step.receive_counts), type, timeout);
    case ARGOSY_GATHER:
      return transport.gather(step.input, step.output, step.count, type, step.root, timeout);
    case ARGOSY_SCATTER:
      return transport.scatter(step.input, step.output, step.count, type, step.root, timeout);
    case ARGOSY_REDUCE_SCATTER:
      return transport.reduce_scatter(
          step.input, step.output, step.count, type, reduction, timeout);
    case ARGOSY_ALL_TO_ALL:
      return transport.all_to_all(step.input, step.output, step.count, type, timeout);
    case ARGOSY_ALL_TO_ALL_V:
      return transport.all_to_all_v(step.input,
                                    counts(step.send_counts),
                                    step.output,
                                    counts(step.receive_counts),
                                    type,
                                    timeout);
    case ARGOSY_BARRIER:
      return transport.barrier(timeout);
  }
  throw UsageError("comm.step", "there is no such step: " + std::to_string(step.kind));
}

/// Runs a step of an operation; what it throws is kept for the operation's end.
template <typename Step>
ArgosyCode attempt(ArgosyHere& here, Step step) noexcept {
  try {
    step(here.transport, here.deadline.remaining());
    return ARGOSY_OK;
  } catch (...) {
    here.failure = std::current_exception();
    return outcome_of(here.failure).code;
  }
}

comm::Operation::Body body_of(ArgosyBody body, void* context) {
  return [body, context](Transport& transport, const Deadline& deadline) {
    ArgosyHere here{.transport = transport, .deadline = deadline};
    if (body(context, &here) == ARGOSY_OK) {
      return;
    }
    if (here.failure != nullptr) {
      std::rethrow_exception(here.failure);
    }
    throw Error("comm.operation", "it failed, and did not say why");
  };
}

void submit(ArgosyGroup& group, const ArgosyOperation& operation) {
  comm::GroupState& state = group.group.state();
  OperationInfo info{.op = operation.name,
                     .dtype = operation.type,
                     .elements = operation.elements,
                     .bytes = operation.bytes};
  const auto timeout = milliseconds(operation.timeout_ms);
  comm::Operation::Body body = body_of(operation.body, operation.context);
  comm::Operation::Then then = told(operation.then, operation.context);
  if (operation.waits == 0) {
    (void)state.submit(std::move(info), timeout, std::move(body), std::move(then));
    return;
  }
  bool over = false;
  try {
    state.run(std::move(info), timeout, std::move(body), [&](const auto& ended, const auto& error) {
      over = true;
      then(ended, error);
    });
  } catch (...) {
    if (!over) {  // else `then` has heard it
      throw;
    }
  }
}

void transfer(ArgosyGroup& group, const ArgosyTransfer& wanted) {
  const bool receives = wanted.receives != 0;
  (void)group.group.state().submit_transfer(
      {.op = receives ? "recv" : "send",
       .bytes = static_cast<int64_t>(wanted.bytes),
       .peer = wanted.peer,
       .tag = wanted.tag},
      milliseconds(wanted.timeout_ms),
      [=](Transport& transport) {
        return receives ? transport.recv(wanted.data, wanted.bytes, wanted.peer, wanted.tag)
                        : transport.send(wanted.data, wanted.bytes, wanted.peer, wanted.tag);
      },
      [] {},
      nullptr,
      told(wanted.then, wanted.context));
}

}  // namespace
}  // namespace argosy::abi

using argosy::abi::guarded;

int argosy_abi(void) {
  return ARGOSY_ABI;
}

ArgosyText* argosy_text_new(void) {
  return new ArgosyText;
}
void argosy_text_free(ArgosyText* text) {
  delete text;
}
void argosy_text_set(ArgosyText* text, const char* value, size_t bytes) {
  text->value.assign(value, bytes);
}
const char* argosy_text_get(const ArgosyText* text) {
  return text->value.c_str();
}

ArgosyGroup* argosy_group_make(const ArgosyMeeting* meeting, ArgosyCode* code, ArgosyText* why) {
  std::unique_ptr<ArgosyGroup> made;
  *code = guarded(why, [&] {
    made = std::make_unique<ArgosyGroup>(ArgosyGroup{.group = argosy::abi::make(*meeting)});
  });
  return made.release();
}
void argosy_group_close(ArgosyGroup* group, int64_t timeout_ms) {
  (void)guarded(nullptr, [&] {
    group->group.state().close(argosy::Deadline::after(argosy::abi::milliseconds(timeout_ms)));
  });
}
void argosy_group_free(ArgosyGroup* group) {
  delete group;
}
void argosy_group_record(const ArgosyGroup* group, ArgosyText* json) {
  (void)guarded(json, [&] { json->value = group->group.state().family().recorder->to_json(); });
}

int argosy_is_defined(ArgosyReduction reduction, ArgosyType type) {
  return static_cast<int>(
      argosy::transport::is_defined(static_cast<argosy::transport::ReduceOp>(reduction),
                                    static_cast<argosy::transport::DType>(type)));
}
int argosy_step(ArgosyHere* here, const ArgosyStep* step) {
  return argosy::abi::attempt(
      *here, [&](auto& transport, auto timeout) { argosy::abi::run(transport, *step, timeout); });
}
int argosy_share(ArgosyHere* here, size_t bytes, ArgosyBlock** block) {
  *block = nullptr;
  return argosy::abi::attempt(*here, [&](auto& transport, auto timeout) {
    if (auto shared = transport.share(bytes, timeout)) {
      *block = std::make_unique<ArgosyBlock>(ArgosyBlock{.block = std::move(shared)}).release();
    }
  });
}
void* argosy_block_data(const ArgosyBlock* block) {
  return block->block->bytes().data();
}
void argosy_block_free(ArgosyBlock* block) {
  delete block;
}
void argosy_fail(ArgosyHere* here, const char* message) {
  here->failure = std::make_exception_ptr(argosy::Error("comm.operation", message));
}

int argosy_submit(ArgosyGroup* group, const ArgosyOperation* operation, ArgosyText* why) {
  return guarded(why, [&] { argosy::abi::submit(*group, *operation); });
}
int argosy_transfer(ArgosyGroup* group, const ArgosyTransfer* transfer, ArgosyText* why) {
  return guarded(why, [&] { argosy::abi::transfer(*group, *transfer); });
}
