/// Batches that a loader brings to a device: those of the CPU, one step ahead, and nobody waits.
#include <atomic>
#include <future>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "argosy/base/error.h"
#include "argosy/data/data_loader.h"

#include "tests/support/error_text.h"
#include "tests/support/late_queue.h"
#include "tests/support/on_devices.h"
#include "tests/support/stream_order.h"

namespace argosy::data {
namespace {

using testing::HasSubstr;

constexpr int64_t kRow = 300;

/// Rows of number + 1, written into the loader's memory.
struct Numbers {
  int64_t samples = 64;
  std::atomic<int64_t>* begun = nullptr;  ///< batches
  int64_t size() const { return samples; }
  at::Tensor get_batch(std::span<const int64_t> indices, const BatchContext& context) const {
    if (begun != nullptr) {
      ++*begun;
      begun->notify_all();
    }
    at::Tensor rows = context.empty({static_cast<int64_t>(indices.size()), kRow}, at::kFloat);
    for (size_t i = 0; i < indices.size(); ++i) {
      rows[static_cast<int64_t>(i)].fill_(static_cast<double>(indices[i] + 1));
    }
    return rows;
  }
};

struct Named {
  at::Tensor images;
  std::map<std::string, std::vector<at::Tensor>> boxes;
  int64_t number = 0;
  auto tensors() { return std::tie(images, boxes); }
};

/// Samples whose batches are made by the functions below.
struct Pictures {
  int64_t size() const { return 22; }
  std::tuple<at::Tensor, double> get(int64_t index, Random& random) const {
    return {torch::full({3, 4, 5}, random.uniform()) + torch::arange(5),
            static_cast<double>(index) / 2};
  }
};
using Sample = std::tuple<at::Tensor, double>;

at::Tensor stacked(const std::vector<Sample>& samples) {
  std::vector<at::Tensor> all;
  for (const Sample& sample : samples) {
    all.push_back(std::get<0>(sample));
  }
  return at::stack(all);
}

/// Memory that is not the loader's, shared, transposed, with gaps, and of no dimension.
Named named_batch(const std::vector<Sample>& samples) {
  static const at::Tensor own = torch::arange(40, at::kLong).view({8, 5});
  const at::Tensor images = stacked(samples);
  return {images.transpose(1, 3),
          {{"gaps", {own.slice(1, 0, 5, 2), own}}, {"one", {images.sum(), images[0][0]}}},
          static_cast<int64_t>(samples.size())};
}

std::vector<at::Tensor> copies_of(auto& batch) {
  std::vector<at::Tensor> all;
  for (const at::Tensor* const tensor : detail::tensors_in(batch)) {
    all.push_back(*tensor);
  }
  return all;
}

class DeviceInput : public test::OnDevices {
 protected:
  [[nodiscard]] c10::Stream stream() const {
    return c10::impl::VirtualGuardImpl(device().type()).getStream(device());
  }
  /// Throws what the device has against the order of its work.
  void synchronize() const { stream().synchronize(); }

  /// An epoch's tensors, batch by batch; the device's are read when all are there.
  template <typename Set, typename... Collate>
  [[nodiscard]] std::vector<std::vector<at::Tensor>> epoch(const Set& set,
                                                           DataLoaderOptions options,
                                                           at::Device where,
                                                           Collate... collate) const {
    options.device = where;
    DataLoader loader(set, options, collate...);
    std::vector<std::vector<at::Tensor>> all;
    for (auto& batch : loader) {
      all.push_back(copies_of(batch));
    }
    return all;
  }
  template <typename Set, typename... Collate>
  void expect_the_cpus(const Set& set, const DataLoaderOptions& options, Collate... collate) const {
    DataLoaderOptions alone = options;
    alone.num_workers = 0;
    alone.prefetch_factor = DataLoaderOptions().prefetch_factor;
    const auto wanted = epoch(set, alone, at::kCPU, collate...);
    const auto got = epoch(set, options, device(), collate...);
    ASSERT_EQ(got.size(), wanted.size());
    ASSERT_GT(got.size(), 0U);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].size(), wanted[i].size());
      ASSERT_GT(got[i].size(), 0U);
      for (size_t j = 0; j < got[i].size(); ++j) {
        const std::string what = "batch " + std::to_string(i) + ", tensor " + std::to_string(j);
        EXPECT_EQ(got[i][j].device(), device()) << what;
        EXPECT_EQ(got[i][j].strides(), wanted[i][j].to(device()).strides()) << what;
        EXPECT_TRUE(got[i][j].cpu().equal(wanted[i][j])) << what;
      }
    }
  }
};

