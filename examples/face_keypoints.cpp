// Where eyes, nose and mouth lie: regression of 15 points on faces, as in Paddle's tutorial on
// facial keypoints. FaceNet(15), MSE, 30 epochs with Adam 1e-3 (--recipe torch: SGD 1e-4, 0.9).
//
//     ./face_keypoints training.csv.gz
//     argosy launch --nproc_per_node 2 ./face_keypoints training.csv.gz --batch_size 16
//
// Reads the file of Kaggle's contest, plain or gzip. Faces that lack a point are left out; 80 % of
// the others are for training. Targets are in [0, 1]: pixels / 96. In the end it draws faces of the
// other 20 % with their true and predicted points: faces.html.
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
#include <argosy/image/codec.h>
#include <argosy/runs/picture_page.h>

#include <torch/torch.h>

#include "lesson.h"

using namespace argosy;

namespace {

struct Options : lesson::Options {
  Options() { epochs = 30; }

  std::string recipe = "paddle";
  std::string sheet = "faces.html";
  std::optional<double> lr{};  // none: the recipe's
  int image_size = 96;
  uint64_t seed = 1;
  bool sync_batch_norm = false;
};

using Part = data::Subset<vision::FacialKeypoints>;

optim::Optimizer optimizer_of(const vision::FaceNet& net, const Options& options) {
  if (options.recipe == "torch") {
    return optim::SGD(net, {.lr = options.lr.value_or(1e-4), .momentum = 0.9});
  }
  return optim::Adam(net, {.lr = options.lr.value_or(1e-3)});
}

at::Tensor targets_of(const Part& part) {
  std::vector<at::Tensor> targets;
  for (int64_t i = 0; i < part.size(); ++i) {
    targets.push_back(part.dataset().get(part.indices()[i]).target);
  }
  return torch::stack(targets);
}

/// What is reached without a look at any face: the mean of the training points as the answer.
double error_of_the_mean(const Part& train, const Part& valid) {
  const at::Tensor truth = targets_of(valid);
  return torch::mse_loss(targets_of(train).mean(0).expand_as(truth), truth).item<double>();
}

std::vector<float> numbers(const at::Tensor& points) {
  return {points.data_ptr<float>(), points.data_ptr<float>() + points.numel()};
}

/// A face with what is true and what the model says.
runs::PagePicture shown(const vision::KeypointImage& face, const at::Tensor& predicted) {
  const at::Tensor points = (predicted * face.image.width()).view_as(face.points).contiguous();
  const auto off = (points - face.points).norm(2, 1).mean().item<double>();
  const std::vector<uint8_t> png = image::encode_png(face.image);
  return {.png = {png.begin(), png.end()},
          .caption = fmt::format("off by {:.1f} pixels", off),
          .points = numbers(points),
          .true_points = numbers(face.points),
          .width = face.image.width(),
          .height = face.image.height()};
}

/// Faces from all over `part`. Collective.
runs::PicturePage sheet_of(train::Model& model, const Part& part) {
  const int64_t count = std::min<int64_t>(24, part.size());
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < count; ++i) {
    chosen.push_back(i * part.size() / count);
  }
  const at::Tensor predicted =
      model.predict(data::Subset(part, chosen), {.batch_size = 8, .verbose = 0}).front();
  runs::PicturePage page{.title = "Faces", .side = 192};
  for (int64_t i = 0; i < count; ++i) {
    page.pictures.push_back(shown(part.dataset().at(part.indices()[chosen[i]]), predicted[i]));
  }
  return page;
}

void run(const Options& options) {
  fleet::init({.sync_batch_norm = options.sync_batch_norm}, {}, options.device);
  torch::manual_seed(options.seed);
  const vision::FacialKeypoints faces(
      options.data,
      {.transform = {vision::Resize({options.image_size, options.image_size}),
                     vision::Repeat(3),
                     vision::ToTensor()},
       .points_in = vision::PointUnit::kSides});
  const auto [train, valid] = data::random_split(faces, {0.8, 0.2}, {.seed = options.seed});
  fleet::print("FaceNet({}) on {}: {} training and {} validation faces, recipe {}\n",
               faces.names().size(),
               lesson::processes(),
               train.size(),
               valid.size(),
               options.recipe);

  vision::FaceNet net(std::ssize(faces.names()));
  net->to(fleet::device());
  train::Model model(net);
  model.prepare(optimizer_of(net, options), loss::MSE());
  const train::History history = model.fit(
      train,
      valid,
      {.batch_size = options.batch_size,
       .epochs = options.epochs,
       .num_workers = options.num_workers,
       .callbacks = {lesson::EpochLine([](const train::Logs& logs) {
         return fmt::format("training {:.3e}, validation {:.3e}", logs["loss"], logs["eval_loss"]);
       })},
       .data = {.eval_batch_size = 100},
       .log = {.verbose = 0}});

  const double error = history.epochs.back()["eval_loss"];
  const double of_mean = error_of_the_mean(train, valid);
  fleet::print("validation MSE {:.3e}; the mean face's {:.3e}: {:.1f} times {}\n",
               error,
               of_mean,
               std::max(of_mean / error, error / of_mean),
               error < of_mean ? "better" : "worse");
  const runs::PicturePage sheet = sheet_of(model, valid);
  if (fleet::is_first_worker()) {
    runs::write_picture_page(options.sheet, sheet);
    fleet::print("Faces with true and predicted points: {}\n", options.sheet);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  const program::Options rows =
      lesson::with_options_of(o,
                              "training.csv or training.csv.gz, or its folder",
                              "Faces per step and process",
                              {{"--recipe",
                                "NAME",
                                "paddle: Adam 1e-3; torch: SGD 1e-4, momentum 0.9",
                                &o.recipe,
                                {.words = "paddle|torch"}},
                               {"--sheet",
                                "FILE",
                                "Page that shows the faces, .html",
                                &o.sheet,
                                {.check = runs::page_name}},
                               {"--lr",
                                "X",
                                "Learning rate. Default: the recipe's, 1e-3 or 1e-4",
                                &o.lr,
                                {.least = 0, .most = 10}},
                               {"--image_size",
                                "N",
                                "Side of the pictures, in pixels",
                                &o.image_size,
                                {.least = 33, .most = 1024}},
                               {"--sync_batch_norm",
                                "",
                                "Batch norms take their statistics over all processes",
                                &o.sync_batch_norm},
                               {"--seed", "N", "Of the weights and of the split", &o.seed}});
  return program::run(
      {"Trains FaceNet on facial keypoints; under `argosy launch` on several processes."},
      rows,
      argc,
      argv,
      [&] { run(o); });
}
