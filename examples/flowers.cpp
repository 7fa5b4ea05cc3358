// Which flower it is: ResNet-50 on the photographs of Oxford Flowers-102, with one of two recipes.
//
//     argosy data fetch flowers102 --to FOLDER
//     ./flowers FOLDER [--recipe torch] [--splits paddle] [--weights resnet50.pth]
//     argosy launch --nproc_per_node 2 ./flowers FOLDER --batch_size 8
//
//     paddle  Momentum 0.1 / 0.9, L2Decay 1e-4, batch 16; photographs resized to 224 × 224
//     torch   SGD 1e-4 / 0.9, batch 32; rotated by up to 45°, the middle 224 × 224, flipped both
//             ways, colors jittered, normalized; evaluated on the middle of 256 pixels
//
// FOLDER has 102flowers.tgz, imagelabels.mat and setid.mat as published; nothing is unpacked.
// --skip_missing goes on without photographs that the archive lacks. --splits paddle exchanges
// training and test set, as Paddle's Flowers does. --weights takes what fits of a torchvision file
// and says what it left alone (the classifier); the torch recipe's small steps are meant for that.
//
// Expect, with 535 of the 8,189 photographs (--splits paddle --skip_missing: 372 for training, four
// of a class, 80 for validation), without weights to begin with: an epoch took four minutes on two
// cores that were not free; the losses of the first four were 14.42, 5.75, 4.68 and 4.50 (ln 102 is
// 4.62), top-5 stayed at chance (5 %). That shows that it runs, and no more: to tell flowers it
// takes the whole set and many more epochs, or --weights. --recipe torch on two
// processes: 4.73, 4.67 and 4.61 in its first three epochs of two to three minutes. What learns in
// half a minute on one core is a smaller net on smaller pictures:
//
//     ./flowers FOLDER --splits paddle --skip_missing --depth 18 --image_size 64 --lr 0.01
//
// Its first six losses: 4.90, 4.51, 3.63, 2.56, 1.70, 1.01, in 5 s each; top-5 then: 20 %.
//
// --batch_size is each process's: halve it on two, and each step sees the same photographs. With
// --sync_batch_norm the curves then differ by rounding, which such a net lets grow: on two
// processes those losses were 4.92, 4.52, 3.60, 2.39 and 1.48, at most 1 % off in the first three
// epochs and 13 % in the fifth; with --double too all printed digits agree. Without it batch norm
// takes its statistics from a process's part of the batch, and the curves part
// sooner: 4.91, 4.61, 3.91, 3.06 and 2.38.
#include <torch/torch.h>

#include "lesson.h"

using namespace argosy;

namespace {

struct Options : lesson::Options {
  Options() { batch_size = 0; }  // the recipe's

