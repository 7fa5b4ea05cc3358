#include "argosy/rpc/served_call.h"

#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"
#include "argosy/base/text.h"

namespace argosy::rpc {
namespace {

/// A name that a stranger sent, as messages show it.
std::string shown_name(const std::string& text) {
  constexpr size_t kMost = 64;
  return text::printable(std::string_view(text).substr(0, kMost));
}

std::string no_such_function(const std::string& name, const Functions& functions) {
  const std::vector<std::string> names = functions.names();
  const std::optional<std::string> close = strings::closest(name, names);
  return fmt::format("it serves no function \"{}\"{} It serves {}",
                     shown_name(name),
                     close ? fmt::format("; did you mean \"{}\"?", *close) : ".",
                     names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

std::string wrong_kind(const std::string& name, Sends sends) {
  return sends == Sends::kStream
             ? fmt::format("function \"{}\" sends a stream: call it with stream(), not call()",
                           name)
             : fmt::format("function \"{}\" sends one result: call it with call(), not stream()",
                           name);
}

/// Without the stack that libtorch puts behind its own. This part knows no libtorch.
std::string text_of(const std::exception& error, const std::string& type) {
  const std::string text = error.what();
  return type.starts_with("c10::") ? text.substr(0, text.find("\nException raised from ")) : text;
}

void describe(const std::exception_ptr& thrown, wire::Failure& failure) {
  constexpr size_t kLongest = size_t{64} << 10;
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    failure.set_type(type_of_current_exception());
    const std::string text = text_of(error, failure.type());
    const size_t end = text.find("] ");
    const bool ours = dynamic_cast<const Error*>(&error) != nullptr && end != std::string::npos;
    failure.set_place(ours ? text.substr(1, end - 1) : "");
    failure.set_text(text.substr(ours ? end + 2 : 0, kLongest));
  } catch (...) {
    failure.set_type(type_of_current_exception());
  }
}

}  // namespace

Draft ServedCall::allocate(size_t bytes) {
  if (line_ != nullptr) {
    if (std::optional<Draft> draft = line_->allocate(bytes, expiry())) {
      return *std::move(draft);
    }
  }
  return plain_draft(bytes);
}

void ServedCall::send(Parcel value) {
  // Not in shared memory: its messages are so small that nothing would hold the sender back.
  send_value(result_of(std::move(value), nullptr, nullptr));
}

void ServedCall::finish(Parcel result) {
  end_with(result_of(std::move(result), nullptr, line_.get()));
}

void ServedCall::fail(const std::exception_ptr& error) {
  end_with(result_of(Parcel(), error, nullptr));
}

const Functions::Served* ServedCall::find(const Functions& functions) {
  served_ = functions.find(function());
  if (served_ == nullptr) {
    refuse(no_such_function(function(), functions));
  } else if ((served_->sends == Sends::kStream) != request_.stream()) {
    refuse(wrong_kind(function(), served_->sends));
    served_ = nullptr;
  }
  return served_.get();
}

void ServedCall::run() {
  if (cancelled()) {
    give_up();
    return;
  }
  served_->handler(shared_from_this(), arguments_);
  arguments_ = Parcel();
}

void ServedCall::set_request(wire::Request request, std::shared_ptr<SharedLine> line) {
  request_ = std::move(request);
  line_ = std::move(line);
  arguments_.values().Swap(request_.mutable_arguments());
}

Deadline ServedCall::expiry() const {
  return Deadline::after(deadline_.remaining() + std::chrono::seconds(1));
}

ServedCall::Result ServedCall::result_of(Parcel parcel,
                                         const std::exception_ptr& error,
                                         SharedLine* line) {
  try {
    parcel.check_size();
  } catch (const UsageError&) {
    return result_of(Parcel(), std::current_exception(), nullptr);
  }
  Result result{.leaving = Leaving(std::move(parcel.memories()), line, expiry())};
  if (error != nullptr) {
    describe(error, *result.reply.mutable_failure());
  } else {
    result.reply.mutable_values()->Swap(&parcel.values());
  }
  result.leaving.describe(*result.reply.mutable_memories());
  result.leaving.offers().keep();
  return result;
}

Dispatcher::Dispatcher(Functions functions, int threads, size_t most_queued)
    : functions_(std::move(functions)),
      most_queued_(most_queued),
      free_(threads),
      pool_(std::make_unique<ThreadPool>(static_cast<size_t>(threads), "argosy-rpc")) {}

Dispatcher::~Dispatcher() {
  pool_.reset();
}

bool Dispatcher::admit(const std::shared_ptr<ServedCall>& call) {
  const Functions::Served* const served = call->find(functions_);
  if (served == nullptr) {
    return false;
  }
  if (served->options.quick) {
    call->run();
    return false;
  }
  return true;
}

void Dispatcher::queue(const std::shared_ptr<ServedCall>& call) {
  if (queued_.fetch_add(1) >= most_queued_) {
    queued_.fetch_sub(1);
    call->refuse(
        fmt::format("{} calls wait already (AgentOptions::most_queued_calls)", most_queued_));
    return;
  }
  (void)pool_->submit([this, call] {
    const Slot slot = await_slot();
    queued_.fetch_sub(1);
    call->run();
  });
}

std::optional<Dispatcher::Slot> Dispatcher::try_slot() {
  const std::lock_guard lock(mutex_);
  if (free_ == 0) {
    return std::nullopt;
  }
  --free_;
  return Slot(*this);
}

Dispatcher::Slot Dispatcher::await_slot() {
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [&] { return free_ > 0; });
  --free_;
  return Slot(*this);
}

Dispatcher::Slot::~Slot() {
  if (owner_ != nullptr) {
    {
      const std::lock_guard lock(owner_->mutex_);
      ++owner_->free_;
    }
    owner_->freed_.notify_one();
  }
}

}  // namespace argosy::rpc
