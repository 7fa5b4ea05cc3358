#include "argosy/train/phase.h"

namespace argosy::train {

std::string_view to_string(PhaseKind kind) {
  switch (kind) {
    case PhaseKind::kDataWait:
      return "data wait";
    case PhaseKind::kForward:
      return "forward";
    case PhaseKind::kBackward:
      return "backward";
    case PhaseKind::kReduce:
      return "reduce";
    case PhaseKind::kReduceWait:
      return "wait for gradients";
    case PhaseKind::kAgree:
      return "agree";
    case PhaseKind::kUpdate:
      return "update";
    case PhaseKind::kEvaluation:
      return "evaluation";
    case PhaseKind::kCheckpoint:
      return "checkpoint";
  }
  return "";
}

}  // namespace argosy::train
