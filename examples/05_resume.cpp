// The loop of 03_fleet, which can be stopped at any moment: one object saves all that it consists
// of and resumes it to the same bits. Kill it and start it again.
//
//     argosy launch --nproc_per_node 2 ./05_resume [DATA [CHECKPOINTS]] [--device auto|cpu|cuda:1]
//
// DATA is a folder of Fashion-MNIST, CHECKPOINTS the folder to save to and to resume from.
#include <argosy/argosy.h>

#include <torch/torch.h>

using namespace argosy;

int main(int argc, char** argv) {
  const std::string device = program::take_option(argc, argv, "--device");
  const std::string folder = argc > 1 ? argv[1] : "/usr/share/datasets/fashion-mnist";
  fleet::init({}, {}, device);
  torch::manual_seed(1);
  vision::FashionMnist train(folder, vision::Split::kTrain), test(folder, vision::Split::kTest);
  data::DataLoader loader(
      train,
      fleet::distributed_batch_sampler(train.size(), {.batch_size = 64, .shuffle = true}),
      {.num_workers = 1, .device = fleet::device()});
  vision::MnistCnn net;
  net->to(fleet::device());
  auto model = fleet::distributed_model(net);
  auto optimizer = fleet::distributed_optimizer(optim::Adam(model, {.lr = 1e-3}));
  optim::CosineAnnealingLR schedule(optimizer, {.t_max = 2 * loader.size()});

  checkpoint::TrainingSaver training(
      argc > 2 ? argv[2] : "checkpoints", {.keep = {.keep_last = 2}}, fleet::group());
  training.add(model).add(optimizer).add(schedule).add(loader);  // what it consists of
  checkpoint::TrainingProgress at = training.resume();           // zeros without a checkpoint
  fleet::print("begins at step {}\n", at.step);
  for (; at.epoch < 2; ++at.epoch) {
    for (auto& [images, labels] : loader) {  // of a resumed epoch, the rest
      auto loss = torch::nn::functional::cross_entropy(model(images), labels);
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      schedule.step();
      if (++at.step % 100 == 0) {
        training.save(at);  // copies, and returns: a thread writes
      }
    }
    auto accuracy = metrics::evaluate(
        model,
        data::DataLoader(test,
                         fleet::evaluation_sampler(test.size(), {.batch_size = 500}),
                         {.device = fleet::device()}),
        metrics::Accuracy());
    fleet::print("epoch {}: accuracy {:.2f} %\n", at.epoch + 1, 100 * accuracy);
  }
  training.wait();  // all that was saved is on the disk
  fleet::print("weights {}\n", checkpoint::weights_hash(engine::state_dict(model)));
}
