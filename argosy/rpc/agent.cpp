#include "argosy/rpc/agent.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>

#include "argosy/base/check.h"
#include "argosy/base/env.h"
#include "argosy/base/error.h"
#include "argosy/os/addresses.h"
#include "argosy/os/crash_handler.h"
#include "argosy/rendezvous/host_card.h"
#include "argosy/rendezvous/join.h"
#include "argosy/rpc/errors.h"
#include "argosy/rpc/meeting.h"
#include "argosy/rpc/peer.h"
#include "argosy/rpc/server.h"

namespace argosy::rpc {
namespace {

using std::chrono::milliseconds;

/// For questions to the store that need no other worker.
constexpr std::chrono::seconds kStorePatience{30};
constexpr std::chrono::hours kForever{24};
/// How often the store is asked whether a worker that is gone has been started again.
constexpr milliseconds kLookForSuccessor{100};

bool is_name(std::string_view name) {
  constexpr size_t kLongest = 127;
  return !name.empty() && name.size() <= kLongest && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_:.-").find(c) != std::string_view::npos;
  });
}

rendezvous::Joined join(const AgentOptions& options, const Deadline& deadline) {
  if (options.store != nullptr) {
    rendezvous::Joined joined;
    joined.store = options.store;
    joined.rank = options.rank;
    joined.world_size = options.world_size;
    joined.environment.token = options.token;
    joined.environment.tls = options.tls;
    return joined;
  }
  return rendezvous::join(
      {.method = options.master_endpoint.empty() ? "env://" : "tcp://" + options.master_endpoint,
       .rank = options.rank,
       .world_size = options.world_size,
       .dead = rendezvous::DeadRank::kMayBeReplaced},
      deadline);
}

AgentOptions checked(AgentOptions options) {
  os::install_crash_handler();  // first: what is wrong with the options is told by it too
  ARGOSY_CHECK(options.name.empty() || is_name(options.name),
               "rpc.join",
               "expected a name of 1 to 127 letters, digits and \"_:.-\", got \"{}\"",
               options.name);
  ARGOSY_CHECK(options.num_worker_threads > 0,
               "rpc.join",
               "num_worker_threads must be 1 or more, got {}",
               options.num_worker_threads);
  ARGOSY_CHECK(options.store == nullptr || (options.rank >= 0 && options.world_size > options.rank),
               "rpc.join",
               "with a store, rank and world_size must be given, got {} of {}",
               options.rank,
               options.world_size);
  return options;
}

std::string listening_address(Meeting& meeting, const Deadline& deadline) {
  std::string chosen = meeting.choose_address(deadline);
  const std::optional<std::string> interface = env::get("ARGOSY_IFNAME");
  return interface ? os::interface_address(*interface).or_throw<ConfigError>("rpc.listen") : chosen;
}

WorkerInfo info_of(const wire::Card& card) {
  return {.name = card.name(),
          .rank = static_cast<int>(card.rank()),
          .ip = card.host(),
          .port = static_cast<uint16_t>(card.port())};
}

}  // namespace