TEST_P(DeviceInput, BatchesAreTheCpusInTheirOrder) {
  for (const int workers : {0, 1, 3}) {
    const DataLoaderOptions options{
        .batch_size = 4, .shuffle = true, .num_workers = workers, .seed = 3};
    expect_the_cpus(Numbers(), options);
    expect_the_cpus(Pictures(), options);
    expect_the_cpus(Pictures(), options, &stacked);
    expect_the_cpus(Pictures(), options, &named_batch);
    DataLoaderOptions channels_last = options;
    channels_last.memory_format = at::MemoryFormat::ChannelsLast;
    expect_the_cpus(Pictures(), channels_last);
  }
}

// Neither values nor memory: batches go as soon as work on them is queued, their memory is the
// next ones', on the host and on the device, and nobody waits for the device before the end.
TEST_P(DeviceInput, NothingIsUsedTooEarly) {
  for (const int workers : {0, 2}) {
    for (int round = 0; round < 3; ++round) {
      DataLoader loader(
          Numbers{.samples = 400},
          {.batch_size = 4, .num_workers = workers, .device = at::Device(device().type())});
      std::vector<at::Tensor> sums;
      for (at::Tensor& rows : loader) {
        sums.push_back((rows * 2).sum());
      }
      ASSERT_EQ(sums.size(), 100U);
      int wrong = 0;
      for (int64_t i = 0; i < 100; ++i) {
        const double first = static_cast<double>(4 * i + 1);
        wrong += sums[i].item<double>() == 2 * kRow * (4 * first + 6) ? 0 : 1;
      }
      EXPECT_EQ(wrong, 0);
      // On their way, made ahead, and in the loop's hand: none of it waits for the device.
      EXPECT_LE(loader.memory().allocated, 4U + 4 + 2);
      EXPECT_EQ(loader.memory().allocated + loader.memory().reused, 100U);
    }
    synchronize();
  }
}

TEST_P(DeviceInput, TheStreamThatIsCurrentInTheLoopWaits) {
  const c10::impl::VirtualGuardImpl card(device().type());
  const c10::Stream side = card.getStreamFromGlobalPool(device());
  {
    const c10::StreamGuard guard(side);
    DataLoader loader(Numbers(), {.batch_size = 8, .num_workers = 1, .device = device()});
    at::Tensor sum = at::zeros({}, at::TensorOptions(device()));
    for (at::Tensor& rows : loader) {
      sum += rows.sum();
    }
    EXPECT_EQ(sum.item<double>(), kRow * 64.0 * 65 / 2);
  }
  synchronize();
}

