#pragma once

#include <memory>
#include <string>

#include "argosy/datasets/sample_source.h"

/// One function for each kind of set, each in a file of its own; open_samples() chooses.
namespace argosy::datasets {

/// IDX files, plain or gzip: MNIST, Fashion-MNIST. A split whose files are not there is left out.
[[nodiscard]] std::unique_ptr<SampleSource> open_idx(const std::string& set,
                                                     const std::string& path);
/// Train, valid and test of one JSON file.
[[nodiscard]] std::unique_ptr<SampleSource> open_mnist_json(const std::string& path);
/// CIFAR-10 or -100, Python's or the binary archive. CIFAR-100 has two labels: fine, coarse.
[[nodiscard]] std::unique_ptr<SampleSource> open_cifar(const std::string& set,
                                                       const std::string& path);
/// The pictures of 102flowers.tgz that are there, by split (the published ones).
[[nodiscard]] std::unique_ptr<SampleSource> open_flowers102(const std::string& path);
/// training.csv, all rows (unknown coordinates are NaN), and test.csv where it lies beside it.
[[nodiscard]] std::unique_ptr<SampleSource> open_keypoints(const std::string& path);
/// A folder with a folder for each class, or without classes.
[[nodiscard]] std::unique_ptr<SampleSource> open_folder(const std::string& path);
/// A record file of samples.
[[nodiscard]] std::unique_ptr<SampleSource> open_records(const std::string& path);

}  // namespace argosy::datasets
