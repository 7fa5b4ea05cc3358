#include "argosy/ps/pushed_steps.h"

#include <memory>
#include <utility>

namespace argosy::ps {

RowGradients::RowGradients(const TableClient& client, const ServedModel& model) {
  pending_.reserve(model.rows().size());
  deals_.reserve(model.rows().size());
  for (const std::shared_ptr<EmbeddingRows>& rows : model.rows()) {
    const EmbeddingRows::Pending& taken = pending_.emplace_back(rows->take());
    const IdDeal& ids = deals_.emplace_back(client.deal(taken.ids));
    all_.push_back({.table = rows->table(),
                    .ids = ids,
                    .gradients = taken.gradients,
                    .lr = model.rate_of(rows->table()),
                    .shows = taken.shows,
                    .clicks = taken.clicks,
                    .seen = taken.seen,
                    .read = taken.read});
  }
}

void PushedSteps::step() {
  const ServedModel::Gradients dense = model_.gradients();
  TableClient::DenseGradients pushed{.gradients = dense.gradients, .lr = dense.lr, .seen = seen_};
  if (read_ == Read::kKept) {
    const std::vector<std::span<float>> values = model_.values();  // nobody has changed them
    pushed.read.assign(values.begin(), values.end());
  }
  client_.push(RowGradients(client_, model_).all(), dense.lr.empty() ? nullptr : &pushed);
  pull();
}

void PushedSteps::pull() {
  const TableClient::Dense dense{.values = model_.values()};
  seen_ = client_.pull({}, &dense);
  model_.note_change();
}

}  // namespace argosy::ps
