#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "argosy/base/deadline.h"
#include "argosy/base/error.h"
#include "argosy/rpc/codec.h"
#include "argosy/rpc/errors.h"
#include "argosy/rpc/memory.h"
#include "argosy/rpc/parcel.h"

namespace argosy::rpc {

/// The way back of one call. Functions see it as CallContext, Stream and Later. Thread-safe, but
/// for send(), which one thread uses at a time.
class Answer {
 public:
  virtual ~Answer() = default;
  Answer() = default;
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  Answer(Answer&&) = delete;
  Answer& operator=(Answer&&) = delete;

  [[nodiscard]] virtual const std::string& caller() const = 0;
  [[nodiscard]] virtual Deadline deadline() const = 0;
  [[nodiscard]] virtual bool cancelled() const = 0;
  [[nodiscard]] virtual Draft allocate(size_t bytes) = 0;
  /// Sends one value of a stream. Blocks: until the value before it is on its way.
  /// Errors: CallError when nobody waits for it any more.
  virtual void send(Parcel value) = 0;
  // The first of these ends the call; what comes after it does nothing.
  virtual void finish(Parcel result) = 0;
  virtual void finish_stream() = 0;
  virtual void fail(const std::exception_ptr& error) = 0;
  virtual void refuse(const std::string& why) = 0;
};

/// What a function learns of the call that runs it. It takes it as its first parameter, if it wants
/// it:
///
///     agent.serve("pull", [](rpc::CallContext& call, std::vector<int64_t> ids) {
///       rpc::Draft rows = call.allocate(ids.size() * row_bytes);
///       … write into rows.bytes() …
///       return std::move(rows).finish();   // travels without a copy inside a host
///     });
///
/// Lifetime: until the function returns.
class CallContext final {
 public:
  explicit CallContext(Answer& answer) : answer_(answer) {}

  /// The name of the worker that calls.
  [[nodiscard]] const std::string& caller() const { return answer_.caller(); }
  /// After it nobody waits for the result any more.
  [[nodiscard]] Deadline deadline() const { return answer_.deadline(); }
  /// True when the caller has cancelled, died, or waited too long.
  [[nodiscard]] bool cancelled() const { return answer_.cancelled(); }
  /// Returns memory for the result that the caller reads in place where both share a host.
  [[nodiscard]] Draft allocate(size_t bytes) { return answer_.allocate(bytes); }

 private:
  Answer& answer_;
};

/// Sends many results of one call. A function that takes it, after CallContext if it takes that,
/// and returns nothing is called by Agent::stream().
///
///     agent.serve("rows", [&](rpc::Stream<Row>& out, int table) {
///       for (const Row& row : rows_of(table)) out.put(row);
///     });
template <Travels T>
class Stream final {
 public:
  explicit Stream(Answer& answer) : answer_(answer) {}

  /// Blocks: while the caller does not keep up.
  /// Errors: CallError when the caller has cancelled, died, or waited too long. Let it pass.
  void put(const T& value) {
    Parcel parcel;
    Writer writer(parcel);
    Codec<T>::put(writer, value);
    answer_.send(std::move(parcel));
  }

 private:
  Answer& answer_;
};

/// A result that comes after the function has returned, from any thread. No thread waits meanwhile,
/// so that any number of calls may.
///
///     agent.serve("barrier", [&] { return waiting.emplace_back(); });   // rpc::Later<int>
///     … waiting[i].set(3);
///
/// A handle. A call whose last handle goes without a result fails.
template <typename T>
class Later final {
 public:
  Later() : state_(std::make_shared<State>()) {}

  void set(const T& value) {
    Parcel parcel;
    Writer writer(parcel);
    Codec<T>::put(writer, value);
    state_->end([result = std::make_shared<Parcel>(std::move(parcel))](Answer& answer) {
      answer.finish(std::move(*result));
    });
  }
  void fail(std::exception_ptr error) {
    state_->end([error = std::move(error)](Answer& answer) { answer.fail(error); });
  }

  /// For those who call the function.
  void deliver_to(std::shared_ptr<Answer> answer) { state_->deliver_to(std::move(answer)); }

 private:
  /// Whichever comes last, the result or its way, sends it.
  struct State {
    std::mutex mutex;
    std::shared_ptr<Answer> answer;
    std::function<void(Answer&)> result;
    bool ended = false;

