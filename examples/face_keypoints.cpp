// Where eyes, nose and mouth lie: regression of 15 points on faces, as in Paddle's tutorial on
// facial keypoints. FaceNet(15), MSE, 30 epochs with Adam 1e-3 (--recipe torch: SGD 1e-4, 0.9).
//
//     ./face_keypoints training.csv.gz
//     argosy launch --nproc_per_node 2 ./face_keypoints training.csv.gz --batch_size 16
//
// Reads the file of Kaggle's contest, plain or gzip. Faces that lack a point are left out; 80 % of
// the others are for training. Targets are in [0, 1]: pixels / 96. In the end it draws faces of the
// other 20 % with their true and predicted points: faces.png.
//
// Expect, with 1,500 faces in the contest's layout (1,200 for training; the contest has more):
// validation MSE 1.0e-3 after 30 epochs, 3 pixels of 96, where the mean of the training points as
// the answer for every face gives 2.7e-3. Adam's steps stay large and so it jumps: 0.8e-3 to 1.7e-3
// in the last ten epochs. An epoch takes 15 s on two cores.
//
// --recipe torch goes slowly: its rate is a tenth and it has no Adam. After 30 epochs validation is
// at 7.7e-3 and still falls (1.9e-2 after 10, 1.1e-2 after 20): the mean face is better until then.
//
// --batch_size is each process's: halve it on two, and each step sees the same faces. The curve is
// then the same but for dropout, which every process draws for its own part of the batch, and batch
// norm, whose statistics are those of that part: in 22 epochs on two processes the training error
// was at most 26 % off that of one process, 12 % on average, and after 30 validation was at 0.9e-3
// (17 s an epoch, two cores). --sync_batch_norm takes statistics of
// the whole batch: in three epochs on 320 small faces 3 % off instead of 7 % (8 % fails a test).
#include <argosy/argosy.h>
#include <argosy/image/codec.h>
#include <argosy/program/command_line.h>
#include <argosy/samples/contact_sheet.h>

#include <algorithm>

#include <torch/torch.h>

using namespace argosy;

namespace {

struct Options {
  std::string data{};
  std::string recipe = "paddle";
  std::string sheet = "faces.png";
  int epochs = 30;
  int64_t batch_size = 32;     // per process
  std::optional<double> lr{};  // none: the recipe's
  int image_size = 96;
  uint64_t seed = 1;
  int workers = 1;
  bool sync_batch_norm = false;
};

/// A data set of one's own: pictures for FaceNet, and points in parts of the picture's side:
/// x₀ y₀ x₁ y₁ ….
struct Faces {
  vision::FacialKeypoints table;
  vision::Compose transform;

  [[nodiscard]] int64_t size() const { return table.size(); }
  [[nodiscard]] std::pair<at::Tensor, at::Tensor> get(int64_t index) const {
    const vision::KeypointTensor face = transform(table.at(index));
    return {face.image, face.points.flatten() / face.image.size(-1)};
  }
};
using Part = data::Subset<Faces>;
using Model = parallel::DistributedDataParallel<vision::FaceNet>;

/// Mean of (predicted - true)² over all coordinates of all samples of all processes: a metric of
/// one's own.
class SquaredError final {
 public:
  void update(const at::Tensor& predicted, const at::Tensor& targets) {
    mean_.update(torch::mse_loss(predicted, targets), targets.size(0));
  }
  [[nodiscard]] double compute(const comm::Group& group) const { return mean_.compute(group); }
  void reset() { mean_.reset(); }

 private:
  metrics::MeanLoss mean_;
};

optim::Optimizer optimizer_of(const Model& model, const std::string& recipe) {
  if (recipe == "torch") {
    return optim::SGD(model, {.lr = 1e-4, .momentum = 0.9});
  }
  return optim::Adam(model, {.lr = 1e-3});
}

at::Tensor targets_of(const Part& part) {
  std::vector<at::Tensor> targets;
  for (int64_t i = 0; i < part.size(); ++i) {
    targets.push_back(part.get(i).second);
  }
  return torch::stack(targets);
}

/// What is reached without a look at any face: the mean of the training points as the answer.
double error_of_the_mean(const Part& train, const Part& valid) {
  const at::Tensor truth = targets_of(valid);
  return torch::mse_loss(targets_of(train).mean(0).expand_as(truth), truth).item<double>();
}

constexpr samples::Colour kTrue{.red = 0, .green = 190, .blue = 255};
constexpr samples::Colour kPredicted{.red = 235, .green = 40, .blue = 40};

std::vector<float> numbers(const at::Tensor& points) {
  return {points.data_ptr<float>(), points.data_ptr<float>() + points.numel()};
}

/// A face with what is true and what the model says.
samples::Tile tile_of(Model& model, const vision::KeypointImage& face, const at::Tensor& input) {
  const torch::NoGradGuard no_gradients;
  const at::Tensor points =
      (model(input.unsqueeze(0)) * face.image.width()).view_as(face.points).contiguous();
  const auto off = (points - face.points).norm(2, 1).mean().item<double>();
  return {.picture = face.image,
          .caption = fmt::format("off by {:.1f} pixels", off),
          .dots = {{.points = numbers(face.points), .colour = kTrue},
                   {.points = numbers(points), .colour = kPredicted}}};
}

/// Faces from all over `part`.
image::Image sheet_of(Model& model, const Faces& faces, const Part& part) {
  const int64_t count = std::min<int64_t>(24, part.size());
  model.eval();
  std::vector<samples::Tile> tiles;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t chosen = i * part.size() / count;
    tiles.push_back(tile_of(model, faces.table.at(part.indices()[chosen]), part.get(chosen).first));
  }
  samples::Canvas legend({.height = 18, .width = 400}, {255, 255, 255});
  legend.text({.top = 0, .left = 0}, "true", kTrue, 2);
  legend.text({.top = 0, .left = 60}, "predicted", kPredicted, 2);
  return samples::stacked(
      {legend.picture(), samples::contact_sheet(tiles, {.columns = 6, .side = 192})});
}

