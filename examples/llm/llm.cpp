// llm MODEL.gguf [PROMPT] [DEVICE] [f32|bf16]: a language model of the llama architecture answers the prompt. Without a
// prompt, llm reads questions from standard input, up to an empty line. Quantised matrices stay as they are in the file.
// llm.py does the same in Python.
#include <plugrad/io/byte_pairs.hpp>
#include <plugrad/io/gguf.hpp>
#include <plugrad/plugrad.hpp>

#include <chrono>
#include <cmath>
#include <iostream>

using namespace plugrad;

namespace {

struct Sizes {
  int64_t width, heads, kv_heads, inner, layers;
  double eps, rope_base;
};

Sizes sizes_of(const io::GgufFile& file) {
  return {file.integer("llama.embedding_length"),
          file.integer("llama.attention.head_count"),
          file.integer("llama.attention.head_count_kv"),
          file.integer("llama.feed_forward_length"),
          file.integer("llama.block_count"),
          file.real("llama.attention.layer_norm_rms_epsilon"),
          file.real("llama.rope.freq_base")};
}

// The keys and values of a layer for the earlier tokens: (kv heads, context, e).
struct Cache {
  Tensor keys, values;
};

// The place of new tokens: the first position, the rotations of the positions, and the mask of the tokens that each new
// token attends to.
struct Place {
  int64_t at;
  Tensor cos, sin, mask;
};

// How the weights of a file are read: to which device, and in which dtype the model computes.
struct Reading {
  const io::GgufFile& file;
  DType dtype;
  Device device;
  Tensor get(const std::string& name) const { return cast(file.get(name, device), dtype); }
};

// A matrix (n, k) of the file: quantised as it is in the file, or in the model's dtype.
class Matrix {
 public:
  Matrix(const Reading& reading, const std::string& name)
      : columns_(reading.file.info(name).shape[1]), dtype_(reading.dtype) {
    if (reading.file.info(name).type.starts_with('Q')) codes_ = reading.file.quantized(name, reading.device);
    else plain_ = reading.get(name);
  }
  // x times the transpose of the matrix.
  Tensor operator()(const Tensor& x) const {
    return plain_.defined() ? linear(x, plain_) : quantized_matmul(x, codes_.codes, codes_.scales);
  }
  Tensor rows(const Tensor& indices) const {
    if (plain_.defined()) return embedding(plain_, indices);
    const Tensor codes = index_select(codes_.codes, 0, indices), scales = index_select(codes_.scales, 0, indices);
    return dequantize(codes, scales, codes.size(1) * 8 / columns_, dtype_);
  }

 private:
  int64_t columns_;
  DType dtype_;
  Tensor plain_;
  Quantized codes_;
};

struct Layer {
  Layer(const Reading& from, const std::string& name, const Sizes& s)
      : heads(s.heads), kv_heads(s.kv_heads), eps(s.eps), attn_norm(from.get(name + "attn_norm.weight")),
        ffn_norm(from.get(name + "ffn_norm.weight")), attn_q(from, name + "attn_q.weight"),
        attn_k(from, name + "attn_k.weight"), attn_v(from, name + "attn_v.weight"),
        attn_output(from, name + "attn_output.weight"), ffn_gate(from, name + "ffn_gate.weight"),
        ffn_up(from, name + "ffn_up.weight"), ffn_down(from, name + "ffn_down.weight") {}

  Tensor run(const Tensor& x, Cache& cache, const Place& place) const {
    const Tensor h = rms_norm(x, {x.size(-1)}, attn_norm, eps);
    // In GGUF's layout of q and k, neighbouring elements are rotated together.
    const Tensor q = rotary_embedding(split(attn_q(h), heads), place.cos, place.sin, true);
    const Tensor k = rotary_embedding(split(attn_k(h), kv_heads), place.cos, place.sin, true);
    const int64_t end = place.at + x.size(0);
    assign(cache.keys, slice(cache.keys, 1, place.at, end), k);
    assign(cache.values, slice(cache.values, 1, place.at, end), split(attn_v(h), kv_heads));
    const Tensor attended = scaled_dot_product_attention(q, slice(cache.keys, 1, 0, end), slice(cache.values, 1, 0, end),
                                                         place.mask, 0, false, std::nullopt, true);
    const Tensor y = x + attn_output(flatten(transpose(attended, 0, 1), 1));
    const Tensor g = rms_norm(y, {y.size(-1)}, ffn_norm, eps);
    return y + ffn_down(silu(ffn_gate(g)) * ffn_up(g));
  }

  static Tensor split(const Tensor& x, int64_t heads) { return transpose(unflatten(x, -1, {heads, -1}), 0, 1); }

