"""Short-time Fourier transforms by PyTorch's names."""

from . import _plugrad, fft as _fft
from ._plugrad import Tensor


def _window(name: str, window: Tensor | None, win_length: int | None, n_fft: int, like: Tensor) -> Tensor:
    """The window (n_fft,): the given one, or ones, in the middle of zeros."""
    length = n_fft if win_length is None else win_length
    if not 0 < length <= n_fft:
        raise ValueError(f"[{name}] win_length is {length}: expected 1 to n_fft, which is {n_fft}")
    if window is None:
        window = _plugrad.ones(length, dtype=like.dtype, device=like.device)
    if window.shape != (length,):
        raise ValueError(f"[{name}] the window has shape {window.shape}: expected ({length},), as win_length says")
    left = (n_fft - length) // 2
    return _plugrad.pad(window, (left, n_fft - length - left)) if length < n_fft else window


def _hop(name: str, hop_length: int | None, n_fft: int) -> int:
    hop = n_fft // 4 if hop_length is None else hop_length
    if n_fft < 1 or hop < 1:
        raise ValueError(f"[{name}] n_fft is {n_fft} and hop_length {hop}: expected 1 or more")
    return hop


def stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
         window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
         onesided: bool | None = None, return_complex: bool | None = None) -> Tensor:
    """Returns the transforms of overlapping frames of signals (n,) or (batch, n): ([batch,] frequencies, frames), complex.

    Frame t begins at element t hop_length, which is n_fft // 4 by default, and is multiplied by the window, of win_length
    elements in the middle of the frame. center: frame t lies around element t hop_length; the signal is padded by
    n_fft // 2 in pad_mode. normalized: divides by the root of n_fft. onesided: the n_fft // 2 + 1 frequencies from 0 on, by
    default for real signals and windows. return_complex=False returns pairs of parts along a last axis. Raises ValueError
    for unfit lengths.
    """
    hop = _hop("stft", hop_length, n_fft)
    if input.ndim not in (1, 2):
        raise ValueError(f"[stft] the signal has shape {input.shape}: expected (n,) or (batch, n)")
    weights = _window("stft", window, win_length, n_fft, input)
    signal = input if input.ndim == 2 else input.unsqueeze(0)
    if center:
        signal = _plugrad.pad(signal, (n_fft // 2, n_fft // 2), mode=pad_mode)
    if signal.shape[1] < n_fft:
        raise ValueError(f"[stft] the signal has {signal.shape[1]} elements with its padding: expected n_fft, {n_fft}, or "
                         "more")
    frames = signal.unfold(1, n_fft, hop) * weights
    is_real = not frames.dtype.is_complex
    if onesided and not is_real:
        raise ValueError("[stft] onesided transforms are those of real signals and windows: the others have all frequencies")
    half = is_real if onesided is None else onesided
    norm = "ortho" if normalized else "backward"
    made: Tensor = (_fft.rfft(frames, norm=norm) if half else _fft.fft(frames, norm=norm)).transpose(1, 2)
    made = made if input.ndim == 2 else made[0]
    return _plugrad.view_as_real(made) if return_complex is False else made


def istft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
          window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
          length: int | None = None, return_complex: bool = False) -> Tensor:
    """The inverse of stft for transforms ([batch,] frequencies, frames): signals of `length` elements, by default of as many
    as the frames cover, real unless return_complex.

    The frames are multiplied by the window again and added, and the sum is divided by the sum of the squared windows
    (Griffin and Lim, "Signal estimation from modified short-time Fourier transform", 1984). Raises ValueError for unfit
    lengths, and where the windows leave an element uncovered; in compiled functions such an element is NaN or infinite.
    """
    hop = _hop("istft", hop_length, n_fft)
    if input.ndim not in (2, 3) or not input.dtype.is_complex:
        raise ValueError(f"[istft] the transforms are {input.dtype} of shape {input.shape}: expected complex numbers "
                         "(frequencies, frames), with or without a batch")
    spectra = (input if input.ndim == 3 else input.unsqueeze(0)).transpose(1, 2)
    half = not return_complex and spectra.shape[2] != n_fft if onesided is None else onesided
    if spectra.shape[2] != (n_fft // 2 + 1 if half else n_fft):
        raise ValueError(f"[istft] there are {spectra.shape[2]} frequencies: expected {n_fft // 2 + 1 if half else n_fft}")
    norm = "ortho" if normalized else "backward"
    frames = _fft.irfft(spectra, n_fft, norm=norm) if half else _fft.ifft(spectra, norm=norm)
    if not half and not return_complex:
        frames = frames.real
    weights = _window("istft", window, win_length, n_fft, frames)
    return _added(frames * weights, weights, hop, n_fft // 2 if center else 0, length, input.ndim == 3)


def _added(frames: Tensor, weights: Tensor, hop: int, cut: int, length: int | None, batched: bool) -> Tensor:
    """The sum of overlapping frames (batch, frames, n) by that of squared windows, without `cut` elements at both ends."""
    batch, count, n = frames.shape
    whole = n + hop * (count - 1)
    places = (_plugrad.arange(count, device=frames.device).unsqueeze(1) * hop
              + _plugrad.arange(n, device=frames.device)).reshape(-1)
    sums = _plugrad.zeros(batch, whole, dtype=frames.dtype, device=frames.device)
    sums = sums.index_add(1, places, frames.reshape(batch, -1))
    squares = (weights * weights).expand(count, n).reshape(-1)
    covered = _plugrad.zeros(whole, dtype=weights.dtype, device=frames.device).index_add(0, places, squares)
    end = whole - cut if length is None else min(cut + length, whole)
    sums, covered = sums[:, cut:end], covered[cut:end]
    if end <= cut or not _plugrad._is_recording() and float(covered.abs().min()) < 1e-11:
        raise ValueError("[istft] the windows leave elements uncovered: choose a shorter hop_length or another window")
    made = sums / covered
    if length is not None and length > end - cut:
        made = _plugrad.pad(made, (0, length - (end - cut)))
    return made if batched else made[0]
