#include "argosy/transport/nccl/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "argosy/base/strings.h"
#include "argosy/transport/link_errors.h"

namespace argosy::transport::nccl {
namespace {

using std::chrono::microseconds;

/// Between two questions: at first a thread only lets others run, then it sleeps, ever longer.
/// Since 2.23 each collective asks, and the first answer mostly comes within some microseconds.
constexpr int kYields = 20;
constexpr microseconds kShortestSleep{20};
constexpr microseconds kLongestSleep{1000};
/// Between two looks at who is gone, while ranks connect.
constexpr std::chrono::milliseconds kBetweenLooks{200};
/// A call of the library that lasts longer does not return before its communicator is aborted.
constexpr std::chrono::milliseconds kHungCall{1000};

class Patience final {
 public:
  void sleep() {
    if (yields_++ < kYields) {
      std::this_thread::yield();
      return;
    }
    std::this_thread::sleep_for(next_);
    next_ = std::min(2 * next_, kLongestSleep);
  }

 private:
  int yields_ = 0;
  microseconds next_ = kShortestSleep;
};

std::string to_hex(const UniqueId& id) {
  std::string text;
  for (const char byte : id.internal) {
    fmt::format_to(std::back_inserter(text), "{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

/// Throws LinkBroken for what is no id: the store says it, and another program may have written it.
UniqueId from_hex(const std::string& text, int teller) {
  UniqueId id{};
  bool good = text.size() == 2 * sizeof(id.internal);
  for (size_t i = 0; good && i < sizeof(id.internal); ++i) {
    const std::string digits = text.substr(2 * i, 2);
    good = digits.find_first_not_of("0123456789abcdef") == std::string::npos;
    id.internal[i] = good ? static_cast<char>(std::stoi(digits, nullptr, 16)) : '\0';
  }
  if (!good) {
    throw LinkBroken{teller, fmt::format("its id of a communicator is none: \"{}\"", text)};
  }
  return id;
}

/// A call that makes a communicator and returns when all ranks have made it. Nothing can end it.
struct BlockingInit {
  BlockingInit(std::shared_ptr<const Library> of, const UniqueId& with, int ranks, int own)
      : library(std::move(of)), id(with), size(ranks), rank(own) {}

  /// `enter`: of the device; not used once `entered` is set.
  void run(const std::function<std::shared_ptr<void>()>& enter) {
    std::shared_ptr<void> inside;
    try {
      inside = enter();
    } catch (const std::exception&) {  // the library meets what is wrong with the device
    }
    tell([&] { entered = true; });
    Comm made = nullptr;
    const Result returned = library->api().comm_init_rank(&made, size, id, rank);
    tell([&] {
      result = returned;
      comm = made;
    });
    abort_if_left();
  }
  /// Nobody wants the communicator any more.
  void leave() {
    tell([&] { left = true; });
    abort_if_left();
  }

  const std::shared_ptr<const Library> library;
  const UniqueId id;
  const int size;
  const int rank;
  std::mutex mutex{};
  std::condition_variable changed{};
  bool entered = false;
  bool left = false;
  std::optional<Result> result{};
  Comm comm = nullptr;

 private:
  template <typename Change>
  void tell(Change change) {
    {
      const std::lock_guard lock(mutex);
      change();
    }
    changed.notify_all();
  }
  void abort_if_left() {
    Comm unwanted = nullptr;
    {
      const std::lock_guard lock(mutex);
      unwanted = left ? std::exchange(comm, nullptr) : nullptr;
    }
    if (unwanted != nullptr) {
      (void)library->api().comm_abort(unwanted);
    }
  }
};

bool is_of_others(Result result) {
  return result == Result::kRemoteError || result == Result::kSystemError ||
         result == Result::kTimeout;
}

}  // namespace

void Communicator::connect(const Lobby& lobby, const Place& place, const Deadline& deadline) {
  place_ = place;
  const Api& api = library_->api();
  const int first = place_.members.front();
  UniqueId id{};
  if (place_.rank == 0) {
    throw_unless_fine("ncclGetUniqueId", api.get_unique_id(&id));
    lobby.tell(place_.key + "/id", to_hex(id), deadline);
  } else {
    id = from_hex(lobby.await(place_.key + "/id", first, deadline, [this] { throw_if_aborted(); }),
                  first);
  }
  if (library_->is_non_blocking()) {
    const std::lock_guard alone(use_);
    Config config;
    make("ncclCommInitRankConfig", [&](Comm* comm) {
      const Result result = api.comm_init_rank_config(comm, place_.size, id, place_.rank, &config);
      return result == Result::kInProgress ? Result::kSuccess : result;
    });
    wait_until_queued("ncclCommInitRankConfig", deadline);
    return;
  }
  // The call returns when all ranks have made it. So first see that all come.
  const auto here = [&](int rank) { return fmt::format("{}/here/{}", place_.key, rank); };
  lobby.tell(here(place_.rank), "here", deadline);
  for (int rank = 0; rank < place_.size; ++rank) {
    (void)lobby.await(here(rank), place_.members[static_cast<size_t>(rank)], deadline, [this] {
      throw_if_aborted();
    });
  }
  make("ncclCommInitRank", [&](Comm* comm) { return init_blocking(comm, id, deadline); });
}

/// The call has a thread of its own, which is left behind where a rank dies or does not come.
Result Communicator::init_blocking(Comm* comm, const UniqueId& id, const Deadline& deadline) {
  const auto init = std::make_shared<BlockingInit>(library_, id, place_.size, place_.rank);
  std::thread([init, &enter = place_.enter] { init->run(enter); }).detach();
  std::unique_lock lock(init->mutex);
  init->changed.wait(lock, [&] { return init->entered; });
  while (!init->changed.wait_for(lock, kBetweenLooks, [&] { return init->result.has_value(); })) {
    lock.unlock();
    try {
      throw_if_aborted();
      if (deadline.expired()) {
        throw waits_for_others();
      }
    } catch (...) {
      init->leave();
      throw;
    }
    lock.lock();
  }
  *comm = init->comm;
  return *init->result;
}

LinkTimeout Communicator::waits_for_others() const {
  std::vector<int> others = place_.members;
  others.erase(others.begin() + place_.rank);
  return {others};
}

/// `init` may block until all ranks have come.
void Communicator::make(const char* call, const std::function<Result(Comm*)>& init) {
  throw_if_aborted();
  Comm comm = nullptr;
  const Result result = init(&comm);
  {
    const std::lock_guard lock(mutex_);
    std::swap(comm_, comm);
  }
  throw_unless_fine(call, result);
}

/// Calls the library, beside which nobody frees the communicator unless it hangs.
template <typename Function>
Result Communicator::call(Function function) {
  Comm comm = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) {
      throw LinkBroken{-1, "the communicator was aborted"};
    }
    comm = comm_;
    ++calls_;
  }
  const Result result = function(comm);
  {
    const std::lock_guard lock(mutex_);
    --calls_;
  }
  idle_.notify_all();
  return result;
}

void Communicator::queue(const char* call,
                         const Deadline& deadline,
                         const std::function<Result(Comm)>& queue) {
  const std::lock_guard alone(use_);
  const Result result = this->call(queue);
  if (result == Result::kInProgress) {
    wait_until_queued(call, deadline);
  } else {
    throw_unless_fine(call, result);
  }
}

void Communicator::queue_group(
    const char* call,
    const Deadline& deadline,
    const std::function<void(const std::function<void(Result)>&, Comm)>& queue_all) {
  queue(call, deadline, [&](Comm comm) {
    Result first = library_->api().group_start();
    const auto take = [&](Result result) {
      if (first == Result::kSuccess && result != Result::kInProgress) {
        first = result;
      }
    };
    if (first == Result::kSuccess) {
      queue_all(take, comm);
      const Result end = library_->api().group_end();
      first = first == Result::kSuccess ? end : first;
    }
    return first;
  });
}

/// Skipped while another thread queues: it asks by itself.
void Communicator::check() {
  const std::unique_lock alone(use_, std::try_to_lock);
  if (!alone) {
    return;
  }
  Result error = Result::kSuccess;
  {
    const std::lock_guard lock(mutex_);
    if (aborted_ || comm_ == nullptr) {
      return;
    }
  }
  throw_unless_fine("ncclCommGetAsyncError", call([&](Comm comm) {
                      return library_->api().comm_get_async_error(comm, &error);
                    }));
  if (error != Result::kInProgress) {
    throw_unless_fine("a collective on the device", error);
  }
}

void Communicator::wait_until_queued(const char* call, const Deadline& deadline) {
  Patience patience;
  while (true) {
    Result state = Result::kSuccess;
    throw_unless_fine(call, this->call([&](Comm comm) {
      return library_->api().comm_get_async_error(comm, &state);
    }));
    if (state != Result::kInProgress) {
      throw_unless_fine(call, state);
      return;
    }
    if (deadline.expired()) {
      throw waits_for_others();
    }
    patience.sleep();
  }
}

bool Communicator::close(const Deadline& deadline) {
  const Api& api = library_->api();
  try {
    if (api.comm_finalize != nullptr) {
      queue("ncclCommFinalize", deadline, [&](Comm comm) {
        return comm == nullptr ? Result::kSuccess : api.comm_finalize(comm);
      });
    }
    if (Comm comm = take(); comm != nullptr) {
      (void)api.comm_destroy(comm);
    }
    return true;
  } catch (const LinkBroken&) {
  } catch (const LinkTimeout&) {
  } catch (const OwnFault&) {
  }
  return false;
}

/// Returns the communicator for whoever frees it, when no call uses it any more, or those that do
/// have hung for a while.
Comm Communicator::take() {
  std::unique_lock lock(mutex_);
  aborted_ = true;
  (void)idle_.wait_for(lock, kHungCall, [this] { return calls_ == 0; });
  return std::exchange(comm_, nullptr);
}

void Communicator::abort_together(const std::shared_ptr<const Library>& library,
                                  const std::vector<Communicator*>& communicators) noexcept {
  std::vector<Comm> comms;
  for (Communicator* const communicator : communicators) {
    if (Comm comm = communicator->take(); comm != nullptr) {
      comms.push_back(comm);
    }
  }
  if (comms.empty()) {
    return;
  }
  const Api& api = library->api();
  if (comms.size() == 1) {
    (void)api.comm_abort(comms.front());
  } else if (library->aborts_in_groups()) {
    (void)api.group_start();
    for (Comm comm : comms) {
      (void)api.comm_abort(comm);
    }
    (void)api.group_end();
  } else {
    std::vector<std::jthread> threads;
    for (Comm comm : comms) {
      try {
        threads.emplace_back([&api, comm] { (void)api.comm_abort(comm); });
      } catch (const std::exception&) {  // no more threads: one after the other
        (void)api.comm_abort(comm);
      }
    }
  }
}

void Communicator::throw_if_aborted() {
  const std::lock_guard lock(mutex_);
  if (aborted_) {
    throw LinkBroken{-1, "the communicator was aborted"};
  }
}

void Communicator::throw_unless_fine(const char* call, Result result) {
  if (result == Result::kSuccess) {
    return;
  }
  throw_if_aborted();  // what the library then says is no cause
  std::string why;
  if (const Api& api = library_->api(); api.get_last_error != nullptr) {
    try {
      (void)this->call([&](Comm comm) {
        const char* const text = api.get_last_error(comm);
        why = text != nullptr ? text : "";
        std::ranges::replace(why, '\n', ' ');
        return Result::kSuccess;
      });
    } catch (const LinkBroken&) {  // aborted meanwhile: nobody to ask
    }
  }
  const std::string reason =
      fmt::format("{}: {}{}",
                  call,
                  library_->api().get_error_string(result),
                  why.empty() ? "" : fmt::format(" ({})", strings::trim(why)));
  if (is_of_others(result)) {
    throw LinkBroken{-1, reason};
  }
  throw OwnFault{reason};
}

}  // namespace argosy::transport::nccl
