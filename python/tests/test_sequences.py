"""Sequences: packed sequences in recurrent networks, connectionist temporal classification, transformers."""

import itertools
import math

import pytest

import plugrad
from plugrad import nn
from plugrad.nn import functional as F
from plugrad.nn.utils import rnn


def filled(shape, phase):
    numbers = [math.sin(0.7 * i + phase) for i in range(math.prod(shape))]
    return plugrad.tensor(numbers, dtype="f64").reshape(shape)


def fill(module):
    for k, (_, parameter) in enumerate(sorted(module.named_parameters())):
        with plugrad.no_grad():
            parameter.copy_(filled(parameter.shape, k) * 0.5)
    return module.eval()


# --- Packed sequences.

LENGTHS = [2, 5, 1, 5, 3]


def sequences(dtype="f64", extent=3):
    plugrad.manual_seed(1)
    return [plugrad.randn(length, extent, dtype=dtype) for length in LENGTHS]


def test_packing_and_its_inverse():
    given = sequences()
    packed = rnn.pack_sequence(given, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [5, 4, 3, 2, 2] and packed.data.shape == (16, 3)
    assert packed.sorted_indices.tolist() == [1, 3, 4, 0, 2] and packed.unsorted_indices.tolist() == [3, 0, 4, 1, 2]
    assert packed.data[:5].tolist() == [given[i][0].tolist() for i in (1, 3, 4, 0, 2)]
    assert [each.tolist() for each in rnn.unpack_sequence(packed)] == [each.tolist() for each in given]
    for batch_first in (False, True):
        padded, lengths = rnn.pad_packed_sequence(packed, batch_first, padding_value=7.0, total_length=6)
        assert padded.shape == ((5, 6, 3) if batch_first else (6, 5, 3)) and lengths.tolist() == LENGTHS
        rows = padded if batch_first else padded.transpose(0, 1)
        assert rows[0, 2:].flatten().tolist() == [7.0] * 12 and rows[4, :3].tolist() == given[4].tolist()
        again = rnn.pack_padded_sequence(padded, lengths, batch_first, enforce_sorted=False)
        assert again.data.tolist() == packed.data.tolist()
    data, batch_sizes, *_ = packed
    assert data is packed.data and batch_sizes is packed.batch_sizes
    assert packed.to("f32").data.dtype == packed.float().data.dtype == "f32"
    again = rnn.PackedSequence(packed.data, packed.batch_sizes, packed.sorted_indices)
    assert again.unsorted_indices.tolist() == packed.unsorted_indices.tolist()


@pytest.mark.parametrize("make", [nn.RNN, nn.GRU, nn.LSTM])
@pytest.mark.parametrize("options", [{}, {"bidirectional": True}, {"num_layers": 2, "bidirectional": True},
                                     {"num_layers": 2, "bias": False}])
@pytest.mark.parametrize("with_states", [False, True])
def test_packed_networks_give_what_each_sequence_gives(make, options, with_states):
    given = sequences()
    network = make(3, 4, dtype="f64", **options)
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    first = [filled((count, 5, 4), i) for i in range(2 if make is nn.LSTM else 1)] if with_states else None

    def states(made):
        return made if isinstance(made, tuple) else (made,)
    packed = rnn.pack_sequence([each.requires_grad_() for each in given], enforce_sorted=False)
    output, last = network(packed, None if first is None else tuple(first) if make is nn.LSTM else first[0])
    assert output.sorted_indices is packed.sorted_indices
    loss = (output.data ** 2).sum() + sum((each ** 3).sum() for each in states(last))
    loss.backward()
    found = [each.grad for each in given] + [each.grad for each in network.parameters()]
    for each in (*given, *network.parameters()):
        each.grad = None
    outputs = rnn.unpack_sequence(output)
    whole = 0
    for i, each in enumerate(given):
        own = None if first is None else [state[:, i:i + 1] for state in first]
        alone, ends = network(each.unsqueeze(1), None if own is None else tuple(own) if make is nn.LSTM else own[0])
        assert plugrad.allclose(alone[:, 0], outputs[i], rtol=1e-12)
        for end, packed_end in zip(states(ends), states(last), strict=True):
            assert plugrad.allclose(end[:, 0], packed_end[:, i], rtol=1e-12)
        whole = whole + (alone ** 2).sum() + sum((end ** 3).sum() for end in states(ends))
    whole.backward()
    for wanted, grad in zip((*given, *network.parameters()), found, strict=True):
        assert plugrad.allclose(wanted.grad, grad, rtol=1e-9, atol=1e-12)


def test_packed_networks_have_dropout_between_layers():
    network = nn.LSTM(3, 4, num_layers=2, dropout=0.5)
    packed = rnn.pack_sequence(sequences("f32"), enforce_sorted=False)
    assert network(packed)[0].data.tolist() != network(packed)[0].data.tolist()
    network.eval()
    assert network(packed)[0].data.tolist() == network(packed)[0].data.tolist()


@pytest.mark.parametrize("call, message", [
    (lambda: rnn.pack_sequence(sequences()), "not in descending order: sort the sequences, or pass enforce_sorted=False"),
    (lambda: rnn.pack_padded_sequence(plugrad.zeros(3, 2, 1), [3, 4]), "do not fit 2 sequences of at most 3 steps"),
    (lambda: rnn.pack_padded_sequence(plugrad.zeros(3, 2, 1), [3]), "do not fit"),
    (lambda: rnn.pack_padded_sequence(plugrad.zeros(3, 2, 1), [3, 0]), "at least 1"),
    (lambda: rnn.pad_packed_sequence(rnn.pack_sequence([plugrad.zeros(3, 1)]), total_length=2), "below the largest length"),
    (lambda: nn.GRU(2, 3)(rnn.pack_sequence([plugrad.zeros(3, 1)])), "a last extent of 2"),
    (lambda: nn.GRU(1, 3)(rnn.PackedSequence(plugrad.zeros(3, 1), plugrad.tensor([1, 2]))), "must not increase"),
    (lambda: nn.GRU(1, 3)(rnn.PackedSequence(plugrad.zeros(3, 1), plugrad.tensor([1, 1]))), "2 rows, the sum of"),
    (lambda: nn.GRU(1, 3)(rnn.pack_sequence([plugrad.zeros(3, 1)]), plugrad.zeros(1, 2, 3)), r"expected \(1, 1, 3\)"),
])
def test_sequences_that_do_not_fit_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- Connectionist temporal classification.

def by_enumeration(log_probs, target, blank=0):
    """The sum over all alignments, by collapsing each sequence of classes."""
    steps, classes = log_probs.shape
    total = []
    for path in itertools.product(range(classes), repeat=steps):
        collapsed = [c for i, c in enumerate(path) if i == 0 or c != path[i - 1]]
        if [c for c in collapsed if c != blank] == target:
            total.append(sum(log_probs[t, c] for t, c in enumerate(path)))
    return -plugrad.logsumexp(plugrad.stack(total), 0) if total else plugrad.tensor(math.inf, dtype="f64")


def probabilities(steps, n, classes):
    return filled((steps, n, classes), 0.3).mul(1.5).log_softmax(2)


TARGETS = [[1, 2], [1, 1], [2], [], [2, 1, 2]]


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc_sums_over_all_alignments(blank):
    names = {0: 0, 1: 1, 2: 2} if blank == 0 else {0: 2, 1: 0, 2: 1}
    targets = [[names[c] for c in each] for each in TARGETS]
    lengths, steps = [5, 5, 3, 4, 5], 5
    x = probabilities(steps, 5, 3).requires_grad_()
    padded = plugrad.tensor([each + [-1] * (3 - len(each)) for each in targets])
    loss = F.ctc_loss(x, padded, lengths, [len(each) for each in targets], blank, "none")
    wanted = [by_enumeration(x[:length, i], targets[i], blank) for i, length in enumerate(lengths)]
    assert loss.tolist() == pytest.approx([each.item() for each in wanted], rel=1e-12)
    gradient = plugrad.autograd.grad(loss.sum(), x)[0]
    assert plugrad.allclose(gradient, plugrad.autograd.grad(sum(wanted), x)[0], rtol=1e-10)
    flat = plugrad.tensor([c for each in targets for c in each])
    rows = plugrad.tensor([len(each) for each in targets])
    assert F.ctc_loss(x, flat, plugrad.tensor(lengths), rows, blank, "none").tolist() == loss.tolist()
    assert F.ctc_loss(x, flat, lengths, rows, blank, "sum").item() == pytest.approx(loss.sum().item())
    mean = sum(each / max(1, len(target)) for each, target in zip(loss.tolist(), targets)) / 5
    assert nn.CTCLoss(blank)(x, padded, lengths, rows).item() == pytest.approx(mean)
    alone = F.ctc_loss(x[:, 0], plugrad.tensor(targets[0]), 5, 2, blank, "none")
    assert alone.shape == () and alone.item() == pytest.approx(loss[0].item())


def test_impossible_targets_have_an_infinite_loss_without_a_gradient():
    x = probabilities(2, 2, 3).requires_grad_()
    targets = plugrad.tensor([[1, 1], [1, 2]])  # 1 1 needs three steps
    loss = F.ctc_loss(x, targets, [2, 2], [2, 2], reduction="none")
    assert loss[0].item() == math.inf and loss[1].item() < math.inf
    zero = F.ctc_loss(x, targets, [2, 2], [2, 2], reduction="none", zero_infinity=True)
    assert zero.tolist() == [0, loss[1].item()]
    for each in (loss, zero):
        gradient = plugrad.autograd.grad(each.sum(), x)[0]
        assert gradient[:, 0].tolist() == [[0] * 3] * 2 and gradient[:, 1].abs().sum().item() > 0


def test_inputs_without_steps_match_empty_targets_only():
    x = probabilities(4, 3, 3).requires_grad_()
    loss = F.ctc_loss(x, plugrad.tensor([[1], [2], [1]]), [0, 0, 4], [0, 1, 1], reduction="none")
    assert loss[0].item() == 0 and loss[1].item() == math.inf and math.isfinite(loss[2].item())
    gradient = plugrad.autograd.grad(loss[2] + loss[0], x)[0]
    assert gradient[:, :2].abs().sum().item() == 0 and gradient[:, 2].abs().sum().item() > 0


def test_ctc_is_part_of_compiled_steps():
    x, targets = probabilities(6, 2, 3).to("f32"), plugrad.tensor([[1, 2], [2, 0]])

    def step(x, targets, inputs, outputs):
        x = x.detach().requires_grad_()
        loss = F.ctc_loss(x, targets, inputs, outputs)
        loss.backward()
        return loss, x.grad
    compiled = plugrad.compile(step)
    for inputs, outputs in (([6, 5], [2, 1]), ([4, 6], [1, 1]), ([6, 6], [2, 1])):
        given = x, targets, plugrad.tensor(inputs), plugrad.tensor(outputs)
        assert [each.tolist() for each in compiled(*given)] == [each.tolist() for each in step(*given)]
    assert compiled.figures().recorded == 1


@pytest.mark.parametrize("arguments, message", [
    ((plugrad.zeros(2, 3), plugrad.zeros(2, 2, dtype="i64"), [2, 2], [1, 1]), "targets must be i64 of shape"),
    ((plugrad.zeros(2, 2, 3), plugrad.tensor([1, 1]), [2, 2], [1, 2]), "targets has 2 elements, .* the sum 3"),
    ((plugrad.zeros(2, 2, 3), plugrad.tensor([[1], [1]]), [2], [1, 1]), r"input_lengths and target_lengths must be i64"),
    ((plugrad.zeros(2, 1, 3), plugrad.tensor([[1]]), [2], [1], 3), "blank is 3: expected a class from 0 to 2"),
    ((plugrad.zeros(2, 1, 3, dtype="i64"), plugrad.tensor([[1]]), [2], [1]), "log_probs must be floating"),
    ((plugrad.zeros(2, 1, 3), plugrad.tensor([[1]]), [3], [1]), r"input_lengths are \[3\]: expected 0 to 2"),
    ((plugrad.zeros(2, 1, 3), plugrad.tensor([[1]]), [2], [-1]), r"target_lengths are \[-1\]: expected 0 to 1"),
])
def test_ctc_names_what_does_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        F.ctc_loss(*arguments)


# --- Transformers: numbers of PyTorch 2.15 with the same parameters.

@pytest.mark.parametrize("norm_first, wanted", [
    (False, [-0.00344394, -0.42026292, 0.00378568, -0.42025806, 0.01537287, -0.4202476]),
    (True, [-0.15899727, -0.41985375, -0.26779933, -0.41978479, -0.32729403, -0.41975508])])
def test_a_transformers_decoder_computes_what_pytorchs_does(norm_first, wanted):
    layer = nn.TransformerDecoderLayer(4, 2, 6, dropout=0.0, activation="gelu", norm_first=norm_first, dtype="f64")
    decoder = fill(nn.TransformerDecoder(layer, 2, nn.LayerNorm(4, dtype="f64")))
    mask = nn.Transformer.generate_square_subsequent_mask(3, dtype="f64")
    padding = plugrad.tensor([[False] * 5, [False, False, False, True, True]])
    made = decoder(filled((3, 2, 4), 1.0), filled((5, 2, 4), 2.0), tgt_mask=mask, memory_key_padding_mask=padding)
    assert made[:, 1, :2].flatten().tolist() == pytest.approx(wanted, abs=1e-7)
    names = list(nn.TransformerDecoderLayer(4, 2, 6).state_dict())
    attentions = [f"{part}.{name}" for part in ("self_attn", "multihead_attn")
                  for name in ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")]
    assert names == attentions + [f"{part}.{kind}" for part in ("linear1", "linear2", "norm1", "norm2", "norm3")
                                  for kind in ("weight", "bias")]


def test_a_transformer_computes_what_pytorchs_does():
    model = fill(nn.Transformer(4, 2, 1, 1, 6, dropout=0.0, batch_first=True, dtype="f64"))
    mask = model.generate_square_subsequent_mask(3, dtype="f64")
    made = model(filled((2, 5, 4), 2.0), filled((2, 3, 4), 1.0), tgt_mask=mask)
    wanted = [-0.12314212, 1.09153655, -0.07212969, 1.07030919, -0.14822042, 1.09710593]
    assert made[1, :, 1:3].flatten().tolist() == pytest.approx(wanted, abs=1e-7)
    made.sum().backward()
    assert all(each.grad is not None for each in model.parameters())
    with pytest.raises(ValueError, match=r"\[TransformerDecoderLayer\] activation 'silu' is unknown"):
        nn.TransformerDecoderLayer(4, 2, activation="silu")
