#include "argosy/engine/coming_memory.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <c10/core/Storage.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "argosy/base/check.h"
#include "argosy/engine/operator_call.h"
#include "argosy/engine/operator_tensors.h"
#include "argosy/engine/used_tensors.h"

namespace argosy::engine {
namespace {

/// All of the process, by their storages.
struct Known {
  std::shared_mutex mutex{};
  std::unordered_map<const c10::StorageImpl*, std::weak_ptr<ComingMemory>> all{};
  at::CallbackHandle handle = 0;  // while there is one
};

/// It outlives the tensors of a program's statics.
Known& known() {
  static auto* const memories = new Known;
  return *memories;
}
std::atomic<bool> any = false;

std::shared_ptr<ComingMemory> find(const at::Tensor& tensor) {
  const c10::StorageImpl* const storage = storage_of(tensor);
  const std::shared_lock lock(known().mutex);
  const auto found = known().all.find(storage);
  return found == known().all.end() ? nullptr : found->second.lock();
}

/// What an operator uses, to be told when it ends.
struct Used final : at::ObserverContext {
  std::vector<std::shared_ptr<ComingMemory>> memories;
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& function) {
  std::unique_ptr<Used> used;
  const c10::FunctionSchema* schema = nullptr;
  const auto inputs = function.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    for_tensors(inputs[i], [&](const at::Tensor& tensor) {
      std::shared_ptr<ComingMemory> memory = find(tensor);
      if (memory == nullptr) {
        return;
      }
      schema = schema == nullptr ? schema_of(function) : schema;
      const ArgumentUse use = use_of(schema, i);
      if (schema == nullptr || use == ArgumentUse::kViews) {
        return;  // a mark for profilers, or a view
      }
      const c10::impl::ExcludeDispatchKeyGuard unheard(kHeardOf);
      memory->before_operator(function, use == ArgumentUse::kWrites);
      used = used == nullptr ? std::make_unique<Used>() : std::move(used);
      used->memories.push_back(std::move(memory));
    });
  }
  return used;
}

void end(const at::RecordFunction& /*function*/, at::ObserverContext* context) {
  if (context != nullptr) {
    const c10::impl::ExcludeDispatchKeyGuard unheard(kHeardOf);
    for (const std::shared_ptr<ComingMemory>& memory : static_cast<Used*>(context)->memories) {
      memory->after_use();
    }
  }
}

}  // namespace

/// The storage of the flat tensor. It lives as long as that does.
struct ComingMemory::Place {
  Place(c10::StorageImpl* storage,
        const at::TensorOptions& options,
        std::shared_ptr<ComingMemory> memory)
      : storage(storage), options(options), owner(std::move(memory)) {
    const std::unique_lock lock(known().mutex);
    if (known().all.empty()) {
      known().handle = at::addGlobalCallback(at::RecordFunctionCallback(begin, end)
                                                 .needsInputs(true)
                                                 .scopes({at::RecordScope::FUNCTION}));
    }
    known().all[storage] = owner;
    any = true;
  }
  ~Place() {
    const std::unique_lock lock(known().mutex);
    known().all.erase(storage);
    if (known().all.empty()) {
      at::removeCallback(known().handle);
      any = false;
    }
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  Place(Place&&) = delete;
  Place& operator=(Place&&) = delete;

  c10::StorageImpl* const storage;
  const at::TensorOptions options;
  const std::shared_ptr<ComingMemory> owner;
};

/// What libtorch holds as the storage's memory.
struct ComingMemory::Held {
  std::shared_ptr<Place> place;
  at::Tensor memory;
};

void ComingMemory::release(void* held) {
  delete static_cast<Held*>(held);
}

at::Tensor ComingMemory::make_flat(int64_t elements, const at::TensorOptions& options) {
  ARGOSY_INVARIANT(place_.expired(), "engine.coming_memory");
  at::Tensor flat = at::empty({0}, options);
  auto storage =
      c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                            static_cast<size_t>(elements) * flat.element_size(),
                                            at::DataPtr(nullptr, flat.device()),
                                            /*allocator=*/nullptr,
                                            /*resizable=*/false);
  own(storage.get(), flat.options());
  return flat.set_(c10::Storage(std::move(storage)), 0, {elements}, {1});
}

void ComingMemory::empty_out(const at::Tensor& fresh) {
  ARGOSY_INVARIANT(place_.expired(), "engine.coming_memory");
  own(fresh.storage().unsafeGetStorageImpl(), fresh.options());
}

void ComingMemory::own(c10::StorageImpl* storage, const at::TensorOptions& options) {
  const auto place =
      std::make_shared<Place>(storage, options.requires_grad(false), shared_from_this());
  place_ = place;
  storage->set_data_ptr_noswap(
      at::DataPtr(nullptr, new Held{place, at::Tensor()}, &release, storage->device()));
}

void ComingMemory::lend(const at::Tensor& memory) {
  if (const std::shared_ptr<Place> place = place_.lock()) {
    void* const data = memory.data_ptr();
    const at::Device device = memory.device();
    const at::DataPtr before =
        place->storage->set_data_ptr(at::DataPtr(data, new Held{place, memory}, &release, device));
  }
}

void ComingMemory::lend_nothing() noexcept {
  if (const std::shared_ptr<Place> place = place_.lock()) {
    const at::DisableRecordFunctionGuard unseen;
    const auto elements =
        static_cast<int64_t>(place->storage->nbytes() / place->options.dtype().itemsize());
    const at::Tensor nothing = at::empty({elements}, place->options);
    lend(nothing.fill_(nothing.is_floating_point() ? std::numeric_limits<double>::quiet_NaN()
                                                   : -1.0));
  }
}

void ComingMemory::take_back() {
  if (const std::shared_ptr<Place> place = place_.lock()) {
    const at::DataPtr before = place->storage->set_data_ptr(
        at::DataPtr(nullptr, new Held{place, at::Tensor()}, &release, place->storage->device()));
  }
}

void ComingMemory::settle(const at::Tensor& memory) {
  if (const std::shared_ptr<Place> place = place_.lock()) {
    const auto keep = [](void* held) { delete static_cast<at::Tensor*>(held); };
    const at::DataPtr before = place->storage->set_data_ptr(
        at::DataPtr(memory.data_ptr(), new at::Tensor(memory), keep, memory.device()));
  }
}

std::shared_ptr<ComingMemory> coming_memory_of(const at::Tensor& tensor) {
  return any && tensor.defined() ? find(tensor) : nullptr;
}

DirectUse::DirectUse(const std::vector<at::Tensor>& tensors, bool writes) {
  const c10::impl::ExcludeDispatchKeyGuard unheard(kHeardOf);
  for (const at::Tensor& tensor : tensors) {
    note_use(tensor);
    if (std::shared_ptr<ComingMemory> memory = coming_memory_of(tensor)) {
      memory->before_use(writes);
      used_.push_back(std::move(memory));
    }
  }
}

DirectUse::~DirectUse() {
  const c10::impl::ExcludeDispatchKeyGuard unheard(kHeardOf);
  for (const std::shared_ptr<ComingMemory>& memory : used_) {
    memory->after_use();
  }
}

}  // namespace argosy::engine
