#include "argosy/train/announcer.h"

#include <exception>
#include <memory>

#include "argosy/base/log.h"
#include "argosy/train/callbacks/model_checkpoint.h"
#include "argosy/train/callbacks/prog_bar_logger.h"
#include "argosy/train/callbacks/run_recorder.h"

namespace argosy::train::detail {

Announcer::Announcer(const FitOptions& options, const int64_t& steps)
    : keeps_(who_keeps(options)), watching_(options.callbacks), phases_(callbacks_, steps) {
  if (options.log.verbose > 0) {
    callbacks_.emplace_back(ProgBarLogger());
  }
  callbacks_.insert(callbacks_.end(), options.callbacks.begin(), options.callbacks.end());
  if (keeps_ == Keeps::kOwn) {
    callbacks_.emplace_back(ModelCheckpoint({.dir = checkpoint_folder(options),
                                             .every_epochs = options.checkpoint.every_epochs,
                                             .every_steps = options.checkpoint.every_steps,
                                             .keep_last = options.checkpoint.keep_last}));
  }
  if (!options.run_dir.empty()) {  // the last: it says that all has ended, so the others end first
    watching_.emplace_back(std::make_shared<RunRecorder>(options.run_dir));
    callbacks_.push_back(watching_.back());
  }
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