  int64_t heads, kv_heads;
  double eps;
  Tensor attn_norm, ffn_norm;
  Matrix attn_q, attn_k, attn_v, attn_output, ffn_gate, ffn_up, ffn_down;
};

struct Llama {
  explicit Llama(const Reading& from)
      : sizes(sizes_of(from.file)), kind(from.dtype), place_of_work(from.device), token_embd(from, "token_embd.weight"),
        output_norm(from.get("output_norm.weight")) {
    for (int64_t i = 0; i < sizes.layers; ++i) blk.emplace_back(from, "blk." + std::to_string(i) + ".", sizes);
    const double extent = static_cast<double>(sizes.width / sizes.heads);
    frequencies = pow(sizes.rope_base, arange(0, extent, 2) / -extent);
  }

  std::vector<Cache> caches(int64_t context) const {
    const Shape shape{sizes.kv_heads, context, sizes.width / sizes.heads};
    std::vector<Cache> all;
    for (size_t i = 0; i < blk.size(); ++i)
      all.push_back({zeros(shape, kind, place_of_work), zeros(shape, kind, place_of_work)});
    return all;
  }

  // Returns the logits (1, vocabulary) of the token after ids.
  Tensor next(const std::vector<int64_t>& ids, std::vector<Cache>& caches, int64_t at) const {
    const int64_t count = static_cast<int64_t>(ids.size());
    const Tensor places = unsqueeze(arange(at, at + count), 1), angles = places * frequencies;
    Place place{
        at, plugrad::to(cast(cos(angles), kind), place_of_work), plugrad::to(cast(sin(angles), kind), place_of_work), {}};
    if (count > 1) place.mask = plugrad::to(le(arange(0, at + count), places), place_of_work);
    Tensor x = token_embd.rows(Tensor::from(ids, {count}, place_of_work));
    for (size_t i = 0; i < blk.size(); ++i) x = blk[i].run(x, caches[i], place);
    const Tensor last = rms_norm(slice(x, 0, count - 1, count), {sizes.width}, output_norm, sizes.eps);
    return cast(token_embd(last), DType::f32);
  }

  Sizes sizes;
  DType kind;
  Device place_of_work;
  Matrix token_embd;
  std::vector<Layer> blk;
  Tensor output_norm, frequencies;
};

// A conversation: the model, its tokenizer, and the keys and values of the earlier tokens.
class Chat {
 public:
  Chat(const std::string& path, DType dtype, Device device)
      : file_(path), tokenizer_(file_), model_({file_, dtype, device}), caches_(model_.caches(kContext)),
        end_(file_.integer("tokenizer.ggml.eos_token_id")) {}

  void answer(const std::string& question) {
    const std::string start = at_ ? "<|im_end|>\n"
                                  : "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained "
                                    "by Hugging Face<|im_end|>\n";
    std::vector<int64_t> ids =
        tokenizer_.encode(start + "<|im_start|>user\n" + question + "<|im_end|>\n<|im_start|>assistant\n");
    const auto begun = std::chrono::steady_clock::now();
    io::TextStream stream;
    int written = 0;
    for (; written < kTokens && at_ + static_cast<int64_t>(ids.size()) <= kContext; ++written) {
      const Tensor logits = model_.next(ids, caches_, at_);
      at_ += static_cast<int64_t>(ids.size());
      const int64_t token = argmax(logits).item<int64_t>();
      if (token == end_) break;
      std::cout << stream.push(tokenizer_.bytes(token)) << std::flush;
      ids = {token};
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
    std::cout << stream.finish() << "\n";
    std::cerr << "[" << written << " tokens in " << taken.count() << " s]\n";
  }

 private:
  static constexpr int64_t kContext = 2048;
  static constexpr int kTokens = 200;
  io::GgufFile file_;
  io::BytePairTokenizer tokenizer_;
  Llama model_;
  std::vector<Cache> caches_;
  int64_t end_, at_ = 0;
};

int talk(int argc, char** argv) {
  const std::string prompt = argc > 2 ? argv[2] : "";
  const Device device = argc > 3 ? Device(argv[3]) : default_device();
  const NoGrad no_grad;
  Chat chat(argv[1], argc > 4 && std::string(argv[4]) == "bf16" ? DType::bf16 : DType::f32, device);
  if (!prompt.empty()) {
    chat.answer(prompt);
    return 0;
  }
  for (std::string line; std::cout << "> " << std::flush, std::getline(std::cin, line) && !line.empty();) chat.answer(line);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: llm MODEL.gguf [PROMPT] [DEVICE] [f32|bf16]\n";
    return 2;
  }
  try {
    return talk(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "llm: " << error.what() << "\n";
    return 1;
  }
}
