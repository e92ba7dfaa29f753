"""Memory shared with NumPy, and the protocols for sharing it."""
import gc
import threading
import weakref

import plugrad
import pytest
from plugrad import Tensor

numpy = pytest.importorskip("numpy")


def address(array):
    return array.__array_interface__["data"][0]


DTYPES = [("f32", "float32"), ("f64", "float64"), ("i64", "int64"), ("bool", "bool")]


@pytest.mark.parametrize("ours, theirs", DTYPES)
def test_round_trips_share_memory(ours, theirs):
    a = numpy.array([[0, 1, 2], [3, 4, 5]]).astype(theirs)
    t = plugrad.from_dlpack(a)
    assert t.data_ptr() == address(a) and t.dtype == ours and t.tolist() == a.tolist() and not t.requires_grad
    for back in (numpy.from_dlpack(t), numpy.asarray(t), t.numpy(), numpy.asarray(memoryview(t))):
        assert address(back) == address(a) and back.dtype == a.dtype and back.tolist() == a.tolist()
    a[0, 0] = 1
    assert t[0, 0].item() == 1
    t[1, 2] = 0
    assert a[1, 2] == 0


@pytest.mark.parametrize("view",
    [lambda a: a.T, lambda a: a[::-1], lambda a: a[:, ::-2], lambda a: a[1:, 1:], lambda a: a[0, 1:2], lambda a: a[:0],
                                  lambda a: numpy.broadcast_to(a[0], (3, 4))[:, 1:]])
def test_views_share_memory_too(view):
    a = numpy.arange(8.0).reshape(2, 4)
    b = view(a)
    t = plugrad.from_dlpack(b) if b.flags.writeable else plugrad.from_dlpack(b.copy())
    assert t.tolist() == b.tolist() and t.shape == b.shape
    u = plugrad.tensor(a)
    if b.flags.writeable:
        assert numpy.from_dlpack(u.T).tolist() == a.T.tolist()
        assert numpy.asarray(u[::-1, 1:]).tolist() == a[::-1, 1:].tolist()
        assert t.data_ptr() == address(b) or not t.size
    assert (t + 1).tolist() == (b + 1).tolist()


def test_the_owner_is_kept_alive_and_let_go():
    class Owner(numpy.ndarray):
        pass
    a = numpy.arange(4.0).view(Owner)
    gone = weakref.ref(a)
    t = plugrad.from_dlpack(a)
    del a
    gc.collect()
    assert gone() is not None and t.tolist() == [0, 1, 2, 3]
    view = t[1:]
    del t
    assert gone() is not None
    del view
    gc.collect()
    assert gone() is None


def test_an_export_keeps_the_tensor_alive():
    t = plugrad.arange(1000)
    a = numpy.from_dlpack(t)
    del t
    gc.collect()
    plugrad.zeros((1000,))
    assert a[999] == 999


def test_an_owner_may_be_let_go_by_another_thread():
    a = numpy.ones(4)
    gone = weakref.ref(a)
    held = [plugrad.from_dlpack(a)]
    del a
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    for _ in range(100):
        pass
    gc.collect()
    assert gone() is None


def test_an_owner_let_go_without_the_lock_is_given_back(run_python):
    """backward() frees a graph while it does not hold the GIL."""
    run_python("""
import gc, weakref, numpy, plugrad
refs = []
for _ in range(50):
    a = numpy.ones(20000, dtype=numpy.float32)
    refs.append(weakref.ref(a))
    w = plugrad.ones((20000,)).requires_grad_()
    y = (w * plugrad.from_dlpack(a)).sum()
    del a
    y.backward()  # drops what was saved
del y
sum(range(10000)); gc.collect(); plugrad.from_dlpack(numpy.ones(1))
assert not any(r() is not None for r in refs), sum(r() is not None for r in refs)""")


def test_read_only_arrays_are_copied():
    a = numpy.arange(3.0)
    a.flags.writeable = False
    try:
        t = plugrad.from_dlpack(a)
    except BufferError:  # NumPy before 2.1 refuses
        pytest.skip("this NumPy exports no read-only arrays")
    assert t.data_ptr() != address(a) and t.tolist() == [0, 1, 2]


def test_what_wants_gradients_is_read_only_for_others():
    t = Tensor([1.0, 2.0])
    a = numpy.asarray(t)
    assert address(a) == t.data_ptr() and not a.flags.writeable
    with pytest.raises(ValueError):
        a[0] = 5
    assert numpy.asarray(t.detach()).flags.writeable and not numpy.from_dlpack(t).flags.writeable
    (t * 2).sum().backward()
    assert t.requires_grad and t.grad.tolist() == [2, 2]


def test_numpy_functions_take_tensors():
    assert numpy.median(plugrad.tensor([1.0, 2.0, 4.0])) == 2
    assert numpy.concatenate([plugrad.ones((2,)), plugrad.zeros((1,))]).tolist() == [1, 1, 0]
    assert numpy.array(plugrad.ones((2,)), dtype="float64").dtype == "float64"
    t = plugrad.ones((2,))
    copied = numpy.array(t)
    copied[0] = 5
    assert t.tolist() == [1, 1] and numpy.asarray(t, dtype="f8").dtype == "float64"