  std::string recipe = "paddle";
  std::string splits = "published";
  bool skip_missing = false;
  std::string weights{};
  std::optional<double> lr{};  // none: the recipe's
  int64_t depth = 50;
  int image_size = 224;
  uint64_t seed = 1;
  bool sync_batch_norm = false;
  bool double_precision = false;
};

/// What the two recipes differ by.
struct Recipe {
  int64_t batch_size;
  vision::Compose train;
  vision::Compose evaluation;
  optim::Optimizer optimizer;
};

Recipe paddle_recipe(const vision::ResNet& net, int side) {
  const vision::Compose resized{vision::Resize({side, side}), vision::ToTensor()};
  return {.batch_size = 16,
          .train = resized,
          .evaluation = resized,
          .optimizer = optim::Momentum(
              net, {.lr = 0.1, .momentum = 0.9, .weight_decay = optim::L2Decay(1e-4)})};
}

Recipe torch_recipe(const vision::ResNet& net, int side) {
  const vision::Normalize normalize({0.485, 0.456, 0.406}, {0.229, 0.224, 0.225});
  return {.batch_size = 32,
          .train = {vision::RandomRotation(45),
                    vision::CenterCrop(side),
                    vision::RandomHorizontalFlip(),
                    vision::RandomVerticalFlip(),
                    vision::ColorJitter(
                        {.brightness = 0.2, .contrast = 0.1, .saturation = 0.1, .hue = 0.1}),
                    vision::ToTensor(),
                    normalize},
          .evaluation = {vision::Resize(side * 256 / 224),
                         vision::CenterCrop(side),
                         vision::ToTensor(),
                         normalize},
          .optimizer = optim::SGD(net, {.lr = 1e-4, .momentum = 0.9})};
}

vision::Flowers102 flowers(const Options& options,
                           vision::Split split,
                           const vision::Compose& transform) {
  return {options.data,
          split,
          {.transform = options.double_precision ? lesson::in_double(transform) : transform,
           .open = {.absent = options.skip_missing ? vision::Absent::kSkip : vision::Absent::kError,
                    .splits = options.splits == "paddle" ? vision::FlowersSplits::kPaddle
                                                         : vision::FlowersSplits::kPublished}}};
}

void run(const Options& options) {
  fleet::init({.sync_batch_norm = options.sync_batch_norm}, {}, options.device);
  torch::manual_seed(options.seed);
  vision::ResNet net({.depth = options.depth, .num_classes = 102});
  if (options.double_precision) {
    net->to(torch::kDouble);
  }
  net->to(fleet::device());
  train::Model model(net);
  Recipe recipe = options.recipe == "torch" ? torch_recipe(net, options.image_size)
                                            : paddle_recipe(net, options.image_size);
  recipe.optimizer.set_lr(options.lr.value_or(recipe.optimizer.lr()));
  const int64_t batch_size = options.batch_size > 0 ? options.batch_size : recipe.batch_size;
  const auto train = flowers(options, vision::Split::kTrain, recipe.train);
  const auto valid = flowers(options, vision::Split::kValid, recipe.evaluation);
  if (!options.weights.empty()) {  // what fits of them; the classifier is one of other classes
    const auto loaded = model.load(options.weights, {.partial = true});
    fleet::print("{}: {}\n", options.weights, loaded.to_string());
  }
  fleet::print("ResNet-{} on {}: {} training and {} validation photographs, recipe {}\n",
               options.depth,
               lesson::processes(),
               train.size(),
               valid.size(),
               options.recipe);

  model.prepare(recipe.optimizer, loss::CrossEntropy(), {metrics::Accuracy({.topk = {1, 5}})});
  // A loader of one's own, for its seed: of the transforms, and not of the order too.
  data::DataLoader loader(
      train,
      fleet::distributed_batch_sampler(train.size(), {.batch_size = batch_size, .shuffle = true}),
      {.num_workers = options.num_workers, .seed = options.seed});
  model.fit(loader,
            valid,
            {.epochs = options.epochs,
             .num_workers = options.num_workers,
             .callbacks = {lesson::EpochLine([](const train::Logs& logs) {
               return fmt::format("loss {:.4f}, top-1 {:.2f} %, top-5 {:.2f} %",
                                  logs["loss"],
                                  100 * logs["eval_acc_top1"],
                                  100 * logs["eval_acc_top5"]);
             })},
             .data = {.eval_batch_size = batch_size},
             .log = {.verbose = 0}});
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  const program::Options rows = lesson::with_options_of(
      o,
      "Folder with 102flowers.tgz, imagelabels.mat, setid.mat",
      "Photographs per step and process; without it the recipe's, 16 or 32",
      {{"--recipe",
        "NAME",
        "paddle: Momentum, resized to 224 x 224; torch: SGD, augmented, 256 and the middle 224 "
        "x 224",
        &o.recipe,
        {.words = "paddle|torch"}},
       {"--splits",
        "NAME",
        "paddle: train and test exchanged, for more training",
        &o.splits,
        {.words = "published|paddle"}},
       {"--skip_missing", "", "Go on without photographs that are missing", &o.skip_missing},
       {"--weights", "FILE", "Weights to begin with: resnet50.pth", &o.weights},
       {"--lr",
        "X",
        "Learning rate. Default: the recipe's, 0.1 or 1e-4",
        &o.lr,
        {.least = 0, .most = 10}},
       {"--depth", "N", "Layers of the ResNet: 18, 34, 50, 101 or 152", &o.depth},
       {"--image_size",
        "N",
        "Side of the pictures, in pixels",
        &o.image_size,
        {.least = 33, .most = 1024}},
       {"--sync_batch_norm",
        "",
        "Batch norms take their statistics over all processes",
        &o.sync_batch_norm},
       lesson::double_row(o.double_precision),
       {"--seed", "N", "Of the weights and the transforms", &o.seed}});
  return program::run(
      {"Trains a ResNet on Flowers-102; under `argosy launch` on several processes."},
      rows,
      argc,
      argv,
      [&] { run(o); });
}
