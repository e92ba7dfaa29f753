"""Weights of few bits: their error, layers, whole models, and files of GPTQ and AWQ."""
import plugrad
import pytest
from plugrad import nn, quantization

np = pytest.importorskip("numpy")
from driver import DEVICE  # noqa: E402

pytestmark = pytest.mark.usefixtures("device_under_test")


def random(shape, seed=1):
    return plugrad.Tensor(np.random.default_rng(seed).normal(size=shape).astype("float32"), device=DEVICE)


def decoded(weight, bits):
    return plugrad.dequantize(*weight, bits).numpy()


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("scale_dtype", ["f16", "f32"])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_each_element_is_rounded_to_the_nearest_code(bits, scale_dtype, symmetric):
    w = random((5, 96))
    made = plugrad.quantize(w, bits, 32, symmetric, scale_dtype)
    assert made.codes.shape == (5, 96 * bits // 8) and made.scales.shape == (5, 3, 1 if symmetric else 2)
    assert str(made.codes.dtype) == "u8" and str(made.scales.dtype) == scale_dtype
    steps = np.repeat(made.scales[:, :, 0].numpy().astype("float64"), 32, axis=1)
    rounding = 2**-10 * 4 if scale_dtype == "f16" else 1e-5  # of the scale and the minimum, at the ends of the range
    assert np.all(np.abs(decoded(made, bits) - w.numpy()) <= steps / 2 + rounding)
    again = plugrad.quantize(plugrad.dequantize(*made, bits), bits, 32, symmetric, "f32")
    assert np.allclose(decoded(again, bits), decoded(made, bits), atol=1e-5)


def test_a_constant_group_is_exact():
    for value in (0.0, 0.75):
        made = plugrad.quantize(plugrad.full((2, 32), value, device=DEVICE))
        assert decoded(made, 4).tolist() == [[value] * 32] * 2


def test_arguments_that_do_not_fit_are_named():
    w = random((4, 64))
    with pytest.raises(ValueError, match="bits is 3, expected 2, 4 or 8"):
        plugrad.quantize(w, 3)
    with pytest.raises(ValueError, match=r"weight is \(4, 64\) and group_size 48: expected"):
        plugrad.quantize(w, 4, 48)
    with pytest.raises(ValueError, match="scale_dtype is bf16, expected f16 or f32"):
        plugrad.quantize(w, scale_dtype="bf16")
    codes, scales = plugrad.quantize(w)
    with pytest.raises(ValueError, match=r"x is \(2, 60\) and codes \(4, 32\)"):
        plugrad.quantized_matmul(random((2, 60)), codes, scales)
    with pytest.raises(ValueError, match="groups of a multiple of 16"):
        plugrad.quantized_matmul(random((2, 64)), codes, plugrad.cat([scales, scales, scales, scales], 1))
    with pytest.raises(ValueError, match="scales has dtype bf16, expected f16 or f32"):
        plugrad.quantized_matmul(random((2, 64)), codes, scales.to("bf16"))
    for weight, inputs, outputs, more, words in (
            ((codes, scales), 60, 4, {}, r"codes are \(4, 32\), expected \(n, k bits / 8\) with n 4, k 60"),
            ((codes, scales), -64, 4, {}, r"with n 4, k -64"),
            ((codes, scales[:3]), 64, 4, {}, r"scales are \(3, 2, 2\), expected \(4, groups, 1 or 2\)"),
            ((codes, scales[:, :0]), 64, 4, {}, r"scales are \(4, 0, 2\)"),
            ((codes, scales[0]), 64, 4, {}, r"scales are \(2, 2\)"),
            ((codes, scales), 64, 4, {"bias": plugrad.zeros(3)}, r"bias is \(3,\), expected \(4,\)"),
            ((codes, scales), 64, 4, {"bias": plugrad.zeros(())}, r"bias is \(\), expected \(4,\)"),
            ((codes, scales), 64, 4, {"order": plugrad.zeros(64)}, "order has dtype f32, expected i64")):
        with pytest.raises(ValueError, match=words):
            nn.QuantizedLinear(inputs, outputs, weight, **more)
    with pytest.raises(ValueError, match="group_size is -32, expected a multiple of 16"):
        quantization.quantize_(nn.Sequential(nn.Linear(64, 4)), group_size=-32)


def test_few_rows_and_many_rows_of_x_give_the_same():
    w = plugrad.quantize(random((70, 2080)), 4, 32)
    x = random((40, 2080), 2)
    whole = plugrad.quantized_matmul(x, *w).numpy()
    for count in (1, 3, 8, 16):
        few = plugrad.quantized_matmul(x[:count], *w).numpy()
        assert np.allclose(few, whole[:count], atol=2e-3)
    assert np.allclose(whole, x.numpy() @ decoded(w, 4).T, atol=2e-3)


def small_model():
    plugrad.manual_seed(5)
    return nn.Sequential(nn.Embedding(20, 64), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 7, bias=False)).to(DEVICE)


