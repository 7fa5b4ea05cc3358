// What of the command `argosy` needs tensors: `argosy` starts it, beside which it lies.
#include "apps/torch_commands.h"

namespace argosy {
namespace {

const program::Commands kCommands{.name = "argosy-torch",
                                  .purpose = "Started by argosy: see argosy --help.",
                                  .usage = "<command>",
                                  .all = {{"train", "", apps::train},
                                          {"evaluate", "", apps::evaluate},
                                          {"predict", "", apps::predict},
                                          {"generate", "", apps::generate},
                                          {"estimate", "", apps::estimate},
                                          {"checkpoint-convert", "", apps::checkpoint_convert},
                                          {"checkpoint-hash", "", apps::checkpoint_hash},
                                          {"doctor", "", apps::doctor_training},
                                          {"doctor-devices", "", apps::doctor_devices}}};

}  // namespace
}  // namespace argosy

int main(int argc, char** argv) {
  return argosy::program::run_main(argc, argv, [](const argosy::program::Words& args) {
    return dispatch(argosy::kCommands, args);
  });
}
