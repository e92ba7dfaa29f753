"""An LSTM that classifies sequences of different lengths, with padding, packing, and a plateau's schedule."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Parity(Dataset):
    """Sequences of tokens 1 and 2. The label of a sequence is its last token; the tagger has a label for each token."""

    def __init__(self, n):
        self.rows = []
        for _ in range(n):
            length = torch.randint(3, 9, (1,)).item()
            tokens = torch.randint(1, 3, (length,))
            self.rows.append((tokens, tokens[-1] - 1))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(batch):
    tokens, labels = zip(*batch)
    lengths = torch.tensor([len(t) for t in tokens])
    padded = pad_sequence(tokens, batch_first=True, padding_value=0)
    tags = pad_sequence([t - 1 for t in tokens], batch_first=True, padding_value=-100)
    return padded, lengths, torch.stack(labels), tags


class Tagger(nn.Module):
    def __init__(self, vocabulary=3, width=16):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True, bidirectional=False, dropout=0.1)
        self.classify = nn.Linear(width, 2)
        self.tag = nn.Linear(width, 2)

    def forward(self, tokens, lengths):
        out, (h, c) = self.lstm(self.embedding(tokens))
        assert h.shape == (2, tokens.size(0), 16) and c.shape == h.shape
        last = out[torch.arange(tokens.size(0)), lengths - 1]
        return self.classify(last), self.tag(out)


torch.manual_seed(3)
loader = DataLoader(Parity(256), batch_size=32, shuffle=True, collate_fn=collate, generator=torch.Generator().manual_seed(5))
model = Tagger()
assert "LSTM(16, 16, num_layers=2, batch_first=True, dropout=0.1)" in str(model), model
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=0)
for epoch in range(6):
    total = 0.0
    for tokens, lengths, labels, tags in loader:
        optimizer.zero_grad()
        scores, tagged = model(tokens, lengths)
        loss = F.cross_entropy(input=scores, target=labels)
        loss = loss + F.cross_entropy(tagged.transpose(1, 2), tags)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        total += loss.detach()
    scheduler.step(total / len(loader))
print(f"loss {total / len(loader):.4f}, lr {optimizer.param_groups[0]['lr']}")
assert total / len(loader) < 0.2
assert not model.embedding.weight.grad[0].any()
state = scheduler.state_dict()
scheduler.load_state_dict(state)
with torch.no_grad():
    tokens, lengths, labels, _ = next(iter(loader))
    model.eval()
    scores, _ = model(tokens, lengths)
    print((scores.argmax(dim=-1) == labels).float().mean().item())
