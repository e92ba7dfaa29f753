"""Damages a file of torch.save and reads it: archive_fuzz.py FILE SECONDS SEED

Changes bytes of the file or of its pickle, and inserts parts of the pickle at other places. A load may return, or raise
OSError, ValueError, TypeError or MemoryError, within ten seconds. Prints each load that does not, and the path of its file;
the status is then 1.
"""
import io
import random
import resource
import sys
import tempfile
import time
import zipfile

import plugrad

MEMORY = 3 << 30
PATIENCE = 10  # seconds
ALLOWED = (OSError, ValueError, TypeError, MemoryError)
BYTES = [0, 0x80, 0xFF]


def damaged(data, draw, odd):
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 4, 16])):
        changed[draw.randrange(len(changed))] = draw.choice([*BYTES, draw.randrange(256)])
    if odd:
        at, source = draw.randrange(len(changed)), draw.randrange(len(changed))
        changed[at:at] = changed[source:source + draw.randrange(40)]
    return bytes(changed)


def repacked(entries, draw):
    """Returns the archive, intact, with a damaged pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, damaged(data, draw, draw.random() < 0.3) if name.endswith("data.pkl") else data)
    return file.getvalue()


def main(path, seconds, seed):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with open(path, "rb") as file:
        whole = file.read()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        entries = {each.filename: archive.read(each) for each in archive.infolist()}
    draw, end, outcomes, wrong = random.Random(seed), time.monotonic() + seconds, {}, 0
    while time.monotonic() < end:
        data = repacked(entries, draw) if draw.random() < 0.5 else damaged(whole, draw, False)
        begin = time.monotonic()
        try:
            plugrad.load(io.BytesIO(data[:draw.randrange(len(data))] if draw.random() < 0.05 else data))
            outcome = "loaded"
        except BaseException as error:  # noqa: BLE001
            outcome = type(error).__name__
            if not isinstance(error, ALLOWED):
                outcome = f"wrong: {outcome}: {error}"
        if time.monotonic() - begin > PATIENCE:
            outcome = f"wrong: {time.monotonic() - begin:.0f} s, {outcome}"
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if outcome.startswith("wrong"):
            wrong += 1
            with tempfile.NamedTemporaryFile(suffix=".pt", delete=False) as kept:
                kept.write(data)
            print(f"{outcome}\n  {kept.name}")
    print(f"{sum(outcomes.values())} files, {wrong} went wrong: {outcomes}")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3])))