def test_quantize_replaces_the_layers_that_fit():
    model, tokens = small_model(), plugrad.Tensor([3, 19, 0], dtype="i64", device=DEVICE)
    expected = model(tokens).numpy()
    assert quantization.quantize_(model, bits=8, group_size=32) == ["1"]  # 32 does not divide 48
    assert isinstance(model[1], nn.QuantizedLinear) and isinstance(model[3], nn.Linear)
    assert quantization.quantize_(model, bits=8, group_size=16, embeddings=True) == ["0", "3"]
    assert np.allclose(model(tokens).numpy(), expected, atol=0.02)
    assert "bits=8, group_size=16" in repr(model)
    rows = model[0](tokens)
    assert np.allclose(model[0].as_linear(rows).numpy(), rows.numpy() @ model[0].dequantize().numpy().T, atol=1e-3)
    with pytest.raises(ValueError, match="use nn.QuantizedLinear.from_linear"):
        quantization.quantize_(nn.Linear(32, 4))


class Doubled(nn.Linear):
    def forward(self, x):
        return super().forward(x) * 2


def test_layers_that_codes_cannot_replace_remain():
    model = nn.Sequential(nn.TransformerEncoderLayer(64, 4, 64), Doubled(64, 64), nn.Linear(64, 64)).to(DEVICE).eval()
    model[2].register_forward_hook(lambda module, arguments, result: result)
    x = random((5, 2, 64))
    expected = model(x).numpy()
    assert quantization.quantize_(model, bits=8, group_size=16) == ["0.linear1", "0.linear2"]
    assert not model[0].linear1.training and np.allclose(model(x).numpy(), expected, atol=0.1)


def test_a_filter_and_shared_layers():
    model = nn.Module()
    model.first, model.other = nn.Linear(32, 32), nn.Linear(32, 32)
    model.again = model.first
    assert quantization.quantize_(model, filter=lambda name, layer: name != "other") == ["first", "again"]
    assert model.again is model.first and isinstance(model.other, nn.Linear)


def test_scales_keep_their_dtype_and_states_load():
    model = small_model()
    quantization.quantize_(model)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    assert {"1.codes", "1.scales", "1.bias"} <= set(state)
    model.to("bf16")
    assert str(model[1].scales.dtype) == "f16" and str(model[1].bias.dtype) == "bf16"
    other = small_model()
    quantization.quantize_(other)
    other[1].codes.fill_(0)
    other.load_state_dict(state)
    assert other[1].codes.tolist() == state["1.codes"].tolist()


def test_an_embedding_follows_the_dtype_of_its_model():
    model = small_model()
    quantization.quantize_(model, group_size=16, embeddings=True)
    model.to("bf16")
    assert str(model(plugrad.Tensor([1], dtype="i64", device=DEVICE)).dtype) == "bf16"
    assert str(model[0].scales.dtype) == "f16"


