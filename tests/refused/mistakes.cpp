// Programs that do not compile, each line for the reason that stands above it (check_refused.sh).
#include <argosy/argosy.h>

#include <torch/torch.h>

using namespace argosy;

void sampler_as_data_set(const vision::FashionMnist& train, train::Model model) {
  auto sampler = fleet::distributed_batch_sampler(train.size(), {.batch_size = 4});
  // expect: this is a sampler: the data set comes first, DataLoader(train, sampler, options)
  data::DataLoader loader(sampler, {.num_workers = 1});
  model.fit(sampler, {.epochs = 1});
}

struct NoSize {
  at::Tensor get(int64_t index) const;
};

void no_data_set() {
  // expect: this is no data set, which has size() and get(index), or stream(pass)
  data::DataLoader loader(NoSize(), {.batch_size = 4});
}

void libtorchs_optimizer(train::Model model, torch::nn::Linear net) {
  // expect: torch::optim's optimizers need no preparation
  fleet::distributed_optimizer(torch::optim::SGD(net->parameters(), 0.1));
  // expect: prepare() takes the optimizers of argosy::optim
  model.prepare(torch::optim::SGD(net->parameters(), 0.1), loss::CrossEntropy());
}

void libtorchs_schedule(train::Model model, const optim::SGD& sgd, torch::nn::Linear net) {
  torch::optim::SGD theirs(net->parameters(), 0.1);
  // expect: a schedule is one of argosy::optim
  model.prepare(sgd, loss::CrossEntropy(), {}, {.schedule = torch::optim::StepLR(theirs, 3)});
}

void libtorchs_optimizer_saved(checkpoint::TrainingSaver& training, torch::nn::Linear net) {
  torch::optim::SGD theirs(net->parameters(), 0.1);
  // expect: add() takes a module, or an optimizer, schedule, scaler, average or loader of argosy
  training.add(theirs);
}

void libtorchs_loader(train::Model model) {
  auto set = torch::data::datasets::MNIST("mnist").map(torch::data::transforms::Stack<>());
  auto loader = torch::data::make_data_loader(std::move(set), 64);
  // expect: this is no data set, which has size() and get(index), or stream(pass)
  model.fit(*loader, {.epochs = 1});
}

void libtorchs_data_set(train::Model model) {
  // expect: this is no data set, which has size() and get(index), or stream(pass)
  model.fit(torch::data::datasets::MNIST("mnist"), {.epochs = 1});
}

void module_of_torchscript() {
  // expect: DistributedDataParallel takes a module holder
  (void)fleet::distributed_model(torch::jit::Module());
}