class Agent::Impl final {
 public:
  Impl(AgentOptions options, const Functions& functions)
      : options_(checked(std::move(options))),
        deadline_(Deadline::after(options_.join_timeout)),
        joined_(join(options_, deadline_)),
        meeting_(std::make_shared<Meeting>(joined_.store, joined_.rank, joined_.world_size)),
        name_(options_.name.empty() ? fmt::format("worker{}", joined_.rank) : options_.name) {
    const std::string host = listening_address(*meeting_, deadline_);
    const std::string& token = joined_.environment.token;
    const rendezvous::Tls tls = rendezvous::make_tls(joined_.environment.tls, token);
    server_ =
        std::make_unique<Server>(ServerOptions{.host = host,
                                               .token = token,
                                               .tls = tls,
                                               .threads = options_.num_worker_threads,
                                               .most_queued_calls = options_.most_queued_calls,
                                               .largest_call_bytes = options_.largest_call_bytes,
                                               .shared_memory_bytes = options_.shared_memory_bytes},
                                 functions);
    caller_ = std::make_shared<const CallerOptions>(CallerOptions{
        .name = name_,
        .rank = joined_.rank,
        .token = token,
        .tls = tls,
        .neighbourhood = rendezvous::neighbourhood_id(),
        .shared_memory_bytes = options_.shared_memory_bytes,
        .largest_call_bytes = options_.largest_call_bytes,
        .what_became_of = [meeting = meeting_](const wire::Card& card, milliseconds patience) {
          return meeting->what_became_of(
              static_cast<int>(card.rank()), card.incarnation(), patience);
        }});
    meeting_->publish(make_card(host), deadline_);
  }
  ~Impl() { leave(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int rank() const { return joined_.rank; }
  [[nodiscard]] int world_size() const { return joined_.world_size; }

  std::shared_ptr<Pending> start(const Target& to,
                                 const std::string& function,
                                 Parcel arguments,
                                 Peer::Kind kind) {
    const Deadline deadline = deadline_of(to);
    std::shared_ptr<Pending> call =
        peer(to, deadline)->start(function, std::move(arguments), deadline, kind);
    remember(call);
    return call;
  }

  Draft allocate(const Target& to, size_t bytes) {
    const Deadline deadline = deadline_of(to);
    return peer(to, deadline)->allocate(bytes, deadline);
  }

  std::shared_ptr<Peer> peer(const Target& to, const Deadline& deadline) {
    try {
      return looked_up(to, deadline.sooner(Deadline::after(kStorePatience)));
    } catch (const TimeoutError& error) {
      const std::string whom = to.rank >= 0 ? fmt::format("of rank {}", to.rank) : to.name;
      throw CallError("rpc.call",
                      fmt::format("the job's store does not say where worker \"{}\" is: {}",
                                  whom,
                                  without_place(error.what())),
                      {.op = "rpc"},
                      whom,
                      CallOutcome::kRefused);
    }
  }

  /// From the store, where it is not known.
  std::shared_ptr<Peer> looked_up(const Target& to,
                                  const Deadline& deadline = Deadline::after(kStorePatience)) {
    const int rank = to.rank >= 0 ? to.rank : rank_of(to.name, deadline);
    {
      const std::lock_guard lock(mutex_);
      ARGOSY_CHECK(
          !left_, "rpc.call", "worker \"{}\" has left the job: no calls after shutdown()", name_);
      KnownPeer& known = peers_[rank];
      if (known.peer != nullptr && (!known.peer->is_gone() || !known.next_look.expired())) {
        return known.peer;
      }
      known.next_look = Deadline::after(kLookForSuccessor);
    }
    wire::Card card = meeting_->card(rank, deadline);
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Peer>& peer = peers_[rank].peer;
    if (peer == nullptr || card.incarnation() > peer->card().incarnation()) {
      peer = std::make_shared<Peer>(std::move(card), caller_);
    }
    return peer;
  }

  std::string fate_of(const Target& to, milliseconds patience) {
    return looked_up(to)->fate(patience);
  }
  [[nodiscard]] bool rejoined() const { return meeting_->rejoined(); }
  [[nodiscard]] std::shared_ptr<rendezvous::Store> store() const { return joined_.store; }

  void shutdown(const Deadline& deadline) {
    for (const std::shared_ptr<Pending>& call : running()) {
      (void)call->wait(deadline);
    }
    {
      const std::lock_guard lock(mutex_);
      if (left_) {
        return;
      }
    }
    meeting_->say_done(deadline);
    leave();
  }

 private:
  wire::Card make_card(const std::string& host) const {
    wire::Card card;
    card.set_name(name_);
    card.set_rank(static_cast<uint32_t>(joined_.rank));
    card.set_incarnation(meeting_->incarnation(deadline_));
    card.set_host(host);
    card.set_port(server_->port());
    card.set_machine(fmt::format("{} pid {}", os::host_name(), ::getpid()));
    if (const Landing* landing = server_->landing()) {
      card.set_neighbourhood(caller_->neighbourhood);
      card.set_socket(landing->socket());
      card.set_secret(landing->secret());
    }
    return card;
  }

  int rank_of(const std::string& name, const Deadline& deadline) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = ranks_.find(name); known != ranks_.end()) {
        return known->second;
      }
    }
    const int rank = meeting_->rank_of(name, deadline);
    const std::lock_guard lock(mutex_);
    return ranks_[name] = rank;
  }

  [[nodiscard]] Deadline deadline_of(const Target& to) const {
    const milliseconds said = to.timeout.count() != 0 ? to.timeout : options_.timeout;
    return Deadline::after(said.count() > 0 ? said : kForever);
  }

  /// Calls that have ended are forgotten when they are as many as the others.
  void remember(const std::shared_ptr<Pending>& call) {
    const std::lock_guard lock(mutex_);
    if (calls_.size() >= next_look_) {
      std::erase_if(calls_, [](const std::weak_ptr<Pending>& one) {
        const std::shared_ptr<Pending> alive = one.lock();
        return alive == nullptr || alive->is_completed();
      });
      constexpr size_t kFewest = 64;
      next_look_ = std::max(kFewest, 2 * calls_.size());
    }
    calls_.push_back(call);
  }

  std::vector<std::shared_ptr<Pending>> running() {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Pending>> all;
    for (const std::weak_ptr<Pending>& one : calls_) {
      if (std::shared_ptr<Pending> call = one.lock(); call != nullptr && !call->is_completed()) {
        all.push_back(std::move(call));
      }
    }
    return all;
  }

  void leave() {
    {
      const std::lock_guard lock(mutex_);
      if (left_) {
        return;
      }
      left_ = true;
    }
    for (const std::shared_ptr<Pending>& call : running()) {
      call->cancel();
    }
    server_.reset();
    if (joined_.presence != nullptr) {
      joined_.presence->leave("");
    }
  }

  const AgentOptions options_;
  const Deadline deadline_;
  rendezvous::Joined joined_;
  const std::shared_ptr<Meeting> meeting_;
  const std::string name_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<const CallerOptions> caller_;

  std::mutex mutex_;
  struct KnownPeer {
    std::shared_ptr<Peer> peer{};
    Deadline next_look = Deadline::after(milliseconds(0));  ///< for one that has taken its place
  };
  std::map<int, KnownPeer> peers_{};
  std::map<std::string, int> ranks_{};
  std::vector<std::weak_ptr<Pending>> calls_{};
  size_t next_look_ = 64;
  bool left_ = false;
};

