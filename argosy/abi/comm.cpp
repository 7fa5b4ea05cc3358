#include "argosy/abi/comm.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/comm/at_exit.h"
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
constexpr const char* kOver = "argosy: the ranks have met";  ///< instead of an invitation
constexpr std::chrono::milliseconds kBetweenLooks{20};       ///< a foreign store tells of no change

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
  /// Waits for the invitation to a group that is being made.
  [[nodiscard]] std::string get(const Deadline& deadline) const {
    while (true) {
      ArgosyText value;
      ArgosyText why;
      const int64_t left = std::max<int64_t>(deadline.remaining().count(), 1);  // 0 may mean: ever
      check(meeting_.get(meeting_.store, kInvitationKey, left, &value, &why), why);
      if (value.value != kOver) {
        return value.value;
      }
      why.value = "its invitation is to a group that met before";
      check(deadline.expired() ? ARGOSY_TIMED_OUT : ARGOSY_OK, why);
      std::this_thread::sleep_for(kBetweenLooks);
    }
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

/// What rank 0 leaves in the caller's store: where its own store is, and which part of that is the
/// group's. No group before had that part.
struct Invitation {
  std::string way{};
  std::string part{};

  [[nodiscard]] std::string text() const { return way + "\n" + part; }
  static Invitation parse(const std::string& text) {
    const size_t line = std::min(text.find('\n'), text.size());
    return {.way = text.substr(0, line), .part = text.substr(std::min(line + 1, text.size()))};
  }
};

/// An invitation that stands as long as the ranks meet. Later it would lead to a group that is
/// over. No rank has its group before rank 0 is through with the meeting: so none of them asks for
/// the next invitation before this one has gone.
class Standing final {
 public:
  Standing(const Foreign& foreign, const Invitation& invitation) : foreign_(foreign) {
    foreign_.set(invitation.text());
  }
  ~Standing() {
    try {
      foreign_.set(kOver);
    } catch (const Error& e) {
      log::warn("[comm.init] an invitation could not be withdrawn: {}", e.what());
    }
  }
  Standing(const Standing&) = delete;
  Standing& operator=(const Standing&) = delete;
  Standing(Standing&&) = delete;
  Standing& operator=(Standing&&) = delete;

 private:
  const Foreign& foreign_;
};

/// Groups come and go by the dozen: those whose first rank is this process share one store, and
/// those whose first rank is elsewhere one connection, as long as one of them lives.
class Stores final {
 public:
  using StorePtr = std::shared_ptr<rendezvous::Store>;

  static Stores& of_process() {
    static auto* const stores = new Stores;  // groups may be closed when statics have gone
    return *stores;
  }

  /// The store that others reach as `options` say.
  [[nodiscard]] rendezvous::OpenHouse own(const rendezvous::InvitationOptions& options) {
    const std::lock_guard lock(mutex_);
    forget_parent();
    House& house = own_[options.towards];
    StorePtr store = house.store.lock();
    if (store == nullptr) {
      rendezvous::OpenHouse opened = rendezvous::invite(options);
      store = std::move(opened.store);
      house = {.store = store, .invitation = std::move(opened.invitation)};
    }
    clear_left_parts(house, store);
    return {.store = std::move(store), .invitation = house.invitation};
  }
  /// `used`, this part of own(`options`), is cleared when no rank needs it any more: when all of
  /// them had met there, and have left.
  void clear_later(const rendezvous::InvitationOptions& options,
                   const std::string& part,
                   const StorePtr& used) {
    const std::lock_guard lock(mutex_);
    own_[options.towards].parts.push_back({.name = part, .used = used});
  }

  /// The connection that is there; nullptr: none is.
  [[nodiscard]] StorePtr known(const std::string& way) {
    const std::lock_guard lock(mutex_);
    forget_parent();
    const auto found = others_.find(way);
    return found == others_.end() ? nullptr : found->second.lock();
  }
  /// Keeps a connection in mind, and returns it, or another thread's that was sooner.
  [[nodiscard]] StorePtr keep(const std::string& way, const StorePtr& connected) {
    const std::lock_guard lock(mutex_);
    std::erase_if(others_, [](const auto& other) { return other.second.expired(); });
    StorePtr first = others_[way].lock();
    if (first != nullptr) {
      return first;
    }
    others_[way] = connected;
    return connected;
  }

 private:
  struct Part {
    std::string name{};
    std::weak_ptr<rendezvous::Store> used{};  ///< as long as the group lives here
  };
  struct House {
    std::weak_ptr<rendezvous::Store> store{};
    std::string invitation{};
    std::vector<Part> parts{};
  };

  /// A forked process has neither the threads nor the connections.
  void forget_parent() {
    if (process_ != getpid()) {
      process_ = getpid();
      own_.clear();
      others_.clear();
    }
  }

  static void clear_left_parts(House& house, const StorePtr& store) {
    std::erase_if(house.parts, [&](const Part& part) {
      return part.used.expired() && cleared(*rendezvous::prefix_store(store, part.name));
    });
  }
  /// Clears a part, unless a rank is still there.
  static bool cleared(rendezvous::Store& part) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(1));  // it is in this process
    if (!part.members("", deadline).empty()) {
      return false;
    }
    std::vector<std::string> names = part.keys("", deadline);
    for (const rendezvous::Departure& gone : part.departures("", deadline)) {
      names.push_back(gone.member);
    }
    for (const std::string& name : names) {
      (void)part.remove(name, deadline);
    }
    return true;
  }

  std::mutex mutex_;
  pid_t process_ = getpid();
  std::map<std::string, House> own_;  // by `towards`
  std::map<std::string, std::weak_ptr<rendezvous::Store>> others_;
};

