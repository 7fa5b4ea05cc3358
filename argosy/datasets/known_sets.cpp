#include "argosy/datasets/known_sets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/base/strings.h"

namespace argosy::datasets {
namespace {

// Addresses are those of the sets' authors, of torchvision and of Paddle: the last have no limit of
// connections and are near to China, the others near to the rest of the world.
std::vector<KnownSet> make_known_sets() {
  return {
      {.name = "mnist",
       .title = "MNIST: 70,000 handwritten digits, 28 x 28 grey, 10 classes",
       .addresses = {"https://ossci-datasets.s3.amazonaws.com/mnist/",
                     "https://dataset.bj.bcebos.com/mnist/"},
       .files = {{"train-images-idx3-ubyte.gz", {9912422, "f68b3c2dcbeaaa9fbdd348bbdeb94873"}},
                 {"train-labels-idx1-ubyte.gz", {28881, "d53e105ee54ea40749a09fcbcd1e9432"}},
                 {"t10k-images-idx3-ubyte.gz", {1648877, "9fb629c4189551a2d022fa330f9573f3"}},
                 {"t10k-labels-idx1-ubyte.gz", {4542, "ec29112dd5afa0611ce80d1b7f02629c"}}}},
      // also_right: as Debian's package dataset-fashion-mnist has them, gzip's file name left out
      {.name = "fashion_mnist",
       .title = "Fashion-MNIST: 70,000 clothes, 28 x 28 grey, 10 classes",
       .addresses = {"https://dataset.bj.bcebos.com/fashion_mnist/",
                     "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"},
       .files = {{"train-images-idx3-ubyte.gz",
                  {26421880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d"},
                  {{26421856, "cf8536b0aa1a6ac5fa3f23001093305c"}}},
                 {"train-labels-idx1-ubyte.gz",
                  {29515, "25c81989df183df01b3e8a0aad5dffbe"},
                  {{29491, "10bea18fdb374794d4bb42e356e600c9"}}},
                 {"t10k-images-idx3-ubyte.gz",
                  {4422102, "bef4ecab320f06d8554ea6380940ec79"},
                  {{4422079, "f78720b4224f21cce2f2ccf2d7a94c9a"}}},
                 {"t10k-labels-idx1-ubyte.gz",
                  {5148, "bb300cfdad3c16e7a12a480ee83cd310"},
                  {{5125, "0d30e22e447f3c33dab9ed536400ac01"}}}}},
      {.name = "mnist_json",
       .title = "MNIST as one JSON file: train, validation and test",
       .instead = "No server has it, for it is made from MNIST: argosy data fetch mnist, then "
                  "mnist_to_json.py, which make install puts into share/argosy (see "
                  "docs/guides/data_sets.md#mnist_json)"},
      {.name = "cifar10",
       .title = "CIFAR-10: 60,000 photographs, 32 x 32 RGB, 10 classes",
       .addresses = {"https://www.cs.toronto.edu/~kriz/", "https://dataset.bj.bcebos.com/cifar/"},
       .files = {{"cifar-10-python.tar.gz", {170498071, "c58f30108f718f92721af3b95e74349a"}},
                 {"cifar-10-binary.tar.gz", {170052171, "c32a1d4ab5d03f1284b67883e8d87530"}}},
       .one_file_is_enough = true},
      {.name = "cifar100",
       .title = "CIFAR-100: 60,000 photographs, 32 x 32 RGB, 100 classes",
       .addresses = {"https://www.cs.toronto.edu/~kriz/", "https://dataset.bj.bcebos.com/cifar/"},
       .files = {{"cifar-100-python.tar.gz", {169001437, "eb9058c3a382ffc7106e4002c42a8d85"}},
                 {"cifar-100-binary.tar.gz", {168513733, "03b5dce01913d631647c71ecec9e9cb8"}}},
       .one_file_is_enough = true},
      {.name = "flowers102",
       .title = "Oxford Flowers-102: 8,189 photographs, 102 classes",
       .addresses = {"https://www.robots.ox.ac.uk/~vgg/data/flowers/102/",
                     "http://paddlemodels.bj.bcebos.com/flowers/"},
       .files = {{"102flowers.tgz", {344862509, "52808999861908f626f3c1f4e79d11fa"}},
                 {"imagelabels.mat", {502, "e0620be6f572b9609742df49c70aed4d"}},
                 {"setid.mat", {14989, "a5357ecc9cb78c4bef273ce3793fc85c"}}}},
      {.name = "keypoints",
       .title = "Facial keypoints (Kaggle): 7,049 faces, 96 x 96 grey, 15 points",
       .instead = "Kaggle gives it only to those who are logged in: download training.zip and "
                  "test.zip from https://www.kaggle.com/c/facial-keypoints-detection/data, unpack "
                  "them and give the path of training.csv (or training.csv.gz)"},
      {.name = "folder",
       .title = "A folder of pictures, one folder for each class",
       .instead = "It is yours: give its path"},
      {.name = "records",
       .title = "A record file, as argosy data pack writes it",
       .instead = "It is made here: argosy data pack NAME PATH OUT"},
  };
}

}  // namespace

const std::vector<KnownSet>& known_sets() {
  static const std::vector<KnownSet> sets = make_known_sets();
  return sets;
}

const KnownSet* find_known_set(std::string_view name) {
  const auto found = std::ranges::find(known_sets(), name, &KnownSet::name);
  return found == known_sets().end() ? nullptr : &*found;
}

const KnownSet& known_set(std::string_view name) {
  if (const KnownSet* set = find_known_set(name)) {
    return *set;
  }
  std::vector<std::string> names;
  for (const KnownSet& set : known_sets()) {
    names.push_back(set.name);
  }
  const auto meant = strings::closest(name, names);
  throw UsageError("datasets.name",
                   fmt::format("unknown data set \"{}\". {}",
                               name,
                               meant ? fmt::format("Did you mean {}?", *meant)
                                     : fmt::format("Expected one of {}", fmt::join(names, ", "))));
}

}  // namespace argosy::datasets
