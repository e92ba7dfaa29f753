// gpt TEXT [STEPS] [DEVICE]: trains a small transformer on a text, character by character, and prints text of the
// transformer. gpt.py does the same in Python, and names the package with the King James text. `plugrad launch -n 4 gpt
// TEXT` trains on 4 processes, which share each batch.
#include <plugrad/io/characters.hpp>
#include <plugrad/plugrad.hpp>

#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <numbers>
#include <optional>

using namespace plugrad;

namespace {

constexpr int64_t kBlock = 64, kBatch = 12, kLayers = 4, kHeads = 4, kWidth = 128;

struct Block final : nn::Module {
  void members(nn::Members& all) override {
    all("norm1", norm1), all("norm2", norm2), all("qkv", qkv), all("project", project), all("up", up), all("down", down);
  }
  Tensor forward(const Tensor& x) const override {
    const Tensor y = x + attended(norm1(x));
    return y + down(gelu(up(norm2(y))));
  }
  Tensor attended(const Tensor& x) const {
    const Tensor all = qkv(x);
    const auto part = [&](int64_t i) {
      return transpose(unflatten(slice(all, -1, i * kWidth, (i + 1) * kWidth), -1, {kHeads, -1}), 1, 2);
    };
    return project(flatten(transpose(scaled_dot_product_attention(part(0), part(1), part(2), {}, 0, true), 1, 2), 2));
  }
  nn::LayerNorm norm1{{kWidth}, {.bias = false}}, norm2{{kWidth}, {.bias = false}};
  nn::Linear qkv{kWidth, 3 * kWidth, false}, project{kWidth, kWidth, false};
  nn::Linear up{kWidth, 4 * kWidth, false}, down{4 * kWidth, kWidth, false};
};

// Ids of characters (n, l), l at most kBlock -> logits (n, l, kinds) of the next characters.
struct Gpt final : nn::Module {
  explicit Gpt(int64_t kinds) : characters(kinds, kWidth), places(kBlock, kWidth) {
    for (int64_t i = 0; i < kLayers; ++i) blocks.push_back(std::make_shared<Block>());
    for (const nn::NamedTensor& each : named_parameters()) {
      if (each.tensor.rank() != 2) continue;
      const bool last = each.name.ends_with("project.weight") || each.name.ends_with("down.weight");
      nn::init::normal_(each.tensor, 0, last ? 0.02 / std::sqrt(2.0 * kLayers) : 0.02);
    }
  }
  void members(nn::Members& all) override {
    all("characters", characters), all("places", places), all("blocks", blocks), all("norm", norm);
  }
  Tensor forward(const Tensor& ids) const override {
    Tensor x = characters(ids) + slice(places.weight, 0, 0, ids.size(1));
    for (const auto& block : blocks) x = (*block)(x);
    return linear(norm(x), characters.weight);
  }
  nn::Embedding characters, places;
  nn::ModuleList blocks;
  nn::LayerNorm norm{{kWidth}, {.bias = false}};
};

// Returns the mean loss over the next characters of random blocks.
Tensor loss_of(const Gpt& model, const Tensor& data, int64_t count = kBatch) {
  const Tensor starts = randint(0, data.size(0) - kBlock, {count, 1}, DType::i64, data.device());
  const Tensor places = flatten(starts + arange(0, kBlock, 1, DType::i64, data.device()));
  const Tensor ids = reshape(index_select(data, 0, places), {count, kBlock});
  return cross_entropy(flatten(model(ids), 0, 1), index_select(data, 0, places + 1));
}

double estimate(const Gpt& model, const Tensor& data) {
  const NoGrad no_grad;
  double total = 0;
  for (int i = 0; i < 20; ++i) total += loss_of(model, data).item<double>();
  return total / 20;
}

std::string written(const Gpt& model, const io::Characters& characters, int count, Device device) {
  const NoGrad no_grad;
  std::vector<int64_t> ids = {0};
  for (int i = 0; i < count; ++i) {
    const int64_t length = std::min<int64_t>(kBlock, static_cast<int64_t>(ids.size()));
    const std::vector<int64_t> context(ids.end() - length, ids.end());
    const Tensor logits = select(select(model(Tensor::from(context, {1, length}, device)), 0, 0), 0, length - 1);
    ids.push_back(multinomial(softmax(logits, 0), 1).item<int64_t>());
  }
  return characters.decode(ids);
}

// Returns an optimizer with weight decay for matrices only.
nn::AdamW optimizer_of(const Gpt& model) {
  nn::ParameterGroup decayed, others;
  for (const Tensor& each : model.parameters()) (each.rank() >= 2 ? decayed : others).parameters.push_back(each);
  others.options["weight_decay"] = 0;
  return nn::AdamW(std::vector<nn::ParameterGroup>{decayed, others}, 1e-3, {.beta2 = 0.99, .weight_decay = 0.1});
}

// Returns the factor of the rate: 100 steps of warm-up, or half of all steps if that is less, then a cosine down to a tenth.
double factor(int64_t step, int64_t steps) {
  const double warm = static_cast<double>(std::min<int64_t>(100, steps / 2)), at = static_cast<double>(step);
  if (at < warm) return (at + 1) / (warm + 1);
  const double share = std::min(1.0, (at - warm) / std::max(1.0, static_cast<double>(steps) - warm));
  return 0.1 + 0.45 * (1 + std::cos(std::numbers::pi * share));
}

void report(const Gpt& model, const io::Characters& characters, const Tensor& train, const Tensor& held_out, int64_t step) {
  static const auto begun = std::chrono::steady_clock::now();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
  std::cout << "step " << step << ", " << taken.count() << " s: loss " << estimate(model, train) << ", validation "
            << estimate(model, held_out) << "\n"
            << written(model, characters, 160, train.device()) << "\n"
            << std::flush;
}

int teach(const std::string& path, int64_t steps, Device device) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.size() < 1000) throw Error(Code::io_error, "[gpt] " + path + " is missing or has fewer than 1000 characters");
  set_default_device(device);
  manual_seed(1337);
  const io::Characters characters(text);
  const std::vector<int64_t> ids = characters.encode(text);
  const int64_t count = static_cast<int64_t>(ids.size()), split = count * 9 / 10;
  const Tensor data = Tensor::from(ids, {count}, device), train = slice(data, 0, 0, split),
               held_out = slice(data, 0, split, count);
  Gpt model(characters.size());
  nn::AdamW optimizer = optimizer_of(model);
  nn::LambdaLR schedule(optimizer, [steps](int64_t step) { return factor(step, steps); });
  // Processes that a launcher started share each batch, and only the first one prints.
  int rank = 0, ranks = 1;
  std::optional<distributed::DataParallel> parallel;
  if (distributed::is_launched()) {
    distributed::init_process_group();
    rank = distributed::get_rank();
    ranks = distributed::get_world_size();
    parallel.emplace(model);
    manual_seed(1337 + static_cast<uint64_t>(rank));  // each draws samples of its own
  }
  for (int64_t step = 0;; ++step) {
    if (rank == 0 && (step % 250 == 0 || step == steps)) report(model, characters, train, held_out, step);
    if (step == steps) return 0;
    const Tensor loss = loss_of(model, train, kBatch / ranks);
    optimizer.zero_grad();
    loss.backward();
    clip_grad_norm_(model.parameters(), 1);
    optimizer.step();
    schedule.step();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: gpt TEXT [STEPS] [DEVICE]\n";
    return 2;
  }
  try {
    return teach(argv[1], argc > 2 ? std::stoll(argv[2]) : 2000, argc > 3 ? Device(argv[3]) : default_device());
  } catch (const std::exception& error) {
    distributed::abort_process_group(error.what());
    std::cerr << "gpt: " << error.what() << "\n";
    return 1;
  }
}
