"""Loaders of batches: their order, the collation of samples, and workers."""
import collections
import json
import threading
from types import MappingProxyType

import plugrad
import pytest
from plugrad import Tensor, data
from plugrad.data import DataLoader, Subset, TensorDataset, default_collate, default_convert, random_split

WORKERS = [0, 1, 3]
Point = collections.namedtuple("Point", "x y")


def shown(x):
    """Returns a structure with (dtype, numbers) in place of tensors."""
    if isinstance(x, Tensor):
        return str(x.dtype), x.tolist()
    if isinstance(x, collections.abc.Mapping):
        return {key: shown(value) for key, value in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(shown, x))
    return [shown(part) for part in x] if isinstance(x, list) else x


# The results of PyTorch 2.15's default_collate, with plugrad's names of dtypes.
COLLATED = [
    ([1, 2], ("i64", [1, 2])),
    ([1.5, 2], ("f64", [1.5, 2])),
    ([True, False], ("bool", [True, False])),
    (["a", "bc"], ["a", "bc"]),
    ([b"a", b"b"], [b"a", b"b"]),
    ([(1, 2.0), (3, 4.0)], [("i64", [1, 3]), ("f64", [2, 4])]),
    ([[1, "a"], [2, "b"]], [("i64", [1, 2]), ("a", "b")]),
    ([{"a": 1, "b": [1.0, 2.0]}, {"a": 2, "b": [3.0, 4.0]}],
     {"a": ("i64", [1, 2]), "b": [("f64", [1, 3]), ("f64", [2, 4])]}),
    ([Point(1, (2, 3)), Point(4, (5, 6))], Point(("i64", [1, 4]), [("i64", [2, 5]), ("i64", [3, 6])])),
    ([range(2), range(2)], [("i64", [0, 0]), ("i64", [1, 1])]),
    ([(), ()], []),
    ([collections.OrderedDict(a=1), {"a": 2}], {"a": ("i64", [1, 2])}),
    ([MappingProxyType({"a": 1})] * 2, {"a": ("i64", [1, 1])}),
]


@pytest.mark.parametrize("samples, expected", COLLATED, ids=lambda x: str(x)[:30])
def test_collates_as_pytorch(samples, expected):
    assert shown(default_collate(samples)) == expected


def test_collated_structures_keep_their_types():
    for sample in (collections.OrderedDict(a=1), collections.defaultdict(int, a=1), MappingProxyType({"a": 1}), Point(1, 2),
                   collections.UserList([1, 2])):
        assert type(default_collate([sample, sample])) is type(sample)
        assert type(default_convert(sample)) is type(sample)
    assert default_collate([collections.defaultdict(int, a=1)]).default_factory is int


def test_collates_tensors_with_their_gradients():
    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    batch = default_collate([x, y])
    assert batch.tolist() == [[1, 2], [3, 4]]
    (batch * batch).sum().backward()
    assert x.grad.tolist() == [2, 4]
    assert not default_collate([1.5]).requires_grad


def test_collates_arrays():
    numpy = pytest.importorskip("numpy", reason="NumPy is not installed")
    rows = [numpy.arange(2, dtype="float32"), numpy.array(3), numpy.float32(1), numpy.bool_(True), numpy.arange(3)[::-1]]
    expected = [("f32", [[0, 1]] * 2), ("i64", [3, 3]), ("f32", [1, 1]), ("bool", [True] * 2), ("i64", [[2, 1, 0]] * 2)]
    assert [shown(default_collate([row, row])) for row in rows] == expected
    converted = default_convert({"a": rows[0], "b": ("text", rows[1], None)})
    assert shown(converted) == {"a": ("f32", [0, 1]), "b": ["text", ("i64", 3), None]}
    with pytest.raises(TypeError, match="<U1"):
        default_collate([numpy.array(["a"])])


@pytest.mark.parametrize("samples, error, text", [([None], TypeError, "NoneType"), ([{1}, {2}], TypeError, "set"),
                                                  ([(1,), (1, 2)], RuntimeError, r"\[1, 2\] parts"),
                                                  ([{"a": 1}, {}], KeyError, "a")])
def test_refuses_what_makes_no_batch(samples, error, text):
    with pytest.raises(error, match=text):
        default_collate(samples)


class Squares:
    """Sample i is {"number": i, "square": i^2}. `loaded` lists the indices of all loaded samples."""

    def __init__(self, count=10):
        self.count, self.loaded, self.lock = count, [], threading.Lock()

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        with self.lock:
            self.loaded.append(i)
        return {"number": i, "square": float(i * i)}


