// Convolutions read a tensor (n, c, ..) as planes with zeros around them: each tap of a window is at a constant distance
// from the window's position. For windows with a step along an axis, there is one plane per remainder of the step.
#pragma once
#include <backends/cpu/operand.hpp>
#include <backends/cpu/pool.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace plugrad::cpu {

// Position j of an axis reads element (j + shift) * step + phase of the source, and multiplies it by element `weight` of
// the window.
struct Tap {
  int64_t weight, phase, shift;
};

// The positions 0 .. count - 1 of the planes belong to the elements first, first + step, .. of the result.
struct Phase {
  int64_t first, step, count;
  std::vector<Tap> taps;
};

struct PlaneAxis {
  int64_t extent;             // of the source
  int64_t step;               // how many planes its elements alternate between
  std::vector<Phase> phases;  // of the result
};

// to[i] = from[i * step]
template <class T> using CopyLine = void (*)(T* to, const T* from, int64_t count, int64_t step);

class Planes {
 public:
  // images: the number of images in a set of planes.
  Planes(std::array<PlaneAxis, 3> axes, int64_t channels, int64_t images) : axes_(std::move(axes)), channels_(channels) {
    for (int i = 0; i < 3; ++i) measure(i);
    merge(images);
  }

  const PlaneAxis& axis(int i) const { return axes_[i]; }
  int64_t elements() const { return channels_ * channel_step() + slack_; }
  int64_t images() const { return images_; }
  int64_t image_step() const { return pitch_[0] * pitch_[1] * pitch_[2]; }
  int64_t slice_step() const { return pitch_[1] * pitch_[2]; }
  int64_t line_step() const { return pitch_[2]; }
  int64_t channel_step() const { return planes_[0] * planes_[1] * planes_[2] * images_ * image_step(); }
  // The most positions along an axis, of all phases.
  int64_t count(int i) const { return count_[i]; }

  // How many positions along `axis()` planes of at most this many elements have. 0: they need no cut.
  int cut_axis() const { return count_[0] > 1 ? 0 : count_[1] > 1 ? 1 : 2; }
  void cut(int64_t most) {
    const int i = cut_axis();
    if (elements() <= most) return;
    const int64_t fixed = most_[i] - least_[i], unit = elements() / pitch_[i];
    box_ = std::clamp<int64_t>(most / std::max<int64_t>(unit, 1) - fixed, 1, count_[i]);
    const int64_t boxes = (count_[i] + box_ - 1) / box_;
    box_ = (count_[i] + boxes - 1) / boxes;
    pitch_[i] = box_ + fixed;
    merge(1);
  }
  int64_t box() const { return box_; }  // positions of the cut axis
  int64_t boxes() const { return (count_[cut_axis()] + box_ - 1) / box_; }

  // Lets images share a set of planes.
  void merge(int64_t images) {
    images_ = images;
    slack_ = 256;  // for reads of a panel at the end
    for (int i = 0; i < 3; ++i)
      if (i != cut_axis() || boxes() == 1) slack_ += beyond_[i] * (i == 0 ? slice_step() : i == 1 ? line_step() : 1);
  }

  // The distances of all taps of a result's phases from its position: of a channel's taps and then of the next channel's; or
  // of all channels for each tap.
  std::vector<int64_t> distances(const std::array<const Phase*, 3>& phases, bool taps_first = false) const {
    std::vector<int64_t> all = first_distances(phases);
    const auto taps = static_cast<int64_t>(all.size());
    std::vector<int64_t> each(all.size() * static_cast<size_t>(channels_));
    for (int64_t c = 0; c < channels_; ++c)
      for (int64_t tap = 0; tap < taps; ++tap)
        each[static_cast<size_t>(taps_first ? tap * channels_ + c : c * taps + tap)] =
            all[static_cast<size_t>(tap)] + c * channel_step();
    return each;
  }

  // Copies images of the source, with dense channels, to the planes. from: the start of the box.
  template <class T>
  void copy(CopyLine<T> copy_line, const T* source, int64_t image_stride, int64_t images, int64_t channels, int64_t from,
            T* planes) const {
    const int64_t extent = axes_[0].extent * axes_[1].extent * axes_[2].extent;
    T* to = planes;
    for (int64_t c = 0; c < channels; ++c, source += extent)
      for (const int64_t d : used_[0])
        for (const int64_t h : used_[1])
          for (const int64_t w : used_[2]) {
            for (int64_t i = 0; i < images; ++i)
              copy_plane(copy_line, source + i * image_stride, {d, h, w}, from, to + i * image_step());
            if (images < images_) std::fill_n(to + images * image_step(), image_step(), T(0));
            to += images_ * image_step();
          }
    std::fill(to, to + slack_, T(0));
  }

