#!/usr/bin/env python3
"""Writes tests/fixtures/modules.json: the results of PyTorch's modules, with the gradients of sum(out cos(0, 1, 2, ..)).

    build-peers/venv/bin/python tests/nn/write_golden.py

The tests in C++ and in Python make the same modules for the same names of cases.
"""
import json
from pathlib import Path

import torch
from torch import nn

OUT = Path(__file__).resolve().parents[1] / "fixtures/modules.json"


def packed(tensor):
    return {"shape": list(tensor.shape), "data": [float(f"{x:.9g}") for x in tensor.detach().double().reshape(-1).tolist()]}


def case(module, *inputs, call=None, mode=True):
    module = module.double().train(mode)
    inputs = [x.double().requires_grad_() if x.is_floating_point() else x for x in inputs]
    state = {name: packed(x) for name, x in module.state_dict().items()}
    out = (call or (lambda m, *x: m(*x)))(module, *inputs)
    (out * torch.cos(torch.arange(out.numel(), dtype=torch.float64)).reshape(out.shape)).sum().backward()
    return {"training": mode, "state": state, "inputs": [packed(x) for x in inputs], "out": packed(out),
            "input_grads": [packed(x.grad) for x in inputs if x.grad is not None],
            "grads": {name: packed(p.grad) for name, p in module.named_parameters()},
            "buffers": {name: packed(x) for name, x in module.named_buffers()}}


def attention(module, q, k, v):
    padding = torch.zeros(2, 4, dtype=torch.bool)
    padding[1, 3] = True
    out, weights = module(q, k, v, key_padding_mask=padding)
    return torch.cat([out.reshape(-1), weights.reshape(-1)])


def causal(module, x):
    mask = torch.triu(torch.ones(5, 5, dtype=torch.bool), 1)
    return module(x, x, x, attn_mask=mask, need_weights=False)[0]


def states(module, x, *hc):
    out, last = module(x, hc if len(hc) == 2 else hc[0] if hc else None)
    last = torch.cat([each.reshape(-1) for each in last]) if isinstance(last, tuple) else last.reshape(-1)
    return torch.cat([out.reshape(-1), last])


def cases():
    torch.manual_seed(7)
    words = torch.tensor([[0, 2, 4], [4, 1, 0]])
    image, line = torch.randn(2, 4, 6, 5), torch.randn(2, 4, 7)
    sequence = torch.randn(5, 2, 3)
    yield "linear", case(nn.Linear(4, 3), torch.randn(2, 5, 4))
    yield "embedding", case(nn.Embedding(5, 3, padding_idx=-1), words)
    yield "conv1d", case(nn.Conv1d(4, 6, 3, padding=2, dilation=2), line)
    yield "conv2d", case(nn.Conv2d(4, 6, (3, 2), stride=2, padding=1, groups=2, bias=False), image)
    yield "conv_transpose2d", case(nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), image)
    yield "prelu", case(nn.PReLU(4), image)
    yield "layer_norm", case(nn.LayerNorm((6, 5)), image)
    yield "rms_norm", case(nn.RMSNorm(5, eps=1e-5), image)
    yield "group_norm", case(nn.GroupNorm(2, 4), image)
    yield "batch_norm1d", case(nn.BatchNorm1d(4), line)
    yield "batch_norm2d", case(nn.BatchNorm2d(4, momentum=None), image)
    yield "batch_norm2d_eval", case(nn.BatchNorm2d(4), image, mode=False)
    yield "rnn", case(nn.RNN(3, 4, nonlinearity="relu"), sequence, call=states)
    yield "gru", case(nn.GRU(3, 4, num_layers=2, bidirectional=True), sequence, torch.randn(4, 2, 4), call=states)
    yield "lstm", case(nn.LSTM(3, 4, num_layers=2, batch_first=True), torch.randn(2, 5, 3), torch.randn(2, 2, 4),
                       torch.randn(2, 2, 4), call=states)
    yield "lstm_unbatched", case(nn.LSTM(3, 4, bidirectional=True, bias=False), torch.randn(5, 3), call=states)
    yield "multihead_attention", case(nn.MultiheadAttention(6, 2, kdim=5, vdim=3), torch.randn(3, 2, 6),
                                      torch.randn(4, 2, 5), torch.randn(4, 2, 3), call=attention)
    yield "self_attention", case(nn.MultiheadAttention(6, 3, batch_first=True), torch.randn(2, 5, 6), call=causal)
    yield "encoder_layer", case(nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0), torch.randn(5, 2, 6))
    yield "encoder_layer_norm_first", case(
        nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, activation="gelu", batch_first=True, norm_first=True),
        torch.randn(2, 5, 6))


OUT.write_text(json.dumps({"torch": torch.__version__, "cases": dict(cases())}, separators=(",", ":")) + "\n")