def numbers(loader):
    return [batch["number"].tolist() for batch in loader]


@pytest.mark.parametrize("workers", WORKERS)
def test_groups_samples_in_their_order(workers):
    loader = DataLoader(Squares(5), batch_size=2, num_workers=workers)
    assert [shown(batch) for batch in loader][1] == {"number": ("i64", [2, 3]), "square": ("f64", [4, 9])}
    assert numbers(loader) == [[0, 1], [2, 3], [4]] and len(loader) == 3
    assert numbers(DataLoader(Squares(5), 2, drop_last=True, num_workers=workers)) == [[0, 1], [2, 3]]
    assert numbers(DataLoader(Squares(0), 2, num_workers=workers)) == []
    for count, kept, every in ((5, 2, 3), (4, 2, 2), (1, 0, 1), (0, 0, 0)):
        assert len(DataLoader(Squares(count), 2, drop_last=True)) == kept and len(DataLoader(Squares(count), 2)) == every


@pytest.mark.parametrize("workers", WORKERS)
def test_orders_are_those_of_cpp(root, workers):
    """The tests in C++ read the same file."""
    for row in json.loads((root / "tests/fixtures/training.json").read_text())["orders"]:
        loader = DataLoader(Squares(row["count"]), row["batch_size"], shuffle=True, seed=row["seed"], num_workers=workers)
        loader.epoch = row["epoch"]
        assert numbers(loader) == row["batches"]


def test_each_loop_is_the_next_epoch():
    loader = DataLoader(Squares(), 10, shuffle=True, seed=4)
    first, second = numbers(loader), numbers(loader)
    assert first != second and sorted(first[0]) == sorted(second[0]) and loader.epoch == 2
    loader.set_epoch(0)
    one, two = iter(loader), iter(loader)  # both loops at the same time
    assert numbers(two) == second and numbers(one) == first
    with pytest.raises(ValueError, match="epoch -1"):
        loader.epoch = -1


@pytest.mark.parametrize("workers", WORKERS)
def test_rows_of_tensors(workers):
    x, y = Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), plugrad.tensor([7, 8, 9])
    rows = TensorDataset(x, y)
    assert shown(list(rows[1])) == [("f32", [3, 4]), ("i64", 8)] and len(rows) == 3
    loader = DataLoader(rows, 2, num_workers=workers)
    assert [shown(batch) for batch in loader] == [[("f32", [[1, 2], [3, 4]]), ("i64", [7, 8])],
                                                  [("f32", [[5, 6]]), ("i64", [9])]]
    x.grad = None
    next(iter(loader))[0].sum().backward()
    assert x.grad.tolist() == [[1, 1], [1, 1], [0, 0]]
    with plugrad.no_grad():
        assert not next(iter(loader))[0].requires_grad  # even if a worker loads the batch
    for wrong in ((), (plugrad.ones(()),), (x, y[:2])):
        with pytest.raises(ValueError, match="TensorDataset"):
            TensorDataset(*wrong)


def test_parts_of_a_data_set():
    rows = TensorDataset(plugrad.arange(10))
    part = Subset(rows, [3, 5, 8])
    assert part[1][0].item() == 5 and [batch[0].tolist() for batch in DataLoader(part, 2)] == [[3, 5], [8]]
    assert [batch[0].tolist() for batch in DataLoader(Subset(part, [2, 0]), 2)] == [[8, 3]]

    class Doubled(TensorDataset):
        def __getitem__(self, index):
            return tuple(2 * x for x in super().__getitem__(index))
    assert next(iter(DataLoader(Doubled(plugrad.arange(3)), 3)))[0].tolist() == [0, 2, 4]
    for lengths, counts in (([7, 3], [7, 3]), ([0.75, 0.25], [8, 2]), ([1.0], [10]), ([10, 0], [10, 0])):
        parts = random_split(rows, lengths, seed=1)
        assert [len(each) for each in parts] == counts
        assert sorted(i for each in parts for i in each.indices) == list(range(10))
    assert random_split(rows, [10], seed=1)[0].indices == random_split(rows, [10], seed=1)[0].indices
    assert random_split(rows, [10], seed=1)[0].indices != random_split(rows, [10], seed=2)[0].indices
    for lengths in ([7, 2], [0.5, 0.4], [11, -1]):
        with pytest.raises(ValueError, match="random_split"):
            random_split(rows, lengths)