Agent::Agent(const AgentOptions& options, Functions functions)
    : functions_(std::move(functions)), impl_(std::make_unique<Impl>(options, functions_)) {}
Agent::~Agent() = default;

const std::string& Agent::name() const {
  return impl_->name();
}
int Agent::rank() const {
  return impl_->rank();
}
int Agent::world_size() const {
  return impl_->world_size();
}

std::shared_ptr<Pending> Agent::start(const Target& to,
                                      const std::string& function,
                                      Parcel arguments,
                                      bool stream) {
  return impl_->start(
      to, function, std::move(arguments), stream ? Peer::Kind::kStream : Peer::Kind::kOne);
}

Draft Agent::allocate(const Target& to, size_t bytes) {
  return impl_->allocate(to, bytes);
}

WorkerInfo Agent::worker(const std::string& name) {
  return info_of(impl_->looked_up(name)->card());
}
WorkerInfo Agent::worker(int rank) {
  return info_of(impl_->looked_up(rank)->card());
}
std::vector<WorkerInfo> Agent::workers() {
  std::vector<WorkerInfo> all;
  for (int rank = 0; rank < world_size(); ++rank) {
    all.push_back(worker(rank));
  }
  return all;
}

std::string Agent::fate_of(const Target& worker, milliseconds patience) {
  return impl_->fate_of(worker, patience);
}
bool Agent::rejoined() const {
  return impl_->rejoined();
}
std::shared_ptr<rendezvous::Store> Agent::store() const {
  return impl_->store();
}

void Agent::shutdown(milliseconds timeout) {
  impl_->shutdown(Deadline::after(timeout));
}

}  // namespace argosy::rpc