/// Of the second device: its work goes on when the test says so.
class Held final {
 public:
  explicit Held(c10::Stream stream) {
    test::StreamOrder::of_process().submit(*static_cast<test::LateQueue*>(test::handle_of(stream)),
                                           [until = open_.get_future().share()] { until.wait(); },
                                           {});
  }
  ~Held() { release(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  Held(Held&&) = delete;
  Held& operator=(Held&&) = delete;
  void release() {
    if (!std::exchange(released_, true)) {
      open_.set_value();
    }
  }

 private:
  std::promise<void> open_;
  bool released_ = false;
};

TEST_P(DeviceInput, TheNextBatchIsCopiedWhileTheStepRunsAndNoOther) {
  if (is_cuda()) {
    GTEST_SKIP() << "the device does not tell its streams";
  }
  std::atomic<int64_t> begun = 0;
  DataLoader loader(Numbers{.samples = 20, .begun = &begun},
                    {.num_workers = 1, .prefetch_factor = 8, .device = device()});
  // Waits until the thread has begun so many batches: all but the last of them are ready.
  const auto wait_for = [&](int64_t batches) {
    for (int64_t now = begun; now < batches; now = begun) {
      begun.wait(now);
    }
  };
  Held held(stream());
  std::vector<at::Tensor> sums;
  int64_t number = 0;
  for (at::Tensor& rows : loader) {
    sums.push_back(rows.sum());  // the step, of which nothing runs
    const c10::Stream copies = test::stream_of_last_copy_to(device());
    ASSERT_NE(copies, stream());
    if (number > 0) {  // the first may come before the second is made
      // Of each batch, memory and the copy.
      EXPECT_EQ(static_cast<test::LateQueue*>(test::handle_of(copies))->newest(),
                2U * static_cast<uint64_t>(number + 2))
          << number;
      EXPECT_EQ(loader.current(), number);
      EXPECT_EQ(loader.state().position, number + 1) << "what is ahead counts as not received";
    }
    copies.synchronize();  // it waits for no step
    if (number == 8) {
      break;
    }
    wait_for(++number + 5);
  }
  EXPECT_FALSE(stream().query());
  held.release();
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(sums[i].item<double>(), kRow * static_cast<double>(i + 1));
  }
  EXPECT_EQ(sums.size(), 9U);
}

TEST_P(DeviceInput, ResumesBehindWhatTheLoopReceived) {
  const Pictures set;
  const DataLoaderOptions options{
      .batch_size = 4, .shuffle = true, .num_workers = 2, .seed = 3, .device = device()};
  std::vector<at::Tensor> whole;
  DataLoader uncut(set, options);
  for (auto& [x, y] : uncut) {
    whole.push_back(x.cpu());
  }
  for (int64_t taken = 1; taken < 6; ++taken) {
    DataLoader cut(set, options);
    for (auto it = cut.begin(); cut.current() + 1 < taken; ++it) {
    }
    EXPECT_EQ(cut.state().position, taken);
    DataLoader resumed(set, options);
    resumed.load_state(cut.state());
    size_t next = static_cast<size_t>(taken);
    for (auto& [x, y] : resumed) {
      ASSERT_LT(next, whole.size());
      EXPECT_TRUE(x.cpu().equal(whole[next++]));
    }
    EXPECT_EQ(next, whole.size());
  }
}

struct Bad {
  int64_t size() const { return 12; }
  int64_t get(int64_t index) const {
    if (index == 5) {
      throw DataError("test", "is bad");
    }
    return index;
  }
};

TEST_P(DeviceInput, ErrorsComeInTheTurnOfTheirBatch) {
  for (const int workers : {0, 2}) {
    DataLoader loader(Bad(), {.batch_size = 2, .num_workers = workers, .device = device()});
    std::vector<at::Tensor> got;
    const std::string told = test::error_text<DataError>([&] {
      for (at::Tensor& numbers : loader) {
        got.push_back(numbers);
      }
    });
    EXPECT_THAT(told, HasSubstr("is bad"));
    ASSERT_EQ(got.size(), 2U);
    EXPECT_TRUE(got[1].cpu().equal(torch::tensor({2, 3})));
    EXPECT_EQ(loader.state().position, 2);
    const DataLoaderOptions skips{
        .batch_size = 1, .num_workers = workers, .on_error = OnError::kSkip};
    expect_the_cpus(Bad(), skips);  // a batch without samples among the others
  }
  DataLoader nowhere(Bad(), {.device = at::Device(device().type(), 100)});
  EXPECT_THAT(test::error_text<UsageError>([&] { (void)nowhere.begin(); }),
              testing::HasSubstr("and this process sees"));
  EXPECT_EQ(nowhere.state().position, 0);
}

/// Blocks so large that malloc() gives them back to the system.
struct Large {
  int64_t size() const { return 8; }
  at::Tensor get_batch(std::span<const int64_t> indices, const BatchContext& context) const {
    return context.empty({1 << 20}, at::kInt).fill_(indices[0]);
  }
};

TEST_P(DeviceInput, LoopsAndLoadersMayEndAtAnyTime) {
  for (const int workers : {0, 1}) {
    for (int64_t taken = 0; taken < 8; ++taken) {
      at::Tensor last;
      {
        DataLoader loader(Large(), {.num_workers = workers, .device = device()});
        for (at::Tensor& batch : loader) {
          last = batch;
          if (loader.current() == taken) {
            break;
          }
        }
        if (taken % 2 == 0) {  // the next epoch, over what the last one left on its way
          auto it = loader.begin();
          EXPECT_EQ(loader.epoch_of_loop(), 1);
          EXPECT_EQ((*it)[5].item<int>(), 0);
        }
      }
      EXPECT_EQ(last.min().item<int>(), taken);
      EXPECT_EQ(last.max().item<int>(), taken);
    }
  }
  synchronize();
}

TEST_P(DeviceInput, ALoopChoosesItsDevice) {
  DataLoader loader(Numbers(), {.batch_size = 32, .num_workers = 1, .device = device()});
  for (const at::Device where :
       {device(), at::Device(at::kCPU), device(1), device(), at::Device(at::kCPU)}) {
    int64_t batches = 0;
    for (auto it = loader.begin(where); it != loader.end(); ++it, ++batches) {
      EXPECT_EQ(it->device(), where);
      EXPECT_EQ((*it)[0][0].item<double>(), 32 * batches + 1);
    }
    EXPECT_EQ(batches, 2);
  }
  for (at::Tensor& rows : loader) {
    EXPECT_EQ(rows.device(), device());
  }
}

struct Unnamed {
  at::Tensor images;
};

TEST_P(DeviceInput, TensorsThatCannotBeFoundAreAnErrorOrStay) {
  const auto unnamed = [](const std::vector<Sample>& samples) { return Unnamed{stacked(samples)}; };
  EXPECT_THAT(test::error_text<UsageError>(
                  [&] { (void)DataLoader(Pictures(), {.device = device()}, unnamed); }),
              HasSubstr("of a type whose tensors the loader cannot find"));
  DataLoader loader(Pictures(), {}, unnamed);
  auto it = loader.begin(device());
  EXPECT_TRUE(it->images.is_cpu());
}

TEST_P(DeviceInput, MemoryIsReused) {
  DataLoader loader(Numbers{.samples = 400},
                    {.batch_size = 2, .num_workers = 1, .device = device()});
  for (at::Tensor& rows : loader) {
    EXPECT_EQ(rows[0][0].item<int>(), 2 * loader.current() + 1);  // each step ends
  }
  // Two that threads made, one ahead, one in the loop's hand, and those whose copies are not done.
  EXPECT_LT(loader.memory().allocated, 10U);
  EXPECT_EQ(loader.memory().allocated + loader.memory().reused, 200U);
  EXPECT_EQ(loader.stats().pool_bytes, loader.memory().bytes);
  DataLoader foreign(Pictures(), {.batch_size = 2, .device = device()}, &stacked);
  for (at::Tensor& images : foreign) {
    EXPECT_EQ(images.size(0), 2);
  }
  EXPECT_GT(foreign.memory().allocated, 0U) << "not pinned";
}

ARGOSY_ON_DEVICES(DeviceInput);

}  // namespace
}  // namespace argosy::data
