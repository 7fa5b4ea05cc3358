#include "argosy/comm/group_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "argosy/base/check.h"
#include "argosy/base/log.h"
#include "argosy/base/strings.h"
#include "argosy/comm/at_exit.h"
#include "argosy/comm/checked.h"
#include "argosy/comm/failure.h"
#include "argosy/rendezvous/in_process_store.h"
#include "argosy/transport/farewell.h"

namespace argosy::comm {
namespace {

OperationEvent event_of(const Operation& operation) {
  return {.id = operation.id,
          .group = operation.group,
          .seq = operation.seq,
          .op = operation.info.op,
          .dtype = operation.info.dtype,
          .elements = operation.info.elements,
          .bytes = operation.info.bytes,
          .peer = operation.info.peer,
          .enqueued = operation.enqueued,
          .started = operation.started,
          .ended = {},
          .error = {}};
}

/// Whose operations this thread runs, one inside of another.
class Running final {
 public:
  explicit Running(const GroupState* group) : group_(group), outer_(innermost) { innermost = this; }
  ~Running() { innermost = outer_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  [[nodiscard]] static bool runs(const GroupState* group) {
    const Running* running = innermost;
    while (running != nullptr && running->group_ != group) {
      running = running->outer_;
    }
    return running != nullptr;
  }

 private:
  static thread_local const Running* innermost;
  const GroupState* const group_;
  const Running* const outer_;
};
thread_local const Running* Running::innermost = nullptr;

}  // namespace

GroupState::GroupState(std::unique_ptr<transport::Transport> transport,
                       std::shared_ptr<rendezvous::Store> store,
                       std::shared_ptr<Family> family,
                       GroupStateOptions options)
    : rank_(transport ? transport->rank() : -1),
      transport_(std::move(transport)),
      store_(std::move(store)),
      family_(std::move(family)),
      options_(std::move(options)),
      names_(options_.world_ranks),
      queue_(
          std::make_unique<OperationQueue>([this](Operation& operation) { execute(operation); },
                                           [this](Operation& operation) { conclude(operation); })),
      waiters_(std::make_unique<WaiterPool>()) {
  queue_->set_on_enqueued([this](Operation& operation) { announce(operation); });
}

GroupState::~GroupState() {
  const bool unwinding = std::uncaught_exceptions() > 0;
  close(Deadline::after(unwinding ? std::chrono::milliseconds(0)
                                  : std::min(kGrace, options_.timeout)));
}

void GroupState::throw_destroyed(std::string_view op) const {
  throw UsageError(place(op),
                   fmt::format("group \"{}\" was destroyed. Use it before destroy(), or make a new "
                               "one.",
                               options_.name));
}

void GroupState::check_usable(std::string_view op) const {
  ARGOSY_CHECK(rank_ >= 0,
               place(op),
               "this process is not a member of group \"{}\" (ranks {} of its world are). Ask "
               "group.rank() >= 0 first.",
               options_.name,
               options_.world_ranks.empty()
                   ? "none"
                   : fmt::format("{}", fmt::join(options_.world_ranks, ", ")));
  if (closed_.load(std::memory_order_acquire)) {
    throw_destroyed(op);
  }
  ARGOSY_CHECK(getpid() == owner_,
               place(op),
               "group \"{}\" is process {}'s, and this is process {}, forked from it: its threads "
               "and connections are not here. Start processes before the group is made, or let "
               "those that you fork leave it alone.",
               options_.name,
               owner_,
               getpid());
}

std::shared_ptr<Operation> GroupState::make(OperationInfo info,
                                            std::chrono::milliseconds timeout,
                                            Body body) {
  auto operation = std::make_shared<Operation>();
  operation->info = std::move(info);
  operation->body = std::move(body);
  operation->timeout = timeout > std::chrono::milliseconds(0) ? timeout : options_.timeout;
  operation->group = options_.name;
  operation->id = family_->next_id();
  return operation;
}

Work GroupState::submit(OperationInfo info,
                        std::chrono::milliseconds timeout,
                        Body body,
                        Operation::Then then) {
  check_usable(info.op);
  const std::shared_ptr<Operation> operation = make(std::move(info), timeout, std::move(body));
  operation->then = std::move(then);
  // A group of one has nobody to wait for: no thread.
  const bool accepted = size() == 1 ? queue_->run(operation) : queue_->push(operation);
  if (!accepted) {
    throw_destroyed(operation->info.op);
  }
  return Work(operation);
}

void GroupState::run(OperationInfo info,
                     std::chrono::milliseconds timeout,
                     Body body,
                     Operation::Then then) {
  check_usable(info.op);
  const std::shared_ptr<Operation> operation = make(std::move(info), timeout, std::move(body));
  operation->then = std::move(then);
  if (!queue_->run(operation)) {
    throw_destroyed(operation->info.op);
  }
  Work(operation).wait();
}

std::shared_ptr<Operation> GroupState::start(OperationInfo info,
                                             std::chrono::milliseconds timeout,
                                             const StartTransfer& start,
                                             std::function<void()> finish,
                                             DeviceLine* line) {
  check_usable(info.op);
  std::shared_ptr<Operation> operation = make(std::move(info), timeout, nullptr);
  operation->on_device = line != nullptr;
  operation->enqueued = Operation::Clock::now();
  const Deadline deadline = Deadline::after(operation->timeout);
  // std::function wants a copyable closure, a Transfer is not copyable.
  auto transfer = std::make_shared<std::unique_ptr<transport::Transfer>>();
  std::exception_ptr failure;
  {
    const std::lock_guard lock(start_mutex_);
    operation->seq = next_transfer_.fetch_add(1);
    if (!broken_.load(std::memory_order_acquire)) {
      try {
        *transfer = start(line == nullptr ? *transport_ : line->transport());
      } catch (...) {
        failure = std::current_exception();
      }
    }
  }
  family_->tell(&Hook::on_enqueued, event_of(*operation));
  if (failure) {
    operation->body = [failure](transport::Transport&, const Deadline&) {
      std::rethrow_exception(failure);
    };
    return operation;
  }
  operation->body = [transfer, deadline, finish = std::move(finish), it = operation.get()](
                        transport::Transport&, const Deadline&) {
    if (it->on_device) {
      it->set_end_on_device((*transfer)->queue(deadline.remaining()));
    }
    (*transfer)->wait(deadline.remaining());
    it->source = (*transfer)->source();
    finish();
  };
  return operation;
}

Work GroupState::submit_transfer(OperationInfo info,
                                 std::chrono::milliseconds timeout,
                                 const StartTransfer& start_transfer,
                                 std::function<void()> finish,
                                 DeviceLine* line,
                                 Operation::Then then) {
  const std::string_view op = info.op;
  check_usable(op);
  std::shared_ptr<Operation> operation;
  bool accepted = false;
  // Inside run_here(), so that the transport lives until the transfer is the pool's, or gone.
  const bool open = waiters_->run_here([&] {
    operation = start(std::move(info), timeout, start_transfer, std::move(finish), line);
    operation->then = std::move(then);
    accepted = waiters_->run([this, operation] {
      execute(*operation);
      conclude(*operation);
    });
    if (!accepted) {
      operation->body = nullptr;
    }
  });
  if (!open || !accepted) {
    check_usable(op);
    throw_destroyed(op);
  }
  return Work(operation);
}

void GroupState::run_transfer(OperationInfo info,
                              std::chrono::milliseconds timeout,
                              const StartTransfer& start_transfer,
                              const std::function<void()>& finish) {
  const std::string_view op = info.op;
  check_usable(op);
  std::shared_ptr<Operation> operation;
  if (!waiters_->run_here([&] {
        operation = start(std::move(info), timeout, start_transfer, finish, nullptr);
        execute(*operation);
        conclude(*operation);
      })) {
    throw_destroyed(op);
  }
  Work(operation).wait();
}

Reporter GroupState::reporter(const Operation& operation) const {
  return {options_.name,
          rank(),
          size(),
          operation.on_device ? last_completed_on_device_ : last_completed_,
          names_};
}

std::exception_ptr GroupState::what_broke(const Operation& operation) {
  if (!broken_.load(std::memory_order_acquire)) {
    return nullptr;
  }
  const std::lock_guard lock(cause_mutex_);
  return broken_group_error(operation, reporter(operation), cause_, cause_peers_);
}

void GroupState::check_whole() {
  const std::shared_ptr<Operation> question = make({.op = "check"}, {}, nullptr);
  if (const std::exception_ptr error = what_broke(*question)) {
    std::rethrow_exception(error);
  }
  for (const std::shared_ptr<DeviceLine>& line : lines()) {
    try {
      line->check();
    } catch (...) {
      const std::exception_ptr error = explain(*question, std::current_exception());
      remember_failure(error);
      std::rethrow_exception(error);
    }
  }
}

std::exception_ptr GroupState::perform(Operation& operation) {
  if (std::exception_ptr error = what_broke(operation)) {
    return error;
  }
  try {
    const Deadline deadline = Deadline::after(operation.timeout);
    if (!operation.info.signature.empty()) {  // of ranks that may be at different places
      transport_->set_place({});
      compare_signatures(operation, names_, *transport_, deadline);
    }
    if (!operation.info.is_message()) {  // a message runs beside a collective, and is at no place
      transport_->set_place(operation.info.place);
    }
    operation.body(*transport_, deadline);
    return nullptr;
  } catch (...) {
    std::exception_ptr error = explain(operation, std::current_exception());
    remember_failure(error);
    return error;
  }
}

void GroupState::announce(Operation& operation) const {
  operation.enqueued = Operation::Clock::now();
  family_->tell(&Hook::on_enqueued, event_of(operation));
}

void GroupState::begin(Operation& operation) const {
  operation.started = Operation::Clock::now();
  family_->tell(&Hook::on_started, event_of(operation));
}

void GroupState::execute(Operation& operation) {
  const Running running(this);
  begin(operation);
  const std::exception_ptr error = perform(operation);
  operation.body = nullptr;  // lets go of its tensors before anybody learns that it ended
  note_end(operation, error);
}

bool GroupState::runs_here() const {
  return Running::runs(this);
}

void GroupState::note_end(Operation& operation, const std::exception_ptr& error) {
  operation.stopped_by = error;
  OperationEvent event = event_of(operation);
  event.ended = Operation::Clock::now();
  std::string message;
  if (error) {
    message = message_of(error);
    event.error = message;
  } else if (!operation.info.is_message()) {
    (operation.on_device ? last_completed_on_device_ : last_completed_)
        .store(operation.seq, std::memory_order_relaxed);
  }
  family_->tell(&Hook::on_ended, event);
}

void GroupState::conclude(Operation& operation) {
  const Running running(this);
  const std::exception_ptr error = std::exchange(operation.stopped_by, nullptr);
  // First: who waits for the operation may have made what `then` has references to.
  if (const Operation::Then then = std::exchange(operation.then, nullptr)) {
    then(operation, error);
  }
  operation.complete(error);
}

std::shared_ptr<DeviceLine> GroupState::make_line(int number,
                                                  std::shared_ptr<transport::DeviceQueues> queues) {
  if (!family_->make_device_transport) {
    return nullptr;
  }
  const std::shared_ptr<rendezvous::Store> here = store();
  TransportRequest request{
      .rank = rank_,
      .size = size(),
      .group = options_.name,
      .world_ranks = options_.world_ranks,
      .store = size() == 1 || here == nullptr
                   ? rendezvous::in_process_store()
                   : rendezvous::prefix_store(here, fmt::format("device/{}", number)),
      .timeout = options_.timeout,
      .queues = std::move(queues)};
  auto transport = family_->meet("connect_devices", family_->make_device_transport, request);
  if (transport == nullptr) {
    return nullptr;
  }
  close_before_libraries_end();  // NCCL has objects of its own, and was loaded just now
  return std::make_shared<DeviceLine>(
      std::move(transport),
      DeviceLine::Listener{.started = [this](Operation& operation) { begin(operation); },
                           .ended =
                               [this](Operation& operation, const std::exception_ptr& error) {
                                 const std::exception_ptr told =
                                     error ? explain(operation, error) : nullptr;
                                 if (told) {
                                   remember_failure(told);
                                 }
                                 note_end(operation, told);
                                 conclude(operation);
                               }});
}

std::shared_ptr<DeviceLine> GroupState::line_of(
    const std::string& name,
    const std::function<std::shared_ptr<transport::DeviceQueues>()>& queues) {
  std::shared_ptr<LinePlace> place;
  {
    const std::lock_guard lock(lines_mutex_);
    std::shared_ptr<LinePlace>& known = lines_[name];
    if (known == nullptr) {
      known.reset(new LinePlace{.number = static_cast<int>(lines_.size()) - 1});
    }
    if (known->made) {
      return known->line;
    }
    place = known;
  }
  const std::lock_guard alone(place->making);
  {
    const std::lock_guard lock(lines_mutex_);
    if (place->made) {
      return place->line;
    }
  }
  check_whole();  // another try would meet what the first one left in the store
  std::shared_ptr<DeviceLine> line;
  try {
    line = make_line(place->number, queues());
  } catch (...) {
    remember_failure(std::current_exception());
    throw;
  }
  {
    const std::lock_guard lock(lines_mutex_);
    place->made = true;
    place->line = line;
  }
  if (line != nullptr && closed_.load()) {
    line->close();
  }
  return line;
}

std::vector<std::shared_ptr<DeviceLine>> GroupState::lines() {
  const std::lock_guard lock(lines_mutex_);
  std::vector<std::shared_ptr<DeviceLine>> made;
  for (const auto& [name, place] : lines_) {
    if (place->line != nullptr) {
      made.push_back(place->line);
    }
  }
  return made;
}

Work GroupState::submit_on(DeviceLine& line,
                           OperationInfo info,
                           std::chrono::milliseconds timeout,
                           Body body) {
  check_usable(info.op);
  if (!info.signature.empty()) {  // compared in the host's memory, before
    run({.op = info.op, .place = info.place, .signature = std::exchange(info.signature, {})},
        timeout,
        [](transport::Transport&, const Deadline&) {});
  }
  const std::shared_ptr<Operation> operation = make(std::move(info), timeout, std::move(body));
  operation->on_device = true;
  std::exception_ptr error = what_broke(*operation);
  if (error != nullptr) {
    announce(*operation);
  } else {
    try {
      line.queue(operation, [this](Operation& numbered) { announce(numbered); });
    } catch (...) {
      error = explain(*operation, std::current_exception());
      remember_failure(error);
    }
  }
  if (error) {
    operation->body = nullptr;
    begin(*operation);
    note_end(*operation, error);
    conclude(*operation);
  }
  return Work(operation);
}

Deadline GroupState::closes_by() {
  const std::lock_guard lock(closes_by_mutex_);
  return *closes_by_;
}

/// Waits in slices, for another thread may close too and have less time.
template <typename Part>
bool GroupState::drain(Part& part) {
  constexpr std::chrono::milliseconds kSlice{20};
  while (!part.drain(closes_by().sooner(Deadline::after(kSlice)))) {
    if (closes_by().expired()) {
      return false;
    }
  }
  return true;
}

bool GroupState::drain_lines() {
  bool drained = true;
  for (const std::shared_ptr<DeviceLine>& line : lines()) {
    drained = drain(*line) && drained;
  }
  return drained;
}

std::exception_ptr GroupState::explain(const Operation& operation,
                                       const std::exception_ptr& error) {
  return explain_failure(operation, reporter(operation), error);
}

void GroupState::remember_failure(const std::exception_ptr& error) {
  const std::lock_guard lock(cause_mutex_);
  if (broken_.load(std::memory_order_relaxed)) {
    return;  // the first cause is the one to tell
  }
  cause_ = message_of(error);
  cause_peers_ = peers_of(error);
  broken_.store(true, std::memory_order_release);
  Family::Failure failure{.story = cause_};
  for (const int peer : cause_peers_) {
    if (peer >= 0 && peer < size()) {
      failure.world_ranks.push_back(options_.world_ranks[static_cast<size_t>(peer)]);
    }
  }
  family_->note(std::move(failure));
}

int64_t GroupState::next_child_of(const std::string& members) {
  const std::lock_guard lock(children_mutex_);
  return next_child_of_[members]++;
}

std::shared_ptr<rendezvous::Store> GroupState::store() const {
  const std::lock_guard lock(store_mutex_);
  return store_;
}

/// Where another group of this rank broke: who still needs it here is to hear of the cause.
void GroupState::say_why_it_leaves() const {
  const std::optional<Family::Failure> failure = family_->failure();
  if (!failure || !store_ || size() == 1 || broken_.load(std::memory_order_acquire)) {
    return;
  }
  transport::Farewell farewell{.story = failure->story};
  for (const int culprit : failure->world_ranks) {
    if (const int rank = names_.from_world(culprit, size()); rank >= 0) {
      farewell.culprits.push_back(rank);
    }
  }
  try {
    transport::tell_farewell(
        *store_, rank_, farewell, Deadline::after(std::chrono::milliseconds(500)));
  } catch (const Error& e) {  // the others then find what they can
    log::debug("[comm.Group] group \"{}\": {}", options_.name, e.what());
  }
}

/// The last of the members to come here clears the group's part of the store. What broke stays: it
/// tells the others why.
void GroupState::clear_store(const Deadline& deadline) const {
  constexpr const char* kClosed = "closed";
  if (!options_.clears_store || !store_ || broken_.load(std::memory_order_acquire)) {
    return;
  }
  try {
    if (store_->add(kClosed, 1, deadline) != size()) {
      return;
    }
    // Of the groups that were made from this one, some may live.
    const std::string children = options_.name + ".";
    std::vector<std::string> names = store_->keys("", deadline);
    for (const rendezvous::Departure& gone : store_->departures("", deadline)) {
      names.push_back(gone.member);
    }
    for (const std::string& name : names) {
      if (!name.starts_with(children)) {
        (void)store_->remove(name, deadline);
      }
    }
  } catch (const Error& e) {  // the job ends, and its store with it
    log::debug("[comm.Group] group \"{}\" was not cleared: {}", options_.name, e.what());
  }
}

/// In a forked child, which owns neither the threads nor the connections: leaks them all, and what
/// the threads wait on, which nobody can destroy before they have woken.
void GroupState::forsake() {
  queue_.release()->abandon();
  waiters_.release()->abandon();
  (void)transport_.release();
  (void)new auto(std::move(lines_));
  (void)new std::shared_ptr<void>(std::move(options_.keep));
  (void)new std::shared_ptr<rendezvous::Store>(std::move(store_));
}

void GroupState::close(const Deadline& deadline) {
  {
    const std::lock_guard lock(closes_by_mutex_);
    closes_by_ = closes_by_.value_or(deadline).sooner(deadline);
  }
  const std::lock_guard lock(close_mutex_);
  if (closed_.exchange(true) || !transport_) {
    return;
  }
  if (getpid() != owner_) {
    forsake();
    return;
  }
  const bool drained = drain(*queue_) && drain_lines();
  if (!drain(*waiters_) || !drained) {
    log::warn(
        "[comm.Group] group \"{}\" ends with operations on their way, which fail now. Wait for "
        "each "
        "Work before the program ends.",
        options_.name);
  }
  const auto end = [&](auto& ends) {
    try {
      ends.close();
    } catch (const std::exception& e) {
      log::warn("[comm.Group] group \"{}\" did not close cleanly: {}", options_.name, e.what());
    }
  };
  say_why_it_leaves();
  for (const std::shared_ptr<DeviceLine>& line : lines()) {
    end(*line);
  }
  end(*transport_);
  queue_->stop();
  waiters_->stop();
  // Here and not in the destructor: a group in a static variable must not take a store, and its
  // server, down when the libraries below it have ended.
  std::map<std::string, std::shared_ptr<LinePlace>> lines;
  {
    const std::lock_guard lines_lock(lines_mutex_);
    lines.swap(lines_);
  }
  lines.clear();
  transport_.reset();
  if (drained) {
    clear_store(Deadline::after(std::min(kGrace, options_.timeout)));
  }
  options_.keep.reset();
  std::shared_ptr<rendezvous::Store> store;
  {
    const std::lock_guard store_lock(store_mutex_);
    store = std::move(store_);
  }
}

}  // namespace argosy::comm