def test_a_tensor_as_a_bias_is_a_parameter():
    weight = plugrad.quantize(random((4, 32)))
    layer = nn.QuantizedLinear(32, 4, weight, random((4,)).detach())
    assert list(layer.state_dict()) == ["codes", "scales", "bias"] and len(list(layer.parameters())) == 1


def test_products_of_bytes_are_exact_under_autocast():
    draw = np.random.default_rng(2)
    a, b = draw.integers(0, 256, (2, 3, 700)), draw.integers(-128, 128, (2, 700, 5))
    with plugrad.autocast():
        got = plugrad.integer_matmul(plugrad.Tensor(a.astype("uint8"), device=DEVICE),
                                     plugrad.Tensor(b.astype("int8"), device=DEVICE))
    assert got.tolist() == (a @ b).tolist()


def test_a_minimum_that_f16_rounds_up_leaves_no_element_out():
    w = plugrad.Tensor(1000 + np.random.default_rng(3).uniform(-0.1, 0.1, (2, 32)).astype("float32"), device=DEVICE)
    made = plugrad.quantize(w, 8)
    assert np.abs(decoded(made, 8) - w.numpy()).max() < 0.01


def test_the_bias_and_the_input_get_gradients():
    layer = nn.QuantizedLinear.from_linear(nn.Linear(32, 5).to(DEVICE))
    x = random((3, 32)).requires_grad_()
    layer(x).sum().backward()
    assert layer.bias.grad.tolist() == [3] * 5
    assert np.allclose(x.grad.numpy(), np.tile(layer.dequantize().numpy().sum(0), (3, 1)), atol=1e-5)


def test_a_model_is_compiled_saved_and_loaded(tmp_path):
    model, tokens = small_model(), plugrad.Tensor([3, 19, 0], dtype="i64", device=DEVICE)
    quantization.quantize_(model, group_size=16, embeddings=True)
    with plugrad.no_grad():
        expected = model(tokens)
        step = plugrad.compile(model)
        step(tokens)
        assert step(tokens).tolist() == expected.tolist()
        step.save(tmp_path / "model.plugrad")
        assert plugrad.load_model(tmp_path / "model.plugrad", DEVICE)(tokens).tolist() == expected.tolist()


# --- Files of other programs.