@pytest.mark.parametrize("dtype, ours",
                         [("float32", "f32"), ("float64", "f64"), ("float16", "f16"), ("int8", "i8"), ("uint8", "u8"),
                          ("int16", "i16"), ("uint16", "i64"), ("int32", "i32"), ("uint32", "i64"), ("int64", "i64"),
                          ("bool", "bool")])
def test_arrays_are_copied_by_tensor(dtype, ours):
    a = numpy.array([[0, 1], [1, 0]], dtype=dtype)[:, ::-1]
    t = Tensor(a)
    assert t.dtype == ours and t.tolist() == a.tolist() and not t.requires_grad and t.is_contiguous()
    assert Tensor(a, dtype="f64").dtype == "f64" and Tensor(a, shape=(4,)).shape == (4,)
    assert Tensor(a, device="reference").tolist() == a.tolist()
    assert Tensor([numpy.float32(1), numpy.int64(2)]).tolist() == [1, 2] and Tensor(numpy.float64(3)).item() == 3


def test_dtypes_that_cannot_be_shared():
    with pytest.raises(ValueError, match="one of f32, f64, f16, bf16, i32, i64, u8, i8, i16, bool, c64, c128"):
        plugrad.from_dlpack(numpy.zeros(2, dtype="uint16"))
    with pytest.raises(ValueError):
        Tensor(numpy.zeros(2, dtype="clongdouble"))


def test_too_many_axes():
    with pytest.raises(ValueError, match="8"):
        plugrad.from_dlpack(numpy.zeros((1,) * 9))


def test_capsules_old_and_versioned():
    t = plugrad.arange(3)
    assert t.__dlpack_device__() == (1, 0)
    old, new = t.__dlpack__(), t.__dlpack__(max_version=(1, 0))
    assert '"dltensor"' in repr(old) and '"dltensor_versioned"' in repr(new)
    assert '"dltensor"' in repr(t.__dlpack__(max_version=(0, 8)))
    for capsule in (old, new):
        again = plugrad.from_dlpack(capsule)
        assert again.data_ptr() == t.data_ptr() and "used_" in repr(capsule)
        with pytest.raises(ValueError, match="took it already"):
            plugrad.from_dlpack(capsule)
    copy = plugrad.from_dlpack(t.__dlpack__(max_version=(1, 0), copy=True))
    assert copy.data_ptr() != t.data_ptr() and copy.tolist() == [0, 1, 2]


def test_an_exporter_from_before_versions():
    class Old:
        def __init__(self, t):
            self.t = t

        def __dlpack__(self, stream=None):
            return self.t.__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)
    t = plugrad.arange(3)
    assert plugrad.from_dlpack(Old(t)).data_ptr() == t.data_ptr()
    with pytest.raises(TypeError, match="__dlpack__"):
        plugrad.from_dlpack([1, 2])


def test_other_devices():
    r = plugrad.ones((2,), device="reference")
    assert numpy.asarray(r).tolist() == [1, 1]
    assert plugrad.from_dlpack(numpy.ones(2), device="reference").device == "reference"


def test_buffers():
    t = plugrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    view = memoryview(t)
    assert (view.format, view.shape, view.strides, view.readonly, view.itemsize) == ("f", (2, 2), (8, 4), False, 4)
    view[0, 1] = 9
    assert t[0, 1].item() == 9
    assert memoryview(t.T).tolist() == [[1, 3], [9, 4]] and bytes(plugrad.tensor([True, False])) == b"\1\0"
    assert memoryview(Tensor([1.0])).readonly
    with pytest.raises(BufferError):
        (numpy.frombuffer(t.T))


def test_writes_from_outside_and_saved_values_are_the_callers_to_order():
    a = numpy.ones(2, dtype="float32")
    t = plugrad.from_dlpack(a).requires_grad_()
    y = (t * t).sum()
    y.backward()
    assert t.grad.tolist() == [2, 2] and t.data_ptr() == address(a)