/// The ranks of a group meet.
class Meeting final {
 public:
  Meeting(const ArgosyMeeting& meeting, std::vector<int> world_ranks, const Deadline& deadline)
      : meeting_(meeting),
        foreign_(meeting),
        host_rank_(world_ranks.empty() ? 0 : world_ranks.front()),
        deadline_(deadline) {}

  [[nodiscard]] rendezvous::Joined hold() const {
    rendezvous::Joined joined;
    joined.rank = meeting_.rank;
    joined.world_size = meeting_.size;
    if (meeting_.size > 1) {
      meeting_.rank == 0 ? invite(joined) : follow(joined);
    }
    return joined;
  }

 private:
  void invite(rendezvous::Joined& joined) const {
    rendezvous::OpenHouse house = Stores::of_process().own(options_);
    const Invitation mine{.way = house.invitation, .part = os::random_hex(8)};
    const Standing standing(foreign_, mine);
    meet_in(std::move(house.store), mine.part, joined);
    Stores::of_process().clear_later(options_, mine.part, joined.store);
  }
  void follow(rendezvous::Joined& joined) const {
    Stores& stores = Stores::of_process();
    Invitation heard;
    const auto read = [&] {
      heard = Invitation::parse(foreign_.get(deadline_));
      return heard.way;
    };
    Stores::StorePtr store = stores.known(read());
    if (store == nullptr) {
      store = rendezvous::follow(options_, read, deadline_);
      store = stores.keep(heard.way, store);
    }
    meet_in(std::move(store), heard.part, joined);
  }
  void meet_in(Stores::StorePtr store, const std::string& part, rendezvous::Joined& joined) const {
    joined.store = rendezvous::prefix_store(std::move(store), part, host_rank_);
    joined.presence =
        rendezvous::wait_for_ranks(*joined.store, meeting_.rank, meeting_.size, deadline_);
  }

  const ArgosyMeeting& meeting_;
  const Foreign foreign_;
  const int host_rank_;
  const Deadline& deadline_;
  const rendezvous::InvitationOptions options_ = [this] {
    const rendezvous::JobEnvironment job =
        rendezvous::read_identity([](const char* name) { return env::get(name); });
    return rendezvous::InvitationOptions{.where = "comm.init",
                                         .foreign = "the store in which the ranks meet",
                                         .towards = meeting_.towards,
                                         .interface = env::get("ARGOSY_IFNAME").value_or(""),
                                         .token = job.token,
                                         .tls = job.tls};
  }();
};

comm::Group make(const ArgosyMeeting& meeting) {
  const comm::InitOptions options = comm::settle({.timeout = milliseconds(meeting.timeout_ms)});
  ARGOSY_CHECK(meeting.size > 0 && meeting.rank >= 0 && meeting.rank < meeting.size,
               "comm.init",
               "rank {} does not fit a group of {}",
               meeting.rank,
               meeting.size);
  std::vector<int> world_ranks;
  if (meeting.world_ranks != nullptr) {
    world_ranks.assign(meeting.world_ranks, meeting.world_ranks + meeting.size);
    comm::check_world_ranks(world_ranks, meeting.size);
  }
  const Deadline deadline = Deadline::after(options.timeout);
  rendezvous::Joined joined = Meeting(meeting, world_ranks, deadline).hold();
  return comm::form({.name = meeting.name, .world_ranks = std::move(world_ranks)},
                    std::move(joined),
                    options,
                    deadline);
}

/// A thread cannot wait for itself: another one closes the group, and the end of the process waits
/// for that.
void close_elsewhere(const comm::Group& group, const Deadline& deadline) {
  try {
    std::thread([group, deadline] { group.state().close(deadline); }).detach();
  } catch (const std::system_error&) {  // no thread is to be had: then at the end of the process
    (void)new comm::Group(group);
  }
}

void close(const comm::Group& group, const Deadline& deadline) {
  if (group.state().runs_here()) {
    close_elsewhere(group, deadline);
  } else {
    group.state().close(deadline);
  }
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

void submit(const comm::Group& group, const ArgosyOperation& operation) {
  comm::GroupState& state = group.state();
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

void transfer(const comm::Group& group, const ArgosyTransfer& wanted) {
  const bool receives = wanted.receives != 0;
  (void)group.state().submit_transfer(
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
    argosy::abi::close(group->group,
                       argosy::Deadline::after(argosy::abi::milliseconds(timeout_ms)));
  });
}
void argosy_group_free(ArgosyGroup* group) {
  if (group != nullptr && group->group.state().runs_here()) {
    argosy::abi::close_elsewhere(group->group,
                                 argosy::Deadline::after(argosy::comm::GroupState::kGrace));
  }
  delete group;
}
void argosy_close_all(int64_t timeout_ms) {
  (void)guarded(nullptr, [&] {
    argosy::comm::close_all(argosy::Deadline::after(argosy::abi::milliseconds(timeout_ms)));
  });
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

// The group is held during the call, for what it runs may free it.
int argosy_submit(ArgosyGroup* group, const ArgosyOperation* operation, ArgosyText* why) {
  return guarded(why, [&, held = group->group] { argosy::abi::submit(held, *operation); });
}
int argosy_transfer(ArgosyGroup* group, const ArgosyTransfer* transfer, ArgosyText* why) {
  return guarded(why, [&, held = group->group] { argosy::abi::transfer(held, *transfer); });
}