def packed_words(numbers, bits):
    """Numbers (.., n) as words of i32 (.., n bits / 32), from the low bits on."""
    parts = numbers.reshape(*numbers.shape[:-1], -1, 32 // bits).astype("uint64")
    words = (parts << np.arange(0, 32, bits, dtype="uint64")).sum(-1).astype("uint32")
    return plugrad.Tensor(words.view("int32"))


class Foreign:
    """A weight (n, k) with codes, zeros and scales (groups, n)."""

    def __init__(self, n, k, groups, bits, seed):
        draw = np.random.default_rng(seed)
        self.codes, self.zeros = draw.integers(0, 2**bits, (n, k)), draw.integers(0, 2**bits, (groups, n))
        self.scales = draw.uniform(0.01, 0.1, (groups, n)).astype("float16")
        self.bits, self.groups = bits, np.arange(k) // (k // groups)

    def weight(self):
        return ((self.codes - self.zeros[self.groups].T) * self.scales.astype("float32")[self.groups].T).astype("float32")

    def gptq(self, name, zero_less=1):
        return {f"{name}.qweight": plugrad.Tensor(packed_words(self.codes, self.bits).numpy().T.copy()),
                f"{name}.qzeros": packed_words((self.zeros - zero_less) % 2**self.bits, self.bits),
                f"{name}.scales": plugrad.Tensor(self.scales), f"{name}.g_idx": plugrad.Tensor(self.groups.astype("int32"))}

    def awq(self, name):
        columns = [0, 2, 4, 6, 1, 3, 5, 7]
        def words(numbers):
            return packed_words(numbers.reshape(len(numbers), -1, 8)[:, :, columns].reshape(numbers.shape), 4)
        return {f"{name}.qweight": words(self.codes.T), f"{name}.qzeros": words(self.zeros),
                f"{name}.scales": plugrad.Tensor(self.scales)}


def loaded(load, tensors, foreign, **options):
    model = nn.Sequential(nn.Linear(64, 32), nn.LayerNorm(32)).to(DEVICE)
    bias = random((32,), 8)
    rest = {"0.bias": bias.to("f16"), "1.weight": plugrad.full((32,), 2.0), "1.bias": plugrad.zeros(32)}
    assert load(model, {**tensors, **rest}, **options) == ["0"]
    x = random((3, 64))
    assert np.allclose(model[0](x).numpy(), x.numpy() @ foreign.weight().T + bias.numpy(), atol=2e-3)
    assert model[1].weight.tolist() == [2.0] * 32
    assert {"0.codes", "0.scales", "0.bias"} <= set(model.state_dict()) and str(model[0].bias.dtype) == "f32"


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_gptq_loads(bits):
    foreign = Foreign(32, 64, 4, bits, 3)  # the older format stores zeros less 1, and a zero of 0 as the largest number
    loaded(quantization.load_gptq_, foreign.gptq("0"), foreign)
    loaded(quantization.load_gptq_, foreign.gptq("0", 0), foreign, checkpoint_format="gptq_v2")


def test_gptq_loads_columns_in_another_order():
    foreign = Foreign(32, 64, 4, 4, 4)
    foreign.groups = np.random.default_rng(9).permutation(foreign.groups)
    loaded(quantization.load_gptq_, foreign.gptq("0"), foreign)


def test_awq_loads():
    foreign = Foreign(32, 64, 2, 4, 5)
    loaded(quantization.load_awq_, foreign.awq("0"), foreign)


def test_tensors_that_do_not_fit_the_model_are_named():
    foreign = Foreign(32, 64, 4, 4, 6)
    tensors = foreign.gptq("0")
    model = nn.Sequential(nn.Linear(64, 32, bias=False), nn.LayerNorm(32))
    with pytest.raises(ValueError, match="1.bias is missing in the tensors"):
        quantization.load_gptq_(model, tensors)
    assert isinstance(model[0], nn.Linear)
    with pytest.raises(ValueError, match="'0.qweight', but not bias"):
        quantization.load_gptq_(nn.Sequential(nn.Linear(64, 32)), tensors)
    for part, tensor, words in (
            ("qweight", plugrad.zeros((4, 64), dtype="i32"), r"'0.qweight' is \(4, 64\), expected \(8, 32\)"),
            ("qzeros", tensors["0.qzeros"][:1], r"'0.qzeros' is \(1, 4\), expected \(4, 4\)"),
            ("scales", tensors["0.scales"][:3], r"'0.scales' is \(3, 32\), expected \(groups, n\)"),
            ("g_idx", tensors["0.g_idx"][:5], r"'0.g_idx' is \(5,\), expected \(64,\)")):
        with pytest.raises(ValueError, match=words):
            quantization.load_gptq_(nn.Sequential(nn.Linear(64, 32, bias=False)), {**tensors, f"0.{part}": tensor})
    model = nn.Sequential(nn.Linear(64, 32, bias=False))
    with pytest.raises(ValueError, match="extra is not in the model"):
        quantization.load_gptq_(model, {**tensors, "extra": plugrad.zeros(1)})
    with pytest.raises(ValueError, match="no linear layer for 3.qweight"):
        quantization.load_gptq_(nn.Sequential(nn.Linear(64, 32, bias=False)), {**tensors, "3.qweight": plugrad.zeros(1)})
    del tensors["0.qzeros"]
    with pytest.raises(ValueError, match="'0.qweight', but not qzeros"):
        quantization.load_gptq_(nn.Sequential(nn.Linear(64, 32, bias=False)), tensors)
    three = {**foreign.gptq("0"), "0.qweight": plugrad.zeros((6, 32), dtype="i32")}
    with pytest.raises(NotImplementedError, match="3 bits an element: 2, 4 and 8 can be loaded"):
        quantization.load_gptq_(nn.Sequential(nn.Linear(64, 32, bias=False)), three)