# A device with streams. Its ops run at once, and it notes the events that its streams wait for. Its DLPack type is ROCm.
WITH_STREAMS = r"""
#include <plugrad/sdk/native.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>

struct Line final : plugrad::Stream {
  uint64_t last = 0;
};
Line& line(plugrad::Stream& stream) { return static_cast<Line&>(stream); }
void note(const char* what, void* native) {
  std::FILE* file = std::fopen(std::getenv("NOTES"), "a");
  std::fprintf(file, "%s %llx\n", what, reinterpret_cast<unsigned long long>(native));
  std::fclose(file);
}
void fill(const plugrad::Call& call) {
  std::fill_n(plugrad::data<float>(call.out()), call.out().count, plugrad::immediate<float>(call.in(0)));
  call.stream<Line>().last = call.op().number;
}
char* address(const plugrad_place& place) { return reinterpret_cast<char*>(place.buffer) + place.offset; }

class Late final : public plugrad::Backend, public plugrad::NativeStreams {
 public:
  explicit Late(const plugrad::Opening&) {}
  plugrad_device_info info() const override {
    plugrad_device_info info = host_info("late", PLUGRAD_HOST_MEM | PLUGRAD_ASYNC);
    info.dlpack_type = 10;
    return info;
  }
  plugrad::Rows kernels() const override {
    static constexpr plugrad::KernelRow kRows[] = {plugrad::kernel<fill>(PLUGRAD_OP_FILL, PLUGRAD_F32)};
    return kRows;
  }
  void copy(plugrad::Stream* stream, const plugrad_copy& copy) override {
    std::memcpy(address(copy.to), address(copy.from), copy.bytes);
    line(*stream).last = copy.number;
  }
  std::unique_ptr<plugrad::Stream> stream_create(uint32_t) override { return std::make_unique<Line>(); }
  plugrad_status completed(plugrad::Stream& stream, uint64_t& number) noexcept override {
    number = line(stream).last;
    return PLUGRAD_OK;
  }
  void wait(plugrad::Stream&, plugrad::Stream&, uint64_t&) override {}
  void sync(plugrad::Stream&, plugrad_failure&) override {}
  void* native_handle(plugrad::Stream&) override { return reinterpret_cast<void*>(0xabc0); }
  void wait_native(plugrad::Stream& stream, uint64_t number, void* native) override {
    line(stream).last = number;
    note("wait", native);
  }
  void signal_native(plugrad::Stream& stream, uint64_t number, void* native) override {
    line(stream).last = number;
    note("signal", native);
  }
  void notify(plugrad::Stream&, uint64_t, plugrad::Notice notice) override { notice(); }
};
PLUGRAD_EXPORT_BACKEND(Late, "late")
"""

WITHOUT_EXTENSION = (WITH_STREAMS.replace(", public plugrad::NativeStreams", "").replace('"late")', '"bare")')
                     .replace("native_handle(plugrad::Stream&) override", "native_handle(plugrad::Stream&)")
                     .replace("void* native) override", "void* native)").replace("notice) override", "notice)"))

PRODUCER = """
import plugrad
class Producer:
    def __init__(self, t, old=False):
        self.t, self.streams, self.old = t, [], old
    def __dlpack_device__(self):
        return self.t.__dlpack_device__()
    def __dlpack__(self, **arguments):
        if self.old and "max_version" in arguments:
            raise TypeError("unexpected keyword")
        self.streams.append(arguments.pop("stream", "none given"))
        return self.t.__dlpack__(stream=-1, **arguments)
"""


def test_our_stream_goes_to_the_producer_and_theirs_waits(npu_plugin, run_python, tmp_path):
    npu_plugin.build(WITH_STREAMS, "late", tmp_path)
    run_python(PRODUCER + """
t = plugrad.full((3,), 7.0, device="late")
notes = []
def noted():
    lines = open("notes").read().splitlines() if __import__("os").path.exists("notes") else []
    fresh = lines[len(notes):]
    notes.extend(fresh)
    return fresh
for old in (False, True):
    theirs = Producer(t, old)
    ours = plugrad.from_dlpack(theirs)
    assert theirs.streams == [0xabc0], theirs.streams
    assert ours.device == "late" and ours.data_ptr() == t.data_ptr() and ours.tolist() == [7, 7, 7]
    assert noted() == ["wait abc0"]
plugrad.from_dlpack(t.__dlpack__(stream=-1))
assert noted() == ["wait 0"]
for stream, expected in ((None, ["signal 0"]), (0, ["signal 0"]), (0x77, ["signal 77"]), (-1, [])):
    t.__dlpack__(stream=stream, max_version=(1, 0))
    assert noted() == expected, stream
for stream in (1, 2, -2):
    try:
        t.__dlpack__(stream=stream)
        assert False, stream
    except ValueError as error:
        assert f"stream {stream}" in str(error)
host = Producer(plugrad.ones((2,)))
plugrad.from_dlpack(host)
assert host.streams == ["none given"]
""", PLUGRAD_PLUGIN_PATH=tmp_path, NOTES=tmp_path / "notes")


def test_a_plugin_that_knows_no_native_streams_imports_nothing_that_may_be_late(npu_plugin, run_python, tmp_path):
    npu_plugin.build(WITHOUT_EXTENSION, "bare", tmp_path)
    run_python(PRODUCER + """
t = plugrad.full((3,), 7.0, device="bare")
t.__dlpack__(stream=0x77)  # the host waits
for array in (Producer(t), t.__dlpack__()):
    try:
        plugrad.from_dlpack(array)
        assert False
    except NotImplementedError as error:
        assert "bare:0 cannot wait for another library's stream" in str(error)
""", PLUGRAD_PLUGIN_PATH=tmp_path, NOTES=tmp_path / "notes")


def test_from_numpy():
    array = numpy.zeros(2, dtype="float32")
    shared = plugrad.from_numpy(array)
    array[0] = 3
    assert shared.tolist() == [3, 0]
