// resnets_peer MODEL SEED WEIGHTS IMAGES LOGITS OURS: for resnets.py.
//
// Writes to OURS the weights that MODEL begins with after SEED, loads WEIGHTS, which torch.save
// wrote, and writes to LOGITS what it computes of "images" in IMAGES.

#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <string>

#include <torch/torch.h>

#include "argosy/checkpoint/read_weights.h"
#include "argosy/checkpoint/save_weights.h"
#include "argosy/vision/vision.h"

namespace {

namespace checkpoint = argosy::checkpoint;
namespace vision = argosy::vision;
namespace engine = argosy::engine;

using Build = vision::ResNet (*)(const vision::NamedResNetOptions&);

int run(char** argv) {
  const std::map<std::string, Build> models{{"resnet18", vision::resnet18},
                                            {"resnet34", vision::resnet34},
                                            {"resnet50", vision::resnet50},
                                            {"resnext50_32x4d", vision::resnext50_32x4d},
                                            {"wide_resnet50_2", vision::wide_resnet50_2}};
  torch::manual_seed(std::stoull(argv[2]));
  vision::ResNet net = models.at(argv[1])({});
  checkpoint::save_weights(net, argv[6]);
  const engine::LoadResult result =
      engine::load_state_dict(net, checkpoint::read_weights(argv[3]), {.source = argv[3]});
  std::printf("%s", result.to_string().c_str());
  net->eval();
  const torch::NoGradGuard no_grad;
  const at::Tensor images = checkpoint::read_weights(argv[4]).at("images");
  checkpoint::save_weights(engine::StateDict{{"logits", net(images)}}, argv[5]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "usage: resnets_peer MODEL SEED WEIGHTS IMAGES LOGITS OURS\n");
    return 2;
  }
  try {
    return run(argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
