// Draws a training run.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace plugrad::training {

struct PlotPoint {
  int64_t step;
  double value;
};

struct LossPlot {
  std::string title, subtitle;      // any text; it is escaped
  std::vector<PlotPoint> loss;      // left axis, from 0; ordered by step
  std::vector<PlotPoint> accuracy;  // right axis, 0 .. 1, shown in percent; may be empty
};

// Returns the picture as a self-contained SVG file. Leaves out infinite and NaN values.
std::string loss_plot_svg(const LossPlot& plot);

}  // namespace plugrad::training
