#include "argosy/train/announcer.h"

#include <algorithm>
#include <exception>
#include <memory>

#include "argosy/base/log.h"
#include "argosy/train/callbacks/model_checkpoint.h"
#include "argosy/train/callbacks/prog_bar_logger.h"
#include "argosy/train/callbacks/run_recorder.h"
#include "argosy/train/checkpoint_folder.h"

namespace argosy::train::detail {

Announcer::Announcer(const FitOptions& options, const int64_t& steps)
    : watching_(options.callbacks), phases_(callbacks_, steps) {
  if (options.log.verbose > 0) {
    callbacks_.emplace_back(ProgBarLogger());
  }
  callbacks_.insert(callbacks_.end(), options.callbacks.begin(), options.callbacks.end());
  add_checkpoints(options);
  if (!options.run_dir.empty()) {  // the last: it says that all has ended, so the others end first
    watching_.emplace_back(std::make_shared<RunRecorder>(options.run_dir));
    callbacks_.push_back(watching_.back());
  }
}

void Announcer::add_checkpoints(const FitOptions& options) {
  const std::string folder =
      options.checkpoint.dir.empty() && options.run_dir.empty() ? "" : checkpoint_folder(options);
  bool kept = folder.empty();
  for (const AnyCallback& callback : callbacks_) {
    if (const auto* own = dynamic_cast<const ModelCheckpoint*>(&*callback)) {
      const std::string& dir = own->options().dir;
      kept = kept || dir == folder || (dir.empty() && options.checkpoint.dir.empty());
    }
  }
  if (!kept) {
    callbacks_.emplace_back(ModelCheckpoint({.dir = folder,
                                             .every_epochs = options.checkpoint.every_epochs,
                                             .every_steps = options.checkpoint.every_steps,
                                             .keep_last = options.checkpoint.keep_last}));
  }
}

bool Announcer::keeps_checkpoints() const {
  return std::any_of(callbacks_.begin(), callbacks_.end(), [](const AnyCallback& callback) {
    return dynamic_cast<const ModelCheckpoint*>(&*callback) != nullptr;
  });
}

void Announcer::exception(const Training& training, const std::string& what) const {
  for (const AnyCallback& callback : callbacks_) {
    try {
      callback->on_exception(training, what);
    } catch (const std::exception& error) {
      log::error("[train.fit] a callback's on_exception(): {}", error.what());
    }
  }
}

}  // namespace argosy::train::detail