void run(const Options& options) {
  fleet::init({.sync_batch_norm = options.sync_batch_norm});
  torch::manual_seed(options.seed);
  const Faces faces{
      .table = vision::FacialKeypoints(options.data, {.missing = vision::Missing::kDrop}),
      .transform = {vision::Resize({options.image_size, options.image_size}),
                    vision::Repeat(3),
                    vision::ToTensor()}};
  const auto [train, valid] = data::random_split(faces, {0.8, 0.2}, {.seed = options.seed});
  data::DataLoader loader(train,
                          fleet::distributed_batch_sampler(
                              train.size(), {.batch_size = options.batch_size, .shuffle = true}),
                          {.num_workers = options.workers});
  data::DataLoader valid_loader(valid,
                                fleet::evaluation_sampler(valid.size(), {.batch_size = 100}));
  auto model = fleet::distributed_model(vision::FaceNet(std::ssize(faces.table.names())));
  auto optimizer = fleet::distributed_optimizer(optimizer_of(model, options.recipe));
  optimizer.set_lr(options.lr.value_or(optimizer.lr()));

  fleet::print("FaceNet({}) on {} process{}: {} training and {} validation faces, recipe {}\n",
               faces.table.names().size(),
               fleet::worker_num(),
               fleet::worker_num() == 1 ? "" : "es",
               train.size(),
               valid.size(),
               options.recipe);
  double error = 0;
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    metrics::MeanLoss mean_loss;
    for (auto& [images, targets] : loader) {
      auto loss = torch::mse_loss(model(images), targets);
      loss.backward();
      optimizer.step();
      optimizer.zero_grad();
      mean_loss.update(loss, images.size(0));
    }
    error = metrics::evaluate(model, valid_loader, SquaredError());
    fleet::print(
        "epoch {:2}: training {:.3e}, validation {:.3e}  (waited {:.0f} % of the time for data)\n",
        epoch,
        mean_loss.compute(fleet::group()),
        error,
        100 * loader.stats().input_bound());
  }
  const double of_mean = error_of_the_mean(train, valid);
  fleet::print("validation MSE {:.3e}; the mean face's {:.3e}: {:.1f} times {}\n",
               error,
               of_mean,
               std::max(of_mean / error, error / of_mean),
               error < of_mean ? "better" : "worse");
  if (fleet::is_first_worker()) {
    image::write_file(options.sheet, image::encode_png(sheet_of(model, faces, valid)));
    fleet::print("Faces with true and predicted points: {}\n", options.sheet);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Trains FaceNet on facial keypoints; under `argosy launch` on several processes.");
  app.add_option("data", options.data, "training.csv or training.csv.gz, or its folder")
      ->required();
  app.add_option("--recipe", options.recipe, "paddle: Adam 1e-3; torch: SGD 1e-4, momentum 0.9")
      ->check(CLI::IsMember({"paddle", "torch"}))
      ->capture_default_str();
  app.add_option("--sheet", options.sheet, "Where the faces are drawn, PNG")
      ->check(program::in_a_folder)
      ->capture_default_str();
  app.add_option("--epochs", options.epochs, "Passes over the training set")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--batch_size", options.batch_size, "Faces per step and process")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--lr", options.lr, "Learning rate")
      ->check(CLI::Range(0.0, 10.0))
      ->default_str("the recipe's: 1e-3 or 1e-4");
  app.add_option("--image_size", options.image_size, "Side of the pictures, in pixels")
      ->check(CLI::Range(33, 1024))
      ->capture_default_str();
  app.add_flag("--sync_batch_norm",
               options.sync_batch_norm,
               "Batch norms take their statistics over all processes");
  app.add_option("--seed", options.seed, "Of the weights and of the split")->capture_default_str();
  app.add_option("--workers", options.workers, "Loader threads")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  return program::run(app, argc, argv, [&] { run(options); });
}