 private:
  // The distances in the first channel.
  std::vector<int64_t> first_distances(const std::array<const Phase*, 3>& phases) const {
    std::vector<int64_t> all;
    for (const Tap& d : phases[0]->taps)
      for (const Tap& h : phases[1]->taps)
        for (const Tap& w : phases[2]->taps) {
          const int64_t plane = (place(0, d) * planes_[1] + place(1, h)) * planes_[2] + place(2, w);
          all.push_back(plane * images_ * image_step() +
                        ((d.shift - least_[0]) * pitch_[1] + h.shift - least_[1]) * pitch_[2] + w.shift - least_[2]);
        }
    return all;
  }

  void measure(int i) {
    const PlaneAxis& axis = axes_[i];
    bool any = false;
    for (const Phase& phase : axis.phases) {
      count_[i] = std::max(count_[i], phase.count);
      for (const Tap& tap : phase.taps) {
        least_[i] = any ? std::min(least_[i], tap.shift) : tap.shift;
        most_[i] = any ? std::max(most_[i], tap.shift) : tap.shift;
        any = true;
        if (std::ranges::find(used_[i], tap.phase) == used_[i].end()) used_[i].push_back(tap.phase);
      }
    }
    planes_[i] = static_cast<int64_t>(used_[i].size());
    // The zeros before a line also serve as zeros behind the line before it.
    const int64_t length = count_[i] + most_[i] - least_[i], zeros = std::max<int64_t>(0, -least_[i]);
    pitch_[i] = std::max({length - zeros, count_[i], int64_t{1}});
    for (const int64_t phase : used_[i]) pitch_[i] = std::max(pitch_[i], std::min(length, data_end(i, phase, 0)));
    beyond_[i] = length - pitch_[i];
    box_ = count_[cut_axis()];
  }

  // How far the elements of a plane reach along an axis, from the first position's first tap.
  int64_t data_end(int i, int64_t phase, int64_t from) const {
    return ceil_div(axes_[i].extent - phase, axes_[i].step) - (from + least_[i]);
  }
  int64_t place(int i, const Tap& tap) const { return std::ranges::find(used_[i], tap.phase) - used_[i].begin(); }

  struct Range {
    int64_t zeros, count, source;  // the zeros before the elements, the elements, and the first of them
  };
  Range range(int i, int64_t phase, int64_t from) const {
    const int64_t begin = from + least_[i], zeros = std::clamp<int64_t>(-begin, 0, pitch_[i]);
    const int64_t end = std::clamp<int64_t>(data_end(i, phase, from), zeros, pitch_[i]);
    return {zeros, end - zeros, (begin + zeros) * axes_[i].step + phase};
  }

  template <class T>
  void copy_plane(CopyLine<T> copy_line, const T* source, std::array<int64_t, 3> phase, int64_t from, T* to) const {
    std::array<Range, 3> ranges;
    for (int i = 0; i < 3; ++i) ranges[i] = range(i, phase[i], i == cut_axis() ? from : 0);
    const auto& [slices, lines, columns] = ranges;
    for (int64_t d = 0; d < pitch_[0]; ++d, to += slice_step()) {
      const bool inside = d >= slices.zeros && d < slices.zeros + slices.count;
      if (!inside) {
        std::fill(to, to + slice_step(), T(0));
        continue;
      }
      const T* slice = source + (slices.source + (d - slices.zeros) * axes_[0].step) * axes_[1].extent * axes_[2].extent;
      T* line = to;
      std::fill(line, line + lines.zeros * pitch_[2], T(0));
      line += lines.zeros * pitch_[2];
      for (int64_t h = 0; h < lines.count; ++h, line += pitch_[2]) {
        std::fill(line, line + columns.zeros, T(0));
        copy_line(line + columns.zeros, slice + (lines.source + h * axes_[1].step) * axes_[2].extent + columns.source,
                  columns.count, axes_[2].step);
        std::fill(line + columns.zeros + columns.count, line + pitch_[2], T(0));
      }
      std::fill(line, to + slice_step(), T(0));
    }
  }

  std::array<PlaneAxis, 3> axes_;
  int64_t channels_, images_ = 1, slack_ = 0, box_ = 1;
  std::array<std::vector<int64_t>, 3> used_;  // phases of the source, read by some tap
  std::array<int64_t, 3> count_{}, least_{}, most_{}, planes_{}, pitch_{}, beyond_{};
};

}  // namespace plugrad::cpu