def test_joined_data_sets():
    joined = TensorDataset(plugrad.arange(3)) + TensorDataset(plugrad.arange(0)) + [(7,), (8,)]
    assert len(joined) == 5 and [int(joined[i][0]) for i in (0, 2, 3, -1, -5)] == [0, 2, 7, 8, 0]
    for out in (5, -6):
        with pytest.raises(IndexError, match=f"sample {out} is out of range for 5"):
            joined[out]
    with pytest.raises(ValueError, match="no data sets"):
        data.ConcatDataset([])


def test_samplers():
    squares = Squares(6)
    ordered = data.SequentialSampler(squares)
    assert list(ordered) == list(range(6)) and len(ordered) == 6
    shuffled, again = data.RandomSampler(squares, seed=3), data.RandomSampler(squares, num_samples=2, seed=3)
    orders = [list(shuffled) for _ in range(3)]
    assert [list(again) for _ in range(3)] == [order[:2] for order in orders] and len(again) == 2
    assert all(sorted(order) == list(range(6)) for order in orders) and orders[0] != orders[1]
    loader = DataLoader(squares, 6, shuffle=True, seed=3)
    assert orders == [batch for _ in range(3) for batch in numbers(loader)]
    plugrad.manual_seed(1)
    drawn = list(data.RandomSampler(squares, replacement=True, num_samples=1000))
    assert set(drawn) == set(range(6)) and len(drawn) == 1000
    weighted = data.WeightedRandomSampler([0.0, 3.0, 1.0], 4000)
    counts = collections.Counter(weighted)
    assert set(counts) == {1, 2} and len(weighted) == 4000 and abs(counts[1] - 3000) < 150
    assert sorted(data.WeightedRandomSampler(plugrad.tensor([1.0, 2.0, 0.0]), 2, replacement=False)) == [0, 1]
    grouped = data.BatchSampler(ordered, 4)
    assert list(grouped) == list(grouped) == [[0, 1, 2, 3], [4, 5]] and len(grouped) == 2
    assert list(data.BatchSampler(ordered, 4, drop_last=True)) == [[0, 1, 2, 3]]
    assert numbers(DataLoader(squares, batch_sampler=data.BatchSampler(range(5, 0, -1), 2))) == [[5, 4], [3, 2], [1]]
    for wrong in (lambda: data.RandomSampler(squares, num_samples=7), lambda: data.RandomSampler(squares, num_samples=0),
                  lambda: data.WeightedRandomSampler([1.0], 0), lambda: data.BatchSampler(ordered, 0)):
        with pytest.raises(ValueError, match="Sampler"):
            wrong()