    State() = default;
    ~State() {
      if (!ended && answer != nullptr) {
        answer->fail(std::make_exception_ptr(
            InternalError("rpc.later", "the function let go of its result before it was there")));
      }
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    State(State&&) = delete;
    State& operator=(State&&) = delete;

    void end(std::function<void(Answer&)> with) {
      std::unique_lock lock(mutex);
      if (std::exchange(ended, true)) {
        return;
      }
      result = std::move(with);
      send(lock);
    }
    void deliver_to(std::shared_ptr<Answer> to) {
      std::unique_lock lock(mutex);
      answer = std::move(to);
      send(lock);
    }
    void send(std::unique_lock<std::mutex>& lock) {
      if (answer != nullptr && result) {
        const std::shared_ptr<Answer> to = std::move(answer);
        const std::function<void(Answer&)> with = std::move(result);
        lock.unlock();
        with(*to);
      }
    }
  };
  std::shared_ptr<State> state_;
};

/// What a function answers with.
enum class Sends : uint8_t { kOneResult, kStream };

/// Runs a function for one call.
using Handler = std::function<void(const std::shared_ptr<Answer>&, const Parcel& arguments)>;

namespace detail {

template <typename T>
struct IsStream : std::false_type {};
template <typename T>
struct IsStream<Stream<T>> : std::true_type {};
template <typename T>
struct IsLater : std::false_type {};
template <typename T>
struct IsLater<Later<T>> : std::true_type {};

template <typename Result, typename... All>
struct FunctionSignature {};

template <typename Result, typename... All>
FunctionSignature<Result, All...> signature_of(Result (*)(All...));
template <typename Owner, typename Result, typename... All>
FunctionSignature<Result, All...> signature_of(Result (Owner::*)(All...));
template <typename Owner, typename Result, typename... All>
FunctionSignature<Result, All...> signature_of(Result (Owner::*)(All...) const);
template <typename Owner, typename Result, typename... All>
FunctionSignature<Result, All...> signature_of(Result (Owner::*)(All...) noexcept);
template <typename Owner, typename Result, typename... All>
FunctionSignature<Result, All...> signature_of(Result (Owner::*)(All...) const noexcept);

template <typename F>
auto signature() {
  if constexpr (std::is_pointer_v<F>) {
    return decltype(signature_of(std::declval<F>())){};
  } else {
    return decltype(signature_of(&F::operator())){};
  }
}

template <typename Result, typename... All>
constexpr Sends sent_by(FunctionSignature<Result, All...> /*of*/) {
  return (IsStream<std::remove_cvref_t<All>>::value || ...) ? Sends::kStream : Sends::kOneResult;
}

template <typename T>
T take_argument(Reader& reader, int& number) {
  ++number;
  try {
    return Codec<T>::take(reader);
  } catch (const UsageError& error) {
    throw UsageError("rpc.value",
                     fmt::format("argument {}: {}", number, without_place(error.what())));
  }
}

template <typename... Arguments>
std::tuple<Arguments...> take_arguments(const Parcel& parcel) {
  Reader reader(parcel);
  if (const size_t given = reader.left(); given != sizeof...(Arguments)) {
    throw UsageError("rpc.value",
                     fmt::format("expected {} arguments, got {}", sizeof...(Arguments), given));
  }
  [[maybe_unused]] int number = 0;
  return std::tuple<Arguments...>{take_argument<Arguments>(reader, number)...};
}

template <typename Result, typename Run>
void finish_with(const std::shared_ptr<Answer>& answer, Run run) {
  if constexpr (IsLater<Result>::value) {
    Result later = run();
    later.deliver_to(answer);
  } else {
    Parcel parcel;
    if constexpr (std::is_void_v<Result>) {
      run();
    } else {
      Writer writer(parcel);
      Codec<std::decay_t<Result>>::put(writer, run());
    }
    answer->finish(std::move(parcel));
  }
}

/// `Contexts`: what comes before the arguments that travel.
template <typename Result, typename... Contexts, typename F, typename... Arguments>
Handler handler_of(F function, FunctionSignature<Result, Arguments...> /*rest*/) {
  return [function = std::move(function)](const std::shared_ptr<Answer>& answer,
                                          const Parcel& parcel) mutable {
    std::optional<std::tuple<Sent<Arguments>...>> arguments;
    try {
      arguments.emplace(take_arguments<Sent<Arguments>...>(parcel));
    } catch (const UsageError& error) {
      answer->refuse(without_place(error.what()));
      return;
    } catch (const std::exception& error) {  // of a Codec of the program, or no memory
      answer->refuse(fmt::format("its arguments cannot be read: {}", error.what()));
      return;
    } catch (...) {
      answer->refuse("its arguments cannot be read");
      return;
    }
    try {
      std::tuple<Contexts...> contexts{((void)sizeof(Contexts), Contexts(*answer))...};
      const auto run = [&]() -> Result {
        return std::apply(
            [&](auto&... given) -> Result {
              return std::apply(
                  [&](auto&&... values) -> Result {
                    return function(given..., std::forward<decltype(values)>(values)...);
                  },
                  std::move(*arguments));
            },
            contexts);
      };
      if constexpr ((IsStream<Contexts>::value || ...)) {
        static_assert(std::is_void_v<Result>, "a function with a Stream returns nothing");
        run();
        answer->finish_stream();
      } else {
        finish_with<Result>(answer, run);
      }
    } catch (...) {
      answer->fail(std::current_exception());
    }
  };
}

template <typename... Contexts, typename F, typename Result, typename First, typename... Rest>
Handler split(F function, FunctionSignature<Result, First, Rest...> all) {
  using Plain = std::remove_cvref_t<First>;
  if constexpr (std::same_as<Plain, CallContext> || IsStream<Plain>::value) {
    static_assert(std::is_lvalue_reference_v<First>, "take CallContext and Stream by reference");
    if constexpr (sizeof...(Rest) == 0) {
      return handler_of<Result, Contexts..., Plain>(std::move(function),
                                                    FunctionSignature<Result>{});
    } else {
      return split<Contexts..., Plain>(std::move(function), FunctionSignature<Result, Rest...>{});
    }
  } else {
    return handler_of<Result, Contexts...>(std::move(function), all);
  }
}

}  // namespace detail

template <typename F>
[[nodiscard]] constexpr Sends sends_of() {
  return detail::sent_by(detail::signature<F>());
}

template <typename F>
[[nodiscard]] Handler make_handler(F function) {
  const auto signature = detail::signature<F>();
  if constexpr (std::same_as<decltype(signature), const detail::FunctionSignature<void>>) {
    return detail::handler_of<void>(std::move(function), signature);
  } else {
    return [&]<typename Result, typename... All>(detail::FunctionSignature<Result, All...> all) {
      if constexpr (sizeof...(All) == 0) {
        return detail::handler_of<Result>(std::move(function), all);
      } else {
        return detail::split<>(std::move(function), all);
      }
    }(signature);
  }
}

}  // namespace argosy::rpc