@pytest.mark.parametrize("workers", WORKERS)
def test_iterables_are_read_in_their_order(workers):
    def lines():
        for i in range(5):
            yield {"number": i, "text": str(i)}
    assert numbers(DataLoader(lines(), 2, num_workers=workers)) == [[0, 1], [2, 3], [4]]
    assert numbers(DataLoader(lines(), 2, drop_last=True, num_workers=workers)) == [[0, 1], [2, 3]]
    assert [each["text"] for each in DataLoader(lines(), None, num_workers=workers)] == ["0", "1", "2", "3", "4"]
    with pytest.raises(TypeError):
        len(DataLoader(lines()))
    for more in ({"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}, {"worker": "process"}):
        with pytest.raises(ValueError, match="an iterable has its own order"):
            DataLoader(lines(), **more)


@pytest.mark.parametrize("workers", WORKERS)
def test_samplers_and_single_samples(workers):
    assert numbers(DataLoader(Squares(), 2, sampler=[5, 5, 1], num_workers=workers)) == [[5, 5], [1]]
    assert len(DataLoader(Squares(), 2, sampler=[5, 5, 1])) == 2
    grouped = DataLoader(Squares(), batch_sampler=[[1], [2, 3]], num_workers=workers)
    assert numbers(grouped) == numbers(grouped) == [[1], [2, 3]] and len(grouped) == 2
    single = DataLoader(Squares(3), batch_size=None, num_workers=workers)
    assert [each["number"] for each in single] == [0, 1, 2] and len(single) == 3
    joined = DataLoader(Squares(3), 2, collate_fn=lambda samples: [each["number"] for each in samples], num_workers=workers)
    assert list(joined) == [[0, 1], [2]]


def test_samples_of_a_batch_in_one_call():
    class Together(Squares):
        def __getitems__(self, indices):
            return [{"number": 10 * i} for i in indices]
    assert numbers(DataLoader(Together(3), 2)) == [[0, 10], [20]]
    assert [each["number"] for each in DataLoader(Together(3), None)] == [0, 1, 2]


class Damaged(Squares):
    def __getitem__(self, i):
        if i == 7:
            raise LookupError("no seven")
        return super().__getitem__(i)


@pytest.mark.parametrize("workers", WORKERS)
def test_errors_name_the_sample(workers):
    batches = iter(DataLoader(Damaged(), 2, num_workers=workers))
    assert numbers(next(batches) for _ in range(3)) == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(LookupError, match="no seven") as caught:
        next(batches)
    assert caught.value.__notes__ == ["[DataLoader] this happened while sample 7 was loaded"]


@pytest.mark.parametrize("workers, factor", [(1, 1), (2, 3), (4, 2)])
def test_workers_are_ahead_by_no_more_than_asked(workers, factor):
    squares, seen = Squares(100), threading.active_count()
    for taken, _ in enumerate(DataLoader(squares, num_workers=workers, prefetch_factor=factor), 1):
        while len(squares.loaded) < min(taken + workers * factor, 100):
            threading.Event().wait(0.001)
        assert len(squares.loaded) <= taken + workers * factor
        if taken == 20:
            break
    assert len(squares.loaded) < 100
    assert threading.active_count() == seen  # the threads ended with the loop


def test_interrupted_loops_end_their_threads():
    seen = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        for _ in DataLoader(Squares(100), num_workers=2):
            raise KeyboardInterrupt
    assert threading.active_count() == seen


PROCESSES = """
import os
import plugrad
from plugrad.data import DataLoader

class Samples:
    def __len__(self):
        return 7
    def __getitem__(self, i):
        if i == 6:
            raise LookupError("no six")
        return plugrad.full((2,), i), os.getpid()

class Fatal(Samples):
    def __getitem__(self, i):
        os._exit(3)

def show(batches):
    try:
        for x, pids in batches:
            print(x[:, 1].tolist(), os.getpid() in pids.tolist())
    except (LookupError, RuntimeError) as error:
        print(error, getattr(error, "__notes__", ""))

if __name__ == "__main__":
    loader = DataLoader(Samples(), 2, num_workers=2, worker="process")
    show(loader)
    show(loader)  # by the same processes
    show(DataLoader(Fatal(), num_workers=1, worker="process"))
"""


def test_worker_processes(run_python, tmp_path):
    (tmp_path / "program.py").write_text(PROCESSES)
    out = run_python("import runpy; runpy.run_path('program.py', run_name='__main__')").stdout.splitlines()
    assert out[:3] == ["[0, 1] False", "[2, 3] False", "[4, 5] False"] and out[4:7] == out[:3]
    assert "no six ['[DataLoader] this happened while sample 6 was loaded']" == out[3] == out[7]
    assert len(out) == 9 and "a worker process ended" in out[8] and "__main__" in out[8]


@pytest.mark.parametrize("more, error, text", [
    ({"batch_size": 0}, ValueError, "batch_size 0"), ({"num_workers": -1}, ValueError, "num_workers -1"),
    ({"prefetch_factor": 0}, ValueError, "prefetch_factor 0"), ({"worker": "fork"}, ValueError, "'fork'"),
    ({"sampler": [0], "shuffle": True}, ValueError, "sampler and shuffle"),
    ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, "batch_sampler"),
    ({"batch_sampler": [[0]], "drop_last": True}, ValueError, "batch_sampler"),
    ({"batch_size": None, "drop_last": True}, ValueError, "drop_last"), ({"dataset": 3}, TypeError, "a int has no samples")])
def test_refuses_options_that_do_not_fit(more, error, text):
    with pytest.raises(error, match=text):
        DataLoader(**({"dataset": Squares()} | more))


def test_data_sets_need_their_methods():
    class Nothing(data.Dataset):
        pass
    with pytest.raises(NotImplementedError, match="Nothing.*__len__"):
        len(Nothing())
    with pytest.raises(NotImplementedError, match="Nothing.*__getitem__"):
        Nothing()[0]

    class Endless(data.IterableDataset):
        pass
    with pytest.raises(NotImplementedError, match="Endless.*__iter__"):
        next(iter(DataLoader(Endless())))
    assert list(DataLoader(Squares(2), pin_memory=True, persistent_workers=True, shuffle=None))[0]["number"].tolist() == [0]
